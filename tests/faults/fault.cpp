#include "fault.h"

#include "testing/paths.h"

namespace carnot::testing {
namespace {

constexpr int kInternalError = 70;

}  // namespace

std::string name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::None: return "none";
    case FaultKind::Kill: return "kill";
    case FaultKind::KillMidway: return "kill_midway";
    case FaultKind::ShortWrite: return "short_write";
    case FaultKind::Error: return "error";
    case FaultKind::DiskFull: return "disk_full";
  }
  return "";
}

std::vector<std::string> environment_of(const Interposition& interposition) {
  std::vector<std::string> words{"LD_PRELOAD=" + build_path("libcarnot_interposed_calls.so")};
  const auto add = [&](const std::string& name, const std::string& value) {
    words.push_back("CARNOT_FAULT_" + name + "=" + value);
  };
  if (!interposition.folder.empty()) add("FOLDER", interposition.folder.string());
  if (!interposition.trace.empty()) add("TRACE", interposition.trace.string());
  add("CALL", std::to_string(interposition.fault.call));
  add("KIND", name_of(interposition.fault.kind));
  add("ERRNO", std::to_string(interposition.fault.error));
  add("THREAD", std::to_string(interposition.first_failing_thread));
  add("ALLOCATION", std::to_string(interposition.first_failing_allocation));
  add("LARGE", std::to_string(interposition.large_bytes));
  add("ADDRESS_SPACE", std::to_string(interposition.address_space));
  return words;
}

ProgramRun run_interposed(const std::vector<std::string>& arguments, const Interposition& interposition) {
  return run_carnot(arguments, {.environment = environment_of(interposition), .deadline = kHang});
}

std::string indecent_end(const ProgramRun& run) {
  if (run.timed_out) return "hung";
  if (run.exit < 0) return "ended by signal " + std::to_string(run.signal) + ": " + run.err;
  if (run.exit == kInternalError) return "treated it as a bug: " + run.err;
  if (run.exit != 0 && run.err.empty()) return "said nothing";
  return "";
}

}  // namespace carnot::testing
