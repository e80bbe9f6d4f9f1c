#include "carnot/tools/sandbox/layers.h"

#include "carnot/core/base/strings.h"

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

}  // namespace carnot
