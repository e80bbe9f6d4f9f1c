#include "carnot/sandbox/layers.h"

#include <cstdlib>
#include <filesystem>

#include "carnot/base/strings.h"

namespace carnot {

SandboxLevel level_of(const SandboxLayers& layers) {
  if (!layers.system_calls) return SandboxLevel::Limited;
  if (layers.namespaces) return SandboxLevel::Isolated;
  return layers.landlock > 0 ? SandboxLevel::Confined : SandboxLevel::Limited;
}

std::string shown(const SandboxLayers& layers) {
  std::vector<std::string> names;
  if (layers.namespaces) names.emplace_back(layers.bubblewrap.empty() ? "namespaces" : "namespaces by bubblewrap");
  if (layers.landlock > 0) names.push_back("Landlock " + std::to_string(layers.landlock));
  if (layers.system_calls) names.emplace_back("system calls");
  names.emplace_back("limits");
  return kSandboxLevels[static_cast<std::size_t>(level_of(layers))] + " (" + join(names) + ")";
}

Result<std::string> find_launcher() {
  std::vector<std::string> places;
  if (const char* named = std::getenv("CARNOT_SANDBOX"); named != nullptr) {
    places.emplace_back(named);
  } else {
    std::error_code problem;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
    if (problem) return Error{"/proc/self/exe: " + problem.message() + "; set CARNOT_SANDBOX to carnot-sandbox"};
    const auto folder = program.parent_path();
    places = {folder / "carnot-sandbox", folder.parent_path() / "libexec" / "carnot" / "carnot-sandbox"};
  }
  for (const std::string& place : places)
    if (std::filesystem::exists(place)) return place;
  return Error{"there is no " + join(places, " and no ") + "; set CARNOT_SANDBOX to the program carnot-sandbox"};
}

}  // namespace carnot
