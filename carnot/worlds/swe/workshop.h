// worlds/swe/workshop.h -- where R2E-Gym's tools run: each call in its own sandbox, over files that last.
//
// Between two calls an episode is data: the files that its calls have left. A call gets all of them, and what it
// changed is taken back. So no process of an episode waits while the policy thinks, episodes can be copied, and
// whatever a call does to its sandbox ends with the call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/tools/sandbox/code.h"
#include "carnot/worlds/swe/task.h"

namespace carnot {

/// What lasts, by path in the sandbox's working folder, /tmp: the repository is in `testbed`, seen as /testbed.
struct SweFolder {
  SweFiles files{};
  std::vector<std::string> folders{};  ///< each before those in it; empty ones too

  bool operator==(const SweFolder&) const = default;
};

/// The folder at an episode's beginning.
SweFolder folder_with(const SweFiles& repository);

struct SweToolOutput {
  std::string text{};
  /// In the words of the original: "0", "Error: Exit code 1", "-1" where it took too long or did not end by itself.
  std::string exit_code{};
};

class SweWorkshop {
 public:
  /// `runner` lets a call take at least ten seconds longer than the longest command.
  explicit SweWorkshop(std::shared_ptr<CodeRunner> runner) : runner_(std::move(runner)) {}

  /// Calls a tool: its name and the words of its command line. A command that takes too long, or more memory than it
  /// may, is an ordinary output. Throws SandboxFailure where the sandbox fails. Any thread.
  SweToolOutput call(const std::vector<std::string>& words, double seconds, SweFolder& folder) const;

  /// What a command prints, in the repository; the folder stays as it is. Cut short where it takes too long.
  std::string shell(const std::string& command, double seconds, const SweFolder& folder) const;

  /// Whether the interpreter has pytest. Throws SandboxFailure.
  Status check_pytest() const;

 private:
  CodeResult run(const std::string& request, double seconds, const SweFolder& folder) const;

  std::shared_ptr<CodeRunner> runner_;
};

/// Bytes of files that a call may change.
inline constexpr std::size_t kMostChangedBytes = std::size_t{4} << 20;
/// Longer than its command a call may take.
inline constexpr double kSecondsAround = 10;

/// Takes over what the tools answers; `folder` stays as it is where the answer cannot be read, with why. Nothing but
/// text that untrusted code could have written.
Result<SweToolOutput> take_tool_answer(std::string_view answer, SweFolder& folder);

}  // namespace carnot
