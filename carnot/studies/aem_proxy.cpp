// studies/aem_proxy.cpp -- AEM: does alpha - 1 stand for minus the surprisal beyond the entropy?, arXiv:2605.00425
#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/rollout/member.h"
#include "carnot/core/run/progress.h"
#include "carnot/studies/branch_statistics.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/opened_policy.h"

namespace carnot {
namespace {

// Many responses from one state: an estimate of the entropy over whole responses.

/// A whole response in one number and its length.
struct SampledResponse {
  double surprisal = 0;  ///< sum of its tokens' negative log-probabilities, nats
  int tokens = 0;
};

struct ResponseSampling {
  int count = 64;
  SamplingOptions sampling{};
  int max_context_tokens = 4096;
  DrawKey key{};  ///< sibling counts the responses
};

SampledResponse measured(const Response& response) {
  SampledResponse out{.tokens = response.size()};
  for (const TokenDraw& draw : response.draws()) out.surprisal -= draw.log_prob;
  return out;
}

/// Responses after `context` as episodes end them: at a stop token, a stop string or the limit. `episode` is any of
/// the environment's. Needs the engine for itself.
std::vector<SampledResponse> sample_responses(Engine& engine, const Tokenizer& tokenizer, const Episode& episode,
                                              std::span<const TokenId> context, const ResponseSampling& options) {
  const int room = options.max_context_tokens - static_cast<int>(context.size());
  CARNOT_CHECK_GT(room, 0);
  const SequenceId root = engine.start(context);
  while (!engine.prefilled(root)) engine.step();
  std::map<SequenceId, Response> open;
  for (int i = 0; i < options.count; ++i) {
    const SequenceId sequence = engine.fork(root, static_cast<int>(context.size()));
    DrawKey key = options.key;
    key.sibling = static_cast<std::uint64_t>(i);
    engine.sample(sequence, {.sampling = options.sampling,
                             .key = key,
                             .max_tokens = std::min(episode.max_response_tokens(), room),
                             .stop_tokens = episode.stop_tokens()});
    open.emplace(sequence, Response(tokenizer, episode.protocol().stop_strings));
  }
  std::vector<SampledResponse> out;
  const auto close = [&](SequenceId sequence) {
    out.push_back(measured(open.at(sequence)));
    open.erase(sequence);
    engine.release(sequence);
  };
  while (!open.empty()) {
    const StepResult& result = engine.step();
    std::vector<SequenceId> ended = result.too_long;
    for (const SampledToken& token : result.tokens) {
      const bool stopped = open.at(token.sequence).push(token.draw);
      if (stopped) engine.stop_sampling(token.sequence);
      if (stopped || token.end != SampleEnd::GoesOn) ended.push_back(token.sequence);
    }
    for (const SequenceId sequence : ended) close(sequence);
  }
  engine.release(root);
  return out;
}

/// A response that was sampled, and the state that it answers.
struct State {
  int group = 0;
  std::vector<TokenId> context{};
  double alpha = 1;
  SampledResponse response{};
};

/// The factor that AEM gives each token, by trajectory.
std::vector<std::vector<double>> factors(std::span<const Trajectory> all, const EntropyModulateOptions& options) {
  CreditTable table = fresh_credit(all);
  for (Credit& credit : table) credit.advantage.assign(credit.advantage.size(), 1);
  entropy_modulate(options).apply(all, table);
  std::vector<std::vector<double>> out;
  for (Credit& credit : table) out.push_back(std::move(credit.advantage));
  return out;
}

std::vector<TokenId> context_of(const Trajectory& one, int k) {
  const std::vector<TokenId> tokens = one.tokens();
  const bool fresh = one.turn(k).context == Context::Fresh;
  const int begin = fresh ? one.turn_offsets[k] : 0;
  return {tokens.begin() + begin, tokens.begin() + one.sampled_begin(k)};
}

SampledResponse response_of(const Trajectory& one, int k) {
  const auto& log_probs = one.tree->columns.turn(Column::LogProbRollout, one.turns[k]);
  SampledResponse out{.tokens = one.turn(k).num_sampled()};
  for (int t = one.turn(k).sampled_begin; t < one.turn(k).sampled_end; ++t) out.surprisal -= log_probs[t];
  return out;
}

std::vector<double> first_response_spreads(const std::vector<Group>& groups) {
  std::vector<double> spreads;
  for (const Group& group : groups)
    if (const auto spread = first_response_spread(group)) spreads.push_back(*spread);
  return spreads;
}

class AemProxy final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("states", states_, "that are looked at", at_least(2));
    visit.field("samples", samples_, "responses from each state", at_least(2));
    visit.field("tasks", tasks_, "validation tasks that the states come from", at_least(1));
    section(visit, "aem", modulate_, "the factors");
  }

