// data/tree.h -- the central types: a turn, a tree of turns, the leaves that end trajectories, the group of one task.
//
// A Turn is what happens between two environment calls: the rendered prompt part, the tokens the policy
// sampled, the environment's observation. A Tree stores each turn once; a trajectory is the path from the
// root to a leaf; a chain is a tree with one leaf. A Group holds all trees of one task in one step.
//
// Structure is stored, never inferred: where a turn begins, what was sampled, what is shared. Plain values,
// indices instead of pointers, no tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/columns.h"
#include "carnot/core/data/tokens.h"

namespace carnot {

/// How a trajectory ended. The world's failures are data, never exceptions.
enum class Outcome : std::uint8_t {
  Finished,     ///< the environment ended the episode
  OutOfTurns,   ///< budget of turns, actions or tool calls spent
  OutOfTokens,  ///< the response or the context hit its limit
  Unparsable,   ///< the response could not be parsed and the environment ends the episode there
  ToolFailed,   ///< a tool returned an error that ends the episode; counts like any failure of the policy
  InfraFailed,  ///< our infrastructure failed (timeout, crash): never counted, never a reward
};
constexpr Outcome last_of(Outcome) { return Outcome::InfraFailed; }
inline constexpr std::string_view kOutcomeNames[] = {"finished",   "out_of_turns", "out_of_tokens",
                                                     "unparsable", "tool_failed",  "infra_failed"};
inline std::string_view name_of(Outcome outcome) { return kOutcomeNames[static_cast<std::size_t>(outcome)]; }

/// How a turn's context was built.
enum class Context : std::uint8_t {
  Growing,  ///< one token sequence per trajectory: the turn continues its parent's tokens
  Fresh,    ///< the turn renders its own whole prompt; its tokens are a separate sequence
};
constexpr Context last_of(Context) { return Context::Fresh; }

struct Turn {
  int parent = -1;  ///< index of the previous turn in the tree, always smaller than this turn's; -1 for a root
  Context context = Context::Growing;
  std::vector<TokenId> tokens{};  ///< prompt part, sampled part, observation
  int sampled_begin = 0;          ///< [sampled_begin, sampled_end) of `tokens` came from the policy
  int sampled_end = 0;
  std::vector<Span> spans{};  ///< over `tokens`: sorted, disjoint, without gaps

  double reward = 0;   ///< the environment's, for this turn
  double penalty = 0;  ///< <= 0: for format or an invalid action
  bool valid_action = true;
  std::optional<double> info_gain{};     ///< change of the answer's probability (or log-probability) over this turn
  std::optional<double> turn_entropy{};  ///< of the first sampled tokens, as seen by the branch policy
  std::string anchor{};                  ///< key of the environment's state before the turn, for grouping; can be empty
  std::string tool{};                    ///< tool that the turn called; empty if none
  std::string status{};                  ///< that tool's: "ok", "empty", "timeout", ...
  double latency_ms = 0;                 ///< duration of the environment call
  int policy_version =
      0;  ///< optimizer steps of the weights that sampled the turn; of the oldest if they were swapped meanwhile

  int num_sampled() const { return sampled_end - sampled_begin; }
};

/// The end of one trajectory.
struct Leaf {
  int turn = -1;    ///< its last turn
  int sibling = 0;  ///< index in the group; key of the random draws
  std::string trajectory_id{};
  int parent = -1;       ///< leaf (index in the tree) from which this one branched off; -1 for the tree's first
  int branch_turn = -1;  ///< number of turns shared with `parent`, counted from the root; -1 without a parent
  Outcome outcome = Outcome::Finished;
  double score = 0;                          ///< raw outcome reward: the sum of the turns' rewards, without penalties
  bool success = false;                      ///< as defined by the environment
  bool dropped = false;                      ///< by a filter: keeps its place, but takes no part in the update
  std::map<std::string, double> measures{};  ///< further results of the environment ("exact_match", "format")
  std::optional<std::string> answer{};       ///< the final answer in the environment's normal form, for majority votes

  bool valid() const { return outcome != Outcome::InfraFailed; }
  /// Whether the leaf counts in statistics, denominators and the update.
  bool is_included() const { return valid() && !dropped; }
};

struct Tree {
  std::vector<Turn> turns{};
  std::vector<Leaf> leaves{};
  Columns columns{};
};

struct Group {
  std::string uid{};                          ///< identifies the task instance
  std::int64_t task_index = 0;                ///< in the environment's factory
  std::uint64_t seed = 0;                     ///< of the draws, for reproduction
  std::int64_t step = 0;                      ///< training step, from 1; 0: not set
  std::vector<std::string> ground_truth{};    ///< acceptable answers, if the environment has any
  std::map<std::string, std::string> info{};  ///< about the task, for reports ("hops": "2")
  std::vector<Tree> trees{};
  std::optional<double> query_baseline{};  ///< the answer's (log-)probability given the prompt alone, for info gain
};

/// Turn indices from the root to leaf number `leaf`, in reading order.
std::vector<int> path(const Tree& tree, int leaf);

/// Tokens of all turns; shared turns count once.
std::int64_t num_tokens(const Tree& tree);

/// Raw score plus the penalties of its turns: the reward that credit rules start from.
double penalised_score(const Tree& tree, int leaf);

/// The tree's problems, one sentence each; empty if every invariant holds: parents before children, spans sorted and
/// covering, sampled range inside the tokens, leaves on existing turns, columns as long as turns.
std::vector<std::string> violations(const Tree& tree);

/// Of a turn's reward and penalty, a score, and a measure: its square and the sum over any group stay exact enough.
inline constexpr double kLargestReward = 1e9;

}  // namespace carnot
