// Information gain (arXiv:2510.14967): the answer's probability behind each turn, against the one before it.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "carnot/base/statistics.h"
#include "carnot/data/trajectory.h"
#include "carnot/rollout/scorer.h"
#include "carnot/rollout/scoring_pass.h"

namespace carnot {
namespace {

struct Answer {
  std::vector<TokenId> open_lead{};  ///< where the context has opened the think tag
  std::vector<TokenId> lead{};
  std::vector<TokenId> tokens{};
  std::string think{};
};

/// Whose score a sequence is: a turn of a tree, or the group's prompt.
struct Asked {
  Group* group = nullptr;
  Tree* tree = nullptr;
  int turn = -1;  ///< -1: the prompt
};

struct Questions {
  std::vector<ScoredSequence> sequences{};
  std::vector<Asked> asked{};
};

Answer answer_of(const Tokenizer& tokenizer, const AnswerLead& lead, const std::string& text) {
  Answer answer;
  answer.think = "<" + lead.think_tag + ">";
  // Byte-level BPE writes a blank and the word behind it as one token: the blank belongs to the answer.
  const bool blank = lead.text.ends_with(' ');
  const std::string before = blank ? lead.text.substr(0, lead.text.size() - 1) : lead.text;
  answer.lead = tokenizer.encode(before);
  answer.open_lead = before.starts_with(answer.think) ? tokenizer.encode(before.substr(answer.think.size())) : answer.lead;
  answer.tokens = tokenizer.encode(blank ? " " + text : text);
  return answer;
}

bool opens_think(const Tokenizer& tokenizer, std::span<const TokenId> context, const Answer& answer) {
  const std::size_t enough = std::min(context.size(), answer.think.size());
  return tokenizer.decode(context.last(enough)).ends_with(answer.think);
}

void ask(Questions& questions, const Tokenizer& tokenizer, std::span<const TokenId> context, const Answer& answer,
         const Asked& asked) {
  ScoredSequence sequence;
  sequence.tokens.assign(context.begin(), context.end());
  const auto& lead = opens_think(tokenizer, context, answer) ? answer.open_lead : answer.lead;
  sequence.tokens.insert(sequence.tokens.end(), lead.begin(), lead.end());
  for (TokenId token : answer.tokens) {
    sequence.targets.push_back(static_cast<int>(sequence.tokens.size()));
    sequence.tokens.push_back(token);
  }
  questions.sequences.push_back(std::move(sequence));
  questions.asked.push_back(asked);
}

/// The prompt once, and every turn that something follows once.
void ask_group(Questions& questions, const Tokenizer& tokenizer, Group& group, const Answer& answer) {
  bool asked_prompt = false;
  for (std::size_t t = 0; t < group.trees.size(); ++t) {
    Tree& tree = group.trees[t];
    std::vector<bool> asked(tree.turns.size(), false);
    for (std::size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
      if (!tree.leaves[leaf].counts()) continue;
      const Trajectory view = trajectory(group, 0, static_cast<int>(t), static_cast<int>(leaf));
      const std::vector<TokenId> tokens = view.tokens();
      if (!asked_prompt) {
        ask(questions, tokenizer, std::span(tokens).first(static_cast<std::size_t>(view.sampled_begin(0))), answer,
            {.group = &group});
        asked_prompt = true;
      }
      int begin = 0;
      for (int k = 0; k + 1 < view.num_turns(); ++k) {
        if (view.turn(k).context == Context::Fresh) begin = view.turn_offsets[static_cast<std::size_t>(k)];
        const int turn = view.turns[static_cast<std::size_t>(k)];
        if (asked[static_cast<std::size_t>(turn)]) continue;
        asked[static_cast<std::size_t>(turn)] = true;
        const int end = view.turn_offsets[static_cast<std::size_t>(k) + 1];
        const auto context =
            std::span(tokens).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        ask(questions, tokenizer, context, answer, {.group = &group, .tree = &tree, .turn = turn});
      }
    }
  }
}

/// One score per question: the mean over the answer's tokens, as a probability where that is asked for.
std::vector<double> answers_scored(const Model& policy, const Questions& questions, const InfoGainOptions& gain,
                                   const ScoreOptions& options) {
  const double temperature = options.temperature == 0 ? 1 : options.temperature;
  const auto log_probs = score_targets(policy, questions.sequences, options.max_tokens, temperature).log_prob;
  std::vector<double> scores;
  std::size_t at = 0;
  for (const ScoredSequence& sequence : questions.sequences) {
    const double score = mean(std::span(log_probs).subspan(at, sequence.targets.size()));
    scores.push_back(gain.measure == GainMeasure::Probability ? std::exp(score) : score);
    at += sequence.targets.size();
  }
  return scores;
}

/// The difference to the turn before; a parent stands before its children in the questions of a tree.
void write_gains(const Questions& questions, const std::vector<double>& scores, const InfoGainOptions& gain) {
  std::map<std::pair<const Tree*, int>, double> score_of;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Asked& asked = questions.asked[i];
    if (asked.tree == nullptr) {
      asked.group->query_baseline = scores[i];
      continue;
    }
    score_of[{asked.tree, asked.turn}] = scores[i];
    Turn& turn = asked.tree->turns[static_cast<std::size_t>(asked.turn)];
    if (turn.parent >= 0) {
      turn.info_gain = scores[i] - score_of.at({asked.tree, turn.parent});
    } else if (gain.query_baseline) {
      turn.info_gain = scores[i] - *asked.group->query_baseline;
    }
  }
}

}  // namespace

void score_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                     const InfoGainOptions& gain, const ScoreOptions& options) {
  Questions questions;
  for (Group& group : groups) {
    group.query_baseline.reset();
    for (Tree& tree : group.trees)
      for (Turn& turn : tree.turns) turn.info_gain.reset();
    if (group.ground_truth.empty() || group.ground_truth.front().empty()) continue;
    ask_group(questions, tokenizer, group, answer_of(tokenizer, lead, group.ground_truth.front()));
  }
  write_gains(questions, answers_scored(policy, questions, gain, options), gain);
}

}  // namespace carnot
