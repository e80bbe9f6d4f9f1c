// faults/fault.h -- what the preloaded library (interposed_calls.cpp) does to one run of the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "../cli/program.h"

namespace carnot::testing {

enum class FaultKind {
  None,
  Kill,        ///< SIGKILL in place of the call
  KillMidway,  ///< half of a write, then SIGKILL
  ShortWrite,  ///< half of a write, reported as such
  Error,       ///< the call does nothing and fails with `error`
  DiskFull,    ///< from this call on, every call that takes space fails with `error`
};

std::string name_of(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::None;
  long call = 0;  ///< from 1, among the calls on `folder`
  int error = 0;  ///< errno
};

struct Interposition {
  std::filesystem::path folder{};  ///< calls on it and below count
  std::filesystem::path trace{};   ///< where the calls are recorded; empty: nowhere
  Fault fault{};
  long first_failing_thread = 0;      ///< from 1; 0: all start
  long first_failing_allocation = 0;  ///< from 1, among the large ones; 0: none fails
  std::size_t large_bytes = 0;
  std::uint64_t address_space = 0;  ///< bytes; 0: no limit
};

/// The environment of a program that runs under it.
std::vector<std::string> environment_of(const Interposition& interposition);

/// Longer than any run here takes on a busy machine: a run that reaches it hangs.
constexpr std::chrono::seconds kHang{120};

ProgramRun run_interposed(const std::vector<std::string>& arguments, const Interposition& interposition);

/// Empty if the program ended as it may after a fault: with success, or with a message and its own status. Otherwise
/// what it did.
std::string indecent_end(const ProgramRun& run);

}  // namespace carnot::testing
