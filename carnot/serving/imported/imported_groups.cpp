#include "carnot/serving/imported/imported_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "carnot/core/rows/demonstration.h"
#include "carnot/core/text/span_parser.h"

namespace carnot {
namespace {

constexpr std::size_t kMostProblems = 20;

bool is_empty(const ImportedRollout& rollout) {
  return rollout.outcome == Outcome::InfraFailed && !rollout.conversation && rollout.response.empty() &&
         rollout.response_ids.empty();
}

/// A whole trajectory: its tokens, and which of them the policy sampled.
Result<Demonstration> tokens_of(const ImportedRollout& rollout, const ChatFamily& chat) {
  if (rollout.conversation) return render_demonstration(chat, *rollout.conversation);
  Demonstration out{.tokens = rollout.prompt_ids};
  std::vector<TokenId> response = rollout.response_ids;
  if (response.empty() && out.tokens.empty()) {
    CARNOT_ASSIGN_OR_RETURN(out.tokens, chat.tokenizer().try_encode(rollout.prompt));
    CARNOT_ASSIGN_OR_RETURN(response, chat.tokenizer().try_encode(rollout.response));
  }
  for (const TokenId token : out.tokens)
    if (token >= chat.tokenizer().vocab_size())
      return Error{"prompt_ids: the tokenizer has no token " + std::to_string(token)};
  for (const TokenId token : response)
    if (token >= chat.tokenizer().vocab_size())
      return Error{"completion_ids: the tokenizer has no token " + std::to_string(token)};
  out.is_said.assign(out.tokens.size(), false);
  out.tokens.insert(out.tokens.end(), response.begin(), response.end());
  if (rollout.sampled.empty())
    out.is_said.resize(out.tokens.size(), true);
  else
    out.is_said.insert(out.is_said.end(), rollout.sampled.begin(), rollout.sampled.end());
  return out;
}

/// Why it is no trajectory; empty if it is one.
std::string problem_of(const Demonstration& tokens) {
  if (std::ranges::count(tokens.is_said, true) == 0) return "the policy said nothing";
  return tokens.is_said.front() ? "expected a prompt before what the policy said" : "";
}

/// What the tokens of a turn are: the prompt or an observation, then thought and action of what was sampled, then the
/// observation.
std::vector<Span> spans_of(const Turn& turn, bool first, int thought) {
  const int begin = turn.sampled_begin, end = turn.sampled_end, size = static_cast<int>(turn.tokens.size());
  std::vector<Span> spans;
  const auto add = [&](SpanKind kind, int from, int to) {
    if (to > from) spans.push_back({.kind = kind, .begin = from, .end = to});
  };
  add(first ? SpanKind::Prompt : SpanKind::Observation, 0, begin);
  add(SpanKind::Think, begin, begin + thought);
  add(SpanKind::Action, begin + thought, end);
  add(SpanKind::Observation, end, size);
  return spans;
}

/// A turn for each run of sampled tokens, with the observation behind it.
Tree tree_of(const Demonstration& trajectory, const Tokenizer& tokenizer, const std::string& think_tag) {
  Tree tree;
  const std::size_t size = trajectory.tokens.size();
  for (std::size_t begin = 0; begin < size;) {
    const auto said = [&](std::size_t t) { return t < size && trajectory.is_said[t]; };
    std::size_t sampled = begin;
    while (sampled < size && !said(sampled)) ++sampled;
    std::size_t end = sampled;
    while (said(end)) ++end;
    std::size_t next = end;
    while (next < size && !said(next)) ++next;
    Turn turn{.parent = static_cast<int>(tree.turns.size()) - 1,
              .tokens = {trajectory.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                         trajectory.tokens.begin() + static_cast<std::ptrdiff_t>(next)},
              .sampled_begin = static_cast<int>(sampled - begin),
              .sampled_end = static_cast<int>(end - begin)};
    const auto response = std::span(turn.tokens).subspan(sampled - begin, end - sampled);
    turn.spans = spans_of(turn, begin == 0, tokens_of_thought(tokenizer, response, think_tag));
    tree.turns.push_back(std::move(turn));
    begin = next;
  }
  return tree;
}

/// Writes the record's log-probabilities; false if those of some response are not as many as its tokens.
bool write_log_probs(const std::vector<std::vector<double>>& log_probs, Tree& tree) {
  if (log_probs.size() != tree.turns.size()) return false;
  for (std::size_t n = 0; n < tree.turns.size(); ++n)
    if (std::ssize(log_probs[n]) != tree.turns[n].num_sampled()) return false;
  for (std::size_t n = 0; n < tree.turns.size(); ++n) {
    const Turn& turn = tree.turns[n];
    auto& column = tree.columns.edit(Column::LogProbRollout, static_cast<int>(n), static_cast<int>(turn.tokens.size()));
    std::ranges::copy(log_probs[n], column.begin() + turn.sampled_begin);
  }
  return true;
}

/// The name of a rollout's task: the record's own, or one for all that begin alike.
class TaskNames {
 public:
  std::string of(const ImportedRollout& rollout, const Demonstration& tokens) {
    if (!rollout.task.empty()) return rollout.task;
    const auto begin = std::ranges::find(tokens.is_said, true) - tokens.is_said.begin();
    std::vector<TokenId> prompt(tokens.tokens.begin(), tokens.tokens.begin() + begin);
    const auto number = names_.size();
    return "task_" + std::to_string(names_.try_emplace(std::move(prompt), number).first->second);
  }

