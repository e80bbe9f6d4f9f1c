#include "carnot/study/metric_curves.h"

#include <nlohmann/json.hpp>

#include "carnot/base/file.h"

namespace carnot {

Result<std::map<std::string, Curve>> read_metric_curves(const std::filesystem::path& metrics) {
  const auto text = read_file(metrics);
  if (!text) return text.error();
  std::map<std::string, Curve> curves;
  for (const std::string_view line : split_lines(*text)) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("step") || !row["step"].is_number_integer()) break;
    const auto step = row["step"].get<std::int64_t>();
    for (const auto& [name, value] : row.items())
      if (value.is_number() && name != "step") curves[name][step] = value.get<double>();
  }
  return curves;
}

}  // namespace carnot
