#include "carnot/rollout/info_gain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "carnot/base/log.h"
#include "carnot/base/statistics.h"
#include "carnot/data/trajectory.h"
#include "carnot/rollout/forked_log_probs.h"

namespace carnot {
namespace {

struct Answer {
  std::vector<TokenId> open_lead{};  ///< where the context has opened the think tag
  std::vector<TokenId> lead{};
  std::vector<TokenId> tokens{};
  std::string think{};
};

/// Whose gain an answer measures: a turn of a tree, or the group's prompt.
struct Asked {
  Group* group = nullptr;
  Tree* tree = nullptr;
  int turn = -1;  ///< -1: the prompt
};

struct Questions {
  std::vector<SharedContext> contexts{};
  std::vector<ForkedAnswer> answers{};
  std::vector<Asked> asked{};  ///< by answer
};

/// An error as of Tokenizer::try_encode().
Result<Answer> answer_of(const Tokenizer& tokenizer, const AnswerLead& lead, const std::string& text) {
  Answer answer;
  answer.think = "<" + lead.think_tag + ">";
  // Byte-level BPE writes a blank and the word after it as one token: the blank belongs to the answer.
  const bool blank = lead.text.ends_with(' ');
  const std::string before = blank ? lead.text.substr(0, lead.text.size() - 1) : lead.text;
  answer.lead = tokenizer.encode(before);
  answer.open_lead =
      before.starts_with(answer.think) ? tokenizer.encode(before.substr(answer.think.size())) : answer.lead;
  auto tokens = tokenizer.try_encode_content(blank ? " " + text : text);
  if (!tokens) return tokens.error();
  answer.tokens = std::move(tokens).value();
  return answer;
}

/// The text at the end of a context, of `size` bytes or more where there are so many.
std::string text_before(const Questions& questions, const Tokenizer& tokenizer, int context, std::size_t size) {
  std::string text;
  for (int at = context; at >= 0 && text.size() < size; at = questions.contexts[at].parent)
    text = tokenizer.decode(questions.contexts[at].tokens) + text;
  return text;
}

void ask(Questions& questions, const Tokenizer& tokenizer, int context, const Answer& answer, const Asked& asked) {
  const bool open = text_before(questions, tokenizer, context, answer.think.size()).ends_with(answer.think);
  questions.answers.push_back(
      {.context = context, .lead = open ? answer.open_lead : answer.lead, .tokens = answer.tokens});
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

/// Every turn of the leaf that another follows and that no earlier leaf has asked after.
void ask_leaf(Questions& questions, const Tokenizer& tokenizer, Group& group, Tree& tree, int leaf,
              const Answer& answer, int prompt, std::vector<int>& context_of) {
  const std::vector<int> turns = path(tree, leaf);
  for (std::size_t k = 0; k + 1 < turns.size(); ++k) {
    const Turn& turn = tree.turns[turns[k]];
    int& context = context_of[turns[k]];
    if (context >= 0) continue;
    const Turn& next = tree.turns[turns[k + 1]];
    // What a fresh prompt shows of the turn before is in that prompt.
    context = next.context == Context::Fresh
                  ? add_context(questions, -1, std::span(next.tokens).first(next.sampled_begin))
                  : add_turn(questions, turn, k > 0 ? context_of[turns[k - 1]] : -1, prompt);
    ask(questions, tokenizer, context, answer, {.group = &group, .tree = &tree, .turn = turns[k]});
  }
}

/// The prompt once, and every turn that something follows once.
void ask_group(Questions& questions, const Tokenizer& tokenizer, Group& group, const Answer& answer) {
  int prompt = -1;
  for (Tree& tree : group.trees) {
    std::vector<int> context_of(tree.turns.size(), -1);
    for (std::size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
      if (!tree.leaves[leaf].is_included()) continue;
      if (prompt < 0) {
        const Turn& first = tree.turns[path(tree, static_cast<int>(leaf)).front()];
        prompt = add_context(questions, -1, std::span(first.tokens).first(first.sampled_begin));
        ask(questions, tokenizer, prompt, answer, {.group = &group});
      }
      ask_leaf(questions, tokenizer, group, tree, static_cast<int>(leaf), answer, prompt, context_of);
    }
  }
}

/// Of each answer: the mean log-probability of its tokens, or its exponential, as the options say.
std::vector<double> likelihoods(const Model& policy, const Questions& questions, const InfoGainOptions& gain,
                                LogProbPassOptions options) {
  if (options.temperature == 0) options.temperature = 1;
  const std::vector<double> log_probs = forked_log_probs(policy, questions.contexts, questions.answers, options);
  std::vector<double> likelihood;
  std::size_t at = 0;
  for (const ForkedAnswer& answer : questions.answers) {
    const double log_prob = mean(std::span(log_probs).subspan(at, answer.tokens.size()));
    likelihood.push_back(gain.measure == GainMeasure::Probability ? std::exp(log_prob) : log_prob);
    at += answer.tokens.size();
  }
  return likelihood;
}

/// The difference to the turn before; a parent comes before its children in the questions of a tree.
void write_gains(const Questions& questions, const std::vector<double>& likelihood, const InfoGainOptions& gain) {
  std::map<std::pair<const Tree*, int>, double> likelihood_of;
  for (std::size_t i = 0; i < likelihood.size(); ++i) {
    const Asked& asked = questions.asked[i];
    if (asked.tree == nullptr) {
      asked.group->query_baseline = likelihood[i];
      continue;
    }
    likelihood_of[{asked.tree, asked.turn}] = likelihood[i];
    Turn& turn = asked.tree->turns[asked.turn];
    if (turn.parent >= 0) {
      turn.info_gain = likelihood[i] - likelihood_of.at({asked.tree, turn.parent});
    } else if (gain.query_baseline) {
      turn.info_gain = likelihood[i] - *asked.group->query_baseline;
    }
  }
}

}  // namespace

void measure_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                       const InfoGainOptions& gain, const LogProbPassOptions& options) {
  Questions questions;
  const auto answer_questions = [&] {
    write_gains(questions, likelihoods(policy, questions, gain, options), gain);
    questions = {};
  };
  std::size_t tokens = 0;
  for (Group& group : groups) {
    group.query_baseline.reset();
    for (Tree& tree : group.trees)
      for (Turn& turn : tree.turns) turn.info_gain.reset();
    if (group.ground_truth.empty() || group.ground_truth.front().empty()) continue;
    const auto answer = answer_of(tokenizer, lead, group.ground_truth.front());
    if (!answer) {
      log_warning(group.uid + ": no information gain, the ground truth cannot be tokenised: " + answer.error().message);
      continue;
    }
    const std::size_t asked = questions.contexts.size();
    ask_group(questions, tokenizer, group, *answer);
    for (std::size_t i = asked; i < questions.contexts.size(); ++i) tokens += questions.contexts[i].tokens.size();
    // The cache holds whole groups, and about as many tokens as a packed pass has rows.
    if (tokens < static_cast<std::size_t>(options.max_tokens)) continue;
    answer_questions();
    tokens = 0;
  }
  answer_questions();
}

}  // namespace carnot
