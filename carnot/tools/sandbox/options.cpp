#include "carnot/tools/sandbox/options.h"

#include "carnot/core/base/strings.h"

namespace carnot {

void SandboxOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "least", least, kSandboxLevels, "below this level nothing starts (docs/sandbox.md)");
  visit.field("seconds", seconds, "that a call may take, by the clock and of processor time",
              Limits{.low = 0, .high = 1e6, .open_low = true});
  visit.field("memory_mb", memory_mb, "megabytes of one process's address space, and that all of a call hold",
              between(64, 1 << 20));
  visit.field("processes", processes, "processes and threads at a time", between(2, 4096));
  visit.field("open_files", open_files, "open files of a process", between(16, 4096));
  visit.field("disk_mb", disk_mb, "megabytes of files in the private folder", between(1, 1 << 16));
  visit.field("output_kb", output_kb, "kilobytes that are kept of standard output, and of standard error",
              between(1, 1 << 15));
  visit.field("code_kb", code_kb, "kilobytes of code; longer code is refused", between(1, 1 << 15));
  visit.field("warm", warm, "interpreters that are started ahead, each for one call", between(0, 256));
  visit.field("interpreter", interpreter, "of Python; it and its packages can be read in the sandbox");
  visit.field("imports", imports, "modules that are imported ahead of a call: [math, sympy]");
  visit.field("read", read, "further folders that can be read in the sandbox");
}

SandboxLevel level_of(const SandboxLayers& layers) {
  if (!layers.system_calls) return SandboxLevel::Limited;
  if (layers.namespaces) return SandboxLevel::Isolated;
  return layers.landlock > 0 ? SandboxLevel::Confined : SandboxLevel::Limited;
}

std::string shown(const SandboxLayers& layers) {
  std::vector<std::string> names;
  if (layers.namespaces) names.emplace_back("namespaces");
  if (layers.landlock > 0) names.push_back("Landlock " + std::to_string(layers.landlock));
  if (layers.system_calls) names.emplace_back("system calls");
  names.emplace_back("limits");
  return kSandboxLevels[static_cast<std::size_t>(level_of(layers))] + " (" + join(names) + ")";
}

}  // namespace carnot
