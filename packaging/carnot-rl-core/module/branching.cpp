// Where rollouts branch, and how a task's budget is divided.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "carnot/core/branch/branch.h"
#include "carnot/core/recompute/recompute_credit.h"
#include "values.h"

namespace carnot::python {
namespace {

struct Policy {
  std::shared_ptr<const BranchPolicy> decides{};
};

Policy branch_policy(const std::string& method, const nb::dict& options) {
  Method built = value_or_raise(read_method({.method = method, .overrides = settings_of(options)}));
  if (built.branch == nullptr) return {independent()};
  return {std::move(built.branch)};
}

int initial(const Policy& policy, int budget, std::optional<double> root, const std::vector<double>& tool_calls) {
  if (budget < 1) throw nb::value_error("budget: expected at least 1");
  if (!root) return policy.decides->initial(budget);
  return policy.decides->initial(budget, {.root = *root, .tool_calls = tool_calls});
}

bool branch_here(const Policy& policy, double turn_entropy, double initial_entropy, int trajectories, int budget,
                 int consecutive, double uniform) {
  return policy.decides->branch_here({.turn_entropy = turn_entropy,
                                      .initial_entropy = initial_entropy,
                                      .trajectories = trajectories,
                                      .budget = budget,
                                      .consecutive = consecutive,
                                      .uniform = uniform});
}

void check_entropy(int tokens, int vocabulary) {
  if (tokens < 1) throw nb::value_error("tokens: expected at least 1");
  if (vocabulary < 2) throw nb::value_error("vocabulary: expected at least 2");
}

double entropy_of_turn(const NumbersIn& token_entropies, int vocabulary, int tokens) {
  check_entropy(tokens, vocabulary);
  return turn_entropy(vector_of(token_entropies), tokens, vocabulary);
}

double entropy_of_candidates(const std::vector<NumbersIn>& log_probs, int vocabulary, int tokens) {
  check_entropy(tokens, vocabulary);
  std::vector<std::vector<double>> candidates;
  for (const NumbersIn& of_token : log_probs) candidates.push_back(vector_of(of_token));
  return turn_entropy_of_candidates(candidates, tokens, vocabulary);
}

constexpr const char* kPolicyHelp = "Decides where trajectories of one task branch. Works on numbers only.";
constexpr const char* kInitialHelp =
    R"(Trajectories (with an expansion: trees) that start from the prompt; the rest of the budget is for branches.
Where wants_probe, pass the entropies of one trajectory that is sampled first: of its first tokens, and after each
tool call.)";
constexpr const char* kHereHelp =
    R"(Whether to spend one more trajectory here: `turn_entropy` of this turn, `initial_entropy` of the trajectory's
first, `trajectories` of the task so far, `consecutive` branches as `streak` counts them, `uniform` a random number in
[0, 1).)";
constexpr const char* kOfMethodHelp = "The branch policy of a method, with the options of its section in a recipe.";
constexpr const char* kEntropyHelp =
    "Sum of the entropies (nats) of the first `tokens` sampled tokens, over ln(vocabulary): ARPO's measure.";
constexpr const char* kCandidatesHelp =
    R"(The same from log-probabilities of candidates as an inference engine returns them: -sum p ln p over all
candidates of the first `tokens` tokens, without renormalisation.)";

}  // namespace

void bind_branching(nb::module_& module) {
  nb::class_<TreeExpansion>(module, "TreeExpansion", "Tree-GRPO's plan: how trees grow from random nodes.")
      .def_ro("nodes", &TreeExpansion::nodes, "starting points per tree and round")
      .def_ro("rounds", &TreeExpansion::rounds)
      .def_ro("leaves", &TreeExpansion::leaves, "leaves to keep of each tree");
  nb::class_<Policy>(module, "BranchPolicy", kPolicyHelp)
      .def("initial", initial, nb::arg("budget"), nb::arg("root_entropy") = nb::none(),
           nb::arg("tool_call_entropies") = std::vector<double>(), kInitialHelp)
      .def("branch_here", branch_here, nb::kw_only(), nb::arg("turn_entropy"), nb::arg("initial_entropy"),
           nb::arg("trajectories"), nb::arg("budget"), nb::arg("consecutive") = 0, nb::arg("uniform"), kHereHelp)
      .def(
          "expansion", [](const Policy& policy, int budget) { return policy.decides->expansion(budget); },
          nb::arg("budget"), "The plan of a method that grows trees from random nodes; else None.")
      .def_prop_ro("name", [](const Policy& policy) { return policy.decides->name(); })
      .def_prop_ro("ever_branches", [](const Policy& policy) { return policy.decides->ever_branches(); })
      .def_prop_ro(
          "attempts", [](const Policy& policy) { return policy.decides->attempts(); },
          "decisions taken at one place, each with its own `uniform`")
      .def_prop_ro("wants_probe", [](const Policy& policy) { return policy.decides->wants_probe(); })
      .def_prop_ro("timing",
                   [](const Policy& policy) {
                     return policy.decides->timing() == BranchTiming::SameTurn ? "same_turn" : "after_observation";
                   })
      .def_prop_ro(
          "streak",
          [](const Policy& policy) { return policy.decides->streak() == BranchStreak::Task ? "task" : "trajectory"; })
      .def_prop_ro("entropy_tokens", [](const Policy& policy) { return policy.decides->measure().tokens; })
      .def_prop_ro(
          "entropy_candidates", [](const Policy& policy) { return policy.decides->measure().candidates; },
          "0: the full softmax");
  module.def("branch_policy", branch_policy, nb::arg("method"), nb::arg("options") = nb::dict(), kOfMethodHelp,
             nb::sig("def branch_policy(method: str, options: dict[str, object] = {}) -> BranchPolicy"));
  module.def("turn_entropy", entropy_of_turn, nb::arg("token_entropies"), nb::arg("vocabulary"), nb::arg("tokens") = 20,
             kEntropyHelp);
  module.def("turn_entropy_of_candidates", entropy_of_candidates, nb::arg("candidate_log_probs"), nb::arg("vocabulary"),
             nb::arg("tokens") = 20, kCandidatesHelp);
}

}  // namespace carnot::python
