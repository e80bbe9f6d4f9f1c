#include "carnot/studies/metric_curves.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot {

std::map<std::string, Curve> parse_metric_curves(std::string_view text) {
  std::map<std::string, Curve> curves;
  for (const std::string_view line : split_lines(text)) {
    const auto row = parse_json_object(line, "metrics");
    if (!row || !row->contains("step") || !row->at("step").is_number_integer()) break;
    const auto step = row->at("step").get<std::int64_t>();
    for (const auto& [name, value] : row->items())
      if (value.is_number() && name != "step") curves[name][step] = value.get<double>();
  }
  return curves;
}

Result<std::map<std::string, Curve>> read_metric_curves(const std::filesystem::path& metrics) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(metrics));
  return parse_metric_curves(text);
}

}  // namespace carnot