  Result<AnalysisReport> run(const AnalysisInput& input) override {
    CARNOT_ASSIGN_OR_RETURN(auto opened, open_policy(input.paths.front(), input.overrides));
    const RolloutSettings& rollout = opened.recipe.rollout;
    const Generation generation =
        make_generation(opened.bundle, rollout, std::max(samples_ + 1, tasks_ * rollout.options.group_size));
    const std::vector<Group> groups = roll_out(opened, *generation.engine, tasks_);
    const std::vector<State> states = choose_states(groups, static_cast<std::uint64_t>(opened.recipe.run.seed));
    if (states.size() < 2)
      return Error{"aem-proxy: no group's response entropies spread by " + std::to_string(modulate_.gate) +
                   " nats (aem.gate): every factor is 1; try more tasks or aem.gate=0"};
    Table table{.name = "states", .columns = {"alpha - 1", "H - S", "H - S, a token"}};
    OpenedEnvironment environment = open_environment(opened.recipe.environment->make(Split::Validation, 0));
    CARNOT_ASSIGN_OR_RETURN(auto opening, render_prompt(*opened.bundle.chat, environment.opening));
    const Episode episode(std::move(environment), std::move(opening), *opened.bundle.chat, rollout.options.episode);
    Progress progress(input.control.out, {.terminal = input.control.terminal});
    progress.begin("states", static_cast<std::int64_t>(states.size()));
    for (std::size_t s = 0; s < states.size(); ++s) {
      if (input.control.stop_requested()) return Error{"stopped"};
      const auto sampled = sample_responses(
          *generation.engine, *opened.bundle.tokenizer, episode, states[s].context,
          {.count = samples_,
           .sampling = rollout.options.sampling,
           .max_context_tokens = rollout.options.episode.max_context_tokens,
           .key = {.seed = derive_seed(static_cast<std::uint64_t>(opened.recipe.run.seed), "aem-proxy"), .group = s}});
      add_row(states[s], sampled, table);
      progress.update(static_cast<std::int64_t>(s) + 1);
    }
    progress.end();
    std::vector<int> groups_of;
    for (const State& state : states) groups_of.push_back(state.group);
    AnalysisReport report = report_of(std::move(table), groups_of);
    report.find("deviation of entropy sums over that of surprisals, first responses, by group", "below 1",
                mean_text(first_response_spreads(groups)));
    return report;
  }

 private:
  std::vector<State> choose_states(const std::vector<Group>& groups, std::uint64_t seed) const {
    const std::vector<Trajectory> all = trajectories(groups);
    const auto alpha = factors(all, modulate_);
    std::vector<std::pair<std::size_t, int>> places;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (int k = 0; all[i].leaf().is_included() && k < all[i].num_turns(); ++k)
        if (all[i].turn(k).num_sampled() > 0 && alpha[i][all[i].sampled_begin(k)] != 1) places.emplace_back(i, k);
    RandomStream random(derive_seed(seed, "aem-proxy states"));
    random.shuffle(places);
    places.resize(std::min(places.size(), static_cast<std::size_t>(states_)));
    std::vector<State> states;
    for (const auto& [i, k] : places)
      states.push_back({.group = all[i].group_index,
                        .context = context_of(all[i], k),
                        .alpha = alpha[i][all[i].sampled_begin(k)],
                        .response = response_of(all[i], k)});
    return states;
  }

  static void add_row(const State& state, const std::vector<SampledResponse>& sampled, Table& table) {
    std::vector<double> surprisals, rates;
    for (const SampledResponse& one : sampled) {
      surprisals.push_back(one.surprisal);
      rates.push_back(one.surprisal / one.tokens);
    }
    const auto& [surprisal, tokens] = state.response;
    table.add(state.alpha - 1, -(surprisal - mean(surprisals)), -(surprisal / tokens - mean(rates)));
  }

  static AnalysisReport report_of(Table table, const std::vector<int>& groups) {
    AnalysisReport report;
    const std::vector<double> proxy = table.numbers("alpha - 1");
    const auto add = [&](const std::string& form, const std::vector<double>& target, const std::string& r,
                         const std::string& signs) {
      report.find("Pearson of alpha - 1 and H - S" + form, r,
                  correlation_text(resampled_pearson(proxy, target, groups)));
      report.find("Spearman" + form, "-", correlation_text(resampled_spearman(proxy, target, groups)));
      report.find("equal signs" + form, signs, share_text(equal_signs(proxy, target), std::ssize(proxy)));
    };
    add("", table.numbers("H - S"), "0.63", "55 of 64 (85.9 %)");
    add(", surprisal a token", table.numbers("H - S, a token"), "-", "-");
    report.tables = {std::move(table)};
    report.figures = {{.title = "AEM's factor and the surprisal it replaces",
                       .caption = "A point per state: a response's factor in its group, against how much less "
                                  "surprising it was than responses from its state are on average.",
                       .table = "states",
                       .draw = Draw::Points,
                       .x = "H - S",
                       .y = {"alpha - 1"},
                       .x_axis = {.label = "H - S, nats"}}};
    report.notes = {
        "S: surprisal of the response. H: its mean over responses sampled from the same state. States come from groups "
        "whose entropies spread beyond the gate; elsewhere alpha is 1. Intervals are percentiles over resampled "
        "groups, "
        "whose factors depend on each other. Where Pearson and Spearman differ, a few long responses decide."};
    return report;
  }

  int states_ = 64;
  int samples_ = 64;
  int tasks_ = 32;
  EntropyModulateOptions modulate_{};
};

}  // namespace

std::unique_ptr<Analysis> aem_proxy() { return std::make_unique<AemProxy>(); }

}  // namespace carnot
