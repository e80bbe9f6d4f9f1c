#include "carnot/core/rollout/info_gain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/statistics.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/rollout/forked_log_probs.h"

namespace carnot {
namespace {

/// What an answer is scored after: a turn of a tree, or the group's prompt.
struct Asked {
  std::size_t group = 0;  ///< in Questions::groups
  int tree = -1;          ///< -1: the prompt
  int turn = -1;
};

struct Questions {
  std::vector<Group*> groups{};
  std::vector<SharedContext> contexts{};
  std::vector<ForkedAnswer> answers{};
  std::vector<Asked> asked{};  ///< by answer
};

/// The text at the end of a context: at least `size` bytes, or all of it.
std::string text_before(const Questions& questions, const Tokenizer& tokenizer, int context, std::size_t size) {
  std::string text;
  for (int at = context; at >= 0 && text.size() < size; at = questions.contexts[at].parent)
    text = text_at_end(tokenizer, questions.contexts[at].tokens, size - text.size()) + text;
  return text;
}

void ask(Questions& questions, const Tokenizer& tokenizer, int context, const AnswerPrompt& answer,
         const Asked& asked) {
  const auto lead = answer.lead_after(text_before(questions, tokenizer, context, answer.bytes_read()));
  const auto tokens = answer.tokens();
  questions.answers.push_back(
      {.context = context, .lead = {lead.begin(), lead.end()}, .tokens = {tokens.begin(), tokens.end()}});
  questions.asked.push_back(asked);
}

int add_context(Questions& questions, int parent, std::span<const TokenId> tokens) {
  questions.contexts.push_back({.parent = parent, .tokens = {tokens.begin(), tokens.end()}});
  return static_cast<int>(questions.contexts.size()) - 1;
}

/// A turn and its observation after the turn before it; a first turn after the prompt that the group shares.
int add_turn(Questions& questions, const Turn& turn, int before, int prompt) {
  const std::span<const TokenId> tokens = turn.tokens;
  if (turn.context == Context::Fresh && turn.parent >= 0) return add_context(questions, -1, tokens);
  if (turn.parent >= 0) return add_context(questions, before, tokens);
  const auto& opening = questions.contexts[prompt].tokens;
  const bool shares = tokens.size() > opening.size() && std::equal(opening.begin(), opening.end(), tokens.begin());
  return shares ? add_context(questions, prompt, tokens.subspan(opening.size())) : add_context(questions, -1, tokens);
}

/// Every turn of the leaf but the last, unless an earlier leaf has it.
void ask_leaf(Questions& questions, const Tokenizer& tokenizer, const Group& group, Asked asked, int leaf,
              const AnswerPrompt& answer, int prompt, std::vector<int>& context_of) {
  const Tree& tree = group.trees[asked.tree];
  const std::vector<int> turns = path(tree, leaf);
  for (std::size_t k = 0; k + 1 < turns.size(); ++k) {
    const Turn& turn = tree.turns[turns[k]];
    int& context = context_of[turns[k]];
    if (context >= 0) continue;
    const Turn& next = tree.turns[turns[k + 1]];
    // A fresh prompt contains whatever it shows of the turn before.
    context = next.context == Context::Fresh
                  ? add_context(questions, -1, std::span(next.tokens).first(next.sampled_begin))
                  : add_turn(questions, turn, k > 0 ? context_of[turns[k - 1]] : -1, prompt);
    asked.turn = turns[k];
    ask(questions, tokenizer, context, answer, asked);
  }
}

/// The prompt, and every turn that is followed by another, once each.
void ask_group(Questions& questions, const Tokenizer& tokenizer, Group& group, const AnswerPrompt& answer) {
  const std::size_t number = questions.groups.size();
  questions.groups.push_back(&group);
  int prompt = -1;
  for (std::size_t t = 0; t < group.trees.size(); ++t) {
    const Tree& tree = group.trees[t];
    std::vector<int> context_of(tree.turns.size(), -1);
    for (std::size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
      if (!tree.leaves[leaf].is_included()) continue;
      if (prompt < 0) {
        const Turn& first = tree.turns[path(tree, static_cast<int>(leaf)).front()];
        prompt = add_context(questions, -1, std::span(first.tokens).first(first.sampled_begin));
        ask(questions, tokenizer, prompt, answer, {.group = number});
      }
      ask_leaf(questions, tokenizer, group, {.group = number, .tree = static_cast<int>(t)}, static_cast<int>(leaf),
               answer, prompt, context_of);
    }
  }
}

AnswerLogProbs nothing_of(const Group& group) {
  AnswerLogProbs log_probs;
  for (const Tree& tree : group.trees) log_probs.turns.emplace_back(tree.turns.size());
  return log_probs;
}

std::vector<AnswerLogProbs> answers_to(const Model& policy, const Questions& questions, LogProbPassOptions options) {
  if (options.temperature == 0) options.temperature = 1;
  const std::vector<double> log_probs = forked_log_probs(policy, questions.contexts, questions.answers, options);
  std::vector<AnswerLogProbs> by_group;
  for (const Group* group : questions.groups) by_group.push_back(nothing_of(*group));
  std::size_t at = 0;
  for (std::size_t i = 0; i < questions.answers.size(); ++i) {
    const Asked& asked = questions.asked[i];
    AnswerLogProbs& of_group = by_group[asked.group];
    auto& place = asked.tree < 0 ? of_group.prompt : of_group.turns[asked.tree][asked.turn];
    place = mean(std::span(log_probs).subspan(at, questions.answers[i].tokens.size()));
    at += questions.answers[i].tokens.size();
  }
  return by_group;
}

void measure(const Model& policy, const Questions& questions, const InfoGainOptions& gain,
             const LogProbPassOptions& options) {
  const std::vector<AnswerLogProbs> answers = answers_to(policy, questions, options);
  for (std::size_t g = 0; g < answers.size(); ++g)
    CARNOT_CHECK(write_info_gain(*questions.groups[g], answers[g], gain), questions.groups[g]->uid);
}

/// Turns that are followed by another, on the paths to leaves that count; by tree. A parent comes before its children.
std::vector<std::vector<int>> followed_turns(const Group& group) {
  std::vector<std::vector<int>> all;
  for (const Tree& tree : group.trees) {
    std::vector<int>& turns = all.emplace_back();
    std::vector<bool> seen(tree.turns.size(), false);
    for (std::size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
      if (!tree.leaves[leaf].is_included()) continue;
      const std::vector<int> way = path(tree, static_cast<int>(leaf));
      for (std::size_t k = 0; k + 1 < way.size(); ++k) {
        if (!seen[way[k]]) turns.push_back(way[k]);
        seen[way[k]] = true;
      }
    }
  }
  return all;
}

bool has_included_leaf(const Group& group) {
  for (const Tree& tree : group.trees)
    for (const Leaf& leaf : tree.leaves)
      if (leaf.is_included()) return true;
  return false;
}

}  // namespace

void measure_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                       const InfoGainOptions& gain, const LogProbPassOptions& options) {
  Questions questions;
  std::size_t tokens = 0;
  for (Group& group : groups) {
    if (group.query_baseline || group.ground_truth.empty() || group.ground_truth.front().empty()) continue;
    const auto answer = AnswerPrompt::of(tokenizer, lead, group.ground_truth.front());
    if (!answer) {
      log_warning(group.uid + ": no information gain, the ground truth cannot be tokenised: " + answer.error().message);
      continue;
    }
    const std::size_t asked = questions.contexts.size();
    ask_group(questions, tokenizer, group, *answer);
    for (std::size_t i = asked; i < questions.contexts.size(); ++i) tokens += questions.contexts[i].tokens.size();
    // The cache holds whole groups, and about as many tokens as a packed pass has rows.
    if (tokens < static_cast<std::size_t>(options.max_tokens)) continue;
    measure(policy, questions, gain, options);
    questions = {};
    tokens = 0;
  }
  measure(policy, questions, gain, options);
}

