// worlds/swe/scaffold.h -- R2E-Gym's agent: its prompts, how a response calls a tool, how an observation looks.
//
// Jain et al., arXiv:2504.07164. Texts as rLLM has them, with which DeepSWE and AEM train.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carnot {

/// A block `<function=NAME> <parameter=KEY>VALUE</parameter> ... </function>`.
struct SweCall {
  std::string name{};                                             ///< empty: the response calls nothing
  std::vector<std::pair<std::string, std::string>> parameters{};  ///< in order, values without blanks around them
};

/// The first block of a response.
SweCall read_swe_call(std::string_view response);

/// The block as text, as a demonstration writes it.
std::string swe_call_text(const SweCall& call);

/// The words of the command that the original makes of a call: the name, the value of `command`, then `--KEY VALUE` of
/// the others. Of a key that is given twice the last value holds.
std::vector<std::string> swe_command(const SweCall& call);

/// "finish" and whatever contains it or "submit".
bool ends_episode(const SweCall& call);

/// What the policy reads. An output of execute_bash with more than 80 lines loses its middle.
std::string swe_observation(const SweCall& call, const std::string& output, const std::string& exit_code);

/// The answer to a response that calls nothing.
std::string missing_call_text();

/// "\nSteps Remaining: 3", or that this is the last one.
std::string steps_remaining_text(int steps);

/// The user message about an issue.
std::string swe_user_text(std::string_view issue);

}  // namespace carnot
