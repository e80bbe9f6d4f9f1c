#include "carnot/core/rollout/compatibility.h"

#include "carnot/core/base/check.h"
#include "carnot/core/rollout/episode.h"

namespace carnot {

Status check_compatible(const EnvironmentFactory& environment, const std::string& environment_name,
                        const BranchPolicy& policy, int budget, bool continues, const ChatFamily& chat) {
  OpenedEnvironment opened;
  try {
    opened = open_environment(environment.make(Split::Train, 0));
  } catch (const CheckError&) {
    throw;
  } catch (const std::exception&) {
    return Done{};
  }
  std::vector<std::string> problems;
  const bool branches = policy.ever_branches() || policy.expansion(budget).has_value();
  if ((branches || continues) && opened.environment->branching() == Branching::Refused)
    problems.push_back(
        "method: " +
        (branches ? "branches trajectories (" + policy.name() + ")" : "continues from inside trajectories") +
        ", and env " + environment_name +
        " can be neither cloned nor replayed; expected another method, or an "
        "environment that says how (Environment::branching)");
  if (const auto prompt = render_prompt(chat, opened.opening); !prompt)
    problems.push_back("env: " + environment_name + ": " + prompt.error().message);
  if (problems.empty()) return Done{};
  return join_errors(problems);
}

}  // namespace carnot