void clear_info_gain(std::span<Group> groups) {
  for (Group& group : groups) {
    group.query_baseline.reset();
    for (Tree& tree : group.trees)
      for (Turn& turn : tree.turns) turn.info_gain.reset();
  }
}

bool write_info_gain(Group& group, const AnswerLogProbs& log_probs, const InfoGainOptions& gain) {
  if (!has_included_leaf(group)) return true;
  const auto followed = followed_turns(group);
  if (!log_probs.prompt) return false;
  for (std::size_t t = 0; t < followed.size(); ++t)
    for (const int turn : followed[t])
      if (!log_probs.turns[t][turn]) return false;
  const auto likelihood = [&](double log_prob) {
    return gain.measure == GainMeasure::Probability ? std::exp(log_prob) : log_prob;
  };
  group.query_baseline = likelihood(*log_probs.prompt);
  for (std::size_t t = 0; t < followed.size(); ++t) {
    for (const int index : followed[t]) {
      Turn& turn = group.trees[t].turns[index];
      const double after = likelihood(*log_probs.turns[t][index]);
      if (turn.parent >= 0)
        turn.info_gain = after - likelihood(*log_probs.turns[t][turn.parent]);
      else if (gain.query_baseline)
        turn.info_gain = after - *group.query_baseline;
    }
  }
  return true;
}

}  // namespace carnot