 private:
  std::map<std::vector<TokenId>, std::size_t> names_{};
};

}  // namespace

Result<ImportedGroups> import_groups(const ImportedRollouts& all, const ChatFamily& chat,
                                     const RolloutImportOptions& options) {
  ImportedGroups out;
  std::map<std::pair<std::int64_t, std::string>, std::size_t> numbers;
  std::vector<std::string> problems;
  TaskNames names;
  std::int64_t first_step = std::numeric_limits<std::int64_t>::max();
  for (const ImportedRollout& rollout : all.rollouts) first_step = std::min(first_step, rollout.step);
  for (std::size_t i = 0; i < all.rollouts.size(); ++i) {
    const ImportedRollout& rollout = all.rollouts[i];
    if (is_empty(rollout)) {
      ++out.failed;
      continue;
    }
    const auto tokens = tokens_of(rollout, chat);
    const std::string problem = tokens ? problem_of(*tokens) : tokens.error().message;
    if (!problem.empty()) {
      problems.push_back(all.lines[i] + problem);
      if (problems.size() == kMostProblems) break;
      continue;
    }
    const std::int64_t step = rollout.step + (first_step == 0 ? 1 : 0);
    const std::string task = names.of(rollout, *tokens);
    const auto [found, is_new] = numbers.try_emplace({step, task}, out.groups.size());
    if (is_new) out.groups.push_back({.uid = task, .step = step, .ground_truth = rollout.truths, .info = rollout.info});
    Group& group = out.groups[found->second];
    Tree tree = tree_of(*tokens, chat.tokenizer(), options.think_tag);
    tree.turns.back().reward = rollout.score;
    const int sibling = static_cast<int>(group.trees.size());
    tree.leaves.push_back({.turn = static_cast<int>(tree.turns.size()) - 1,
                           .sibling = sibling,
                           .trajectory_id = task + "." + std::to_string(sibling),
                           .outcome = rollout.outcome,
                           .score = rollout.score,
                           .success = rollout.score >= options.success_score,
                           .measures = rollout.measures});
    if (!rollout.log_probs.empty()) ++(write_log_probs(rollout.log_probs, tree) ? out.log_probs : out.not_aligned);
    group.trees.push_back(std::move(tree));
  }
  if (!problems.empty()) return join_errors(problems);
  return out;
}

}  // namespace carnot
