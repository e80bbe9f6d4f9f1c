// env/environment_boundary.h -- what may come out of an environment, checked in one place before anything reads it.
//
// An environment may be anyone's code. What it returns outside these bounds is an infrastructure failure: the
// trajectory counts nowhere, and no such number becomes a reward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"

namespace carnot {

/// A response and what it was answered, to play an episode again that cannot be copied.
struct PlayedTurn {
  PolicyResponse response{};
  std::uint64_t reply_key = 0;  ///< key_of() the reply
};

/// Equal for replies that a policy and the training cannot tell apart.
std::uint64_t key_of(const Reply& reply);

/// A new environment of the task after the same turns. Throws EnvironmentFailure where it answers otherwise than the
/// first one did: such an environment must refuse branching.
std::unique_ptr<Environment> replay(const std::function<std::unique_ptr<Environment>()>& make,
                                    std::span<const PlayedTurn> turns);

/// Of any text, more than the longest context holds: it is tokenised on the thread that feeds the engine.
inline constexpr std::size_t kLongestTextBytes = 1 << 20;
inline constexpr std::size_t kMostEntries = 10000;  ///< of measures, info, ground truth, stop strings, tags

/// An environment that broke its side of the contract. The message says which field, what was found and expected.
class EnvironmentFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Each returns quietly or throws EnvironmentFailure with all problems. Fields that no one reads are not looked at.
void check_protocol(const Protocol& protocol);
void check_opening(const Opening& opening);
void check_reply(const Reply& reply);
/// Calls score_group(), and makes replies that are out of bounds afterwards infrastructure failures, each by itself.
void score_checked(Environment& environment, std::span<Reply> last_replies);
/// `name`: the function that gave the text.
void check_text(const std::string& name, const std::string& text);
void check_info(const std::vector<std::string>& ground_truth, const std::map<std::string, std::string>& info);

/// An independent environment at the present state of `environment`, by clone() or by playing `turns` again; never
/// null. Throws EnvironmentFailure where the environment refuses.
std::unique_ptr<Environment> copy_environment(const Environment& environment,
                                              const std::function<std::unique_ptr<Environment>()>& make,
                                              std::span<const PlayedTurn> turns);

}  // namespace carnot
