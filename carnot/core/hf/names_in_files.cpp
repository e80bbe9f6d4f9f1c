#include "carnot/core/hf/names_in_files.h"

namespace carnot {

std::optional<std::string> with_part(const std::string& name, std::string_view part, std::string_view by) {
  const std::size_t found = name.find(std::string(part) + ".");
  if (found == std::string::npos) return std::nullopt;
  return name.substr(0, found) + std::string(by) + name.substr(found + part.size());
}

std::string name_in_files(const ModelFamily& family, const std::string& name) {
  for (const auto& [ours, theirs] : family.names_in_files)
    if (const auto renamed = with_part(name, ours, theirs)) return *renamed;
  return name;
}

}  // namespace carnot
