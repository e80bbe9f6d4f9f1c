// studies/actfocus_signals.cpp -- ActFocus: which signals stay what they were while the policy trains, arXiv:2605.14558
#include <array>
#include <cmath>

#include "carnot/core/base/statistics.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/opened_policy.h"
#include "carnot/studies/rollout_analysis.h"

namespace carnot {
namespace {

constexpr std::array<std::string_view, 4> kSignals = {"reference energy", "reference entropy", "surprisal",
                                                      "log-probability shift"};
constexpr std::array<std::string_view, 4> kPaper = {"does not move", "does not move", "drifts", "drifts"};

/// Every signal on every action or think token of the texts, under one checkpoint.
using Signals = std::array<std::vector<double>, kSignals.size()>;

Signals signals_of(const std::vector<Group>& groups, SampledKind kind) {
  Signals signals;
  for (const Trajectory& one : trajectories(groups)) {
    if (!one.leaf().is_included()) continue;
    const auto energy = sampled_values(one, Column::EnergyReference, kind),
               entropy = sampled_values(one, Column::EntropyReference, kind);
    const auto old = sampled_values(one, Column::LogProbOld, kind),
               reference = sampled_values(one, Column::LogProbReference, kind);
    for (std::size_t t = 0; t < old.size(); ++t) {
      signals[0].push_back(energy[t]);
      signals[1].push_back(entropy[t]);
      signals[2].push_back(-old[t]);
      signals[3].push_back(old[t] - reference[t]);
    }
  }
  return signals;
}

class ActfocusSignals final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("tasks", tasks_, "validation tasks whose rollouts are the text", at_least(1));
    enum_field(visit, "tokens", tokens_, {"all", "think", "action"}, "which sampled tokens are compared");
  }

  Result<AnalysisReport> run(const AnalysisInput& input) override {
    std::vector<Group> text;
    int vocabulary = 0;
    std::vector<std::string> names;
    std::vector<Signals> by_checkpoint;
    for (const std::filesystem::path& path : input.paths) {
      CARNOT_ASSIGN_OR_RETURN(auto opened, open_policy(path, input.overrides));
      const LogProbPassOptions options{.max_tokens = opened.recipe.rollout.log_prob_tokens,
                                       .temperature = opened.recipe.rollout.options.sampling.temperature};
      if (text.empty()) {
        const RolloutSettings& rollout = opened.recipe.rollout;
        const Generation generation = make_generation(opened.bundle, rollout, tasks_ * rollout.options.group_size);
        text = roll_out(opened, *generation.engine, tasks_);
        measure_reference(*opened.bundle.policy, text, options);
        vocabulary = opened.bundle.tokenizer->vocab_size();
      } else if (opened.bundle.tokenizer->vocab_size() != vocabulary) {
        return Error{path.string() + ": has another tokenizer than " + input.paths.front().string()};
      }
      measure_old_policy(*opened.bundle.policy, text, options);
      names.push_back(opened.checkpoint.filename().string());
      by_checkpoint.push_back(signals_of(text, tokens_));
    }
    return report_of(names, by_checkpoint);
  }

 private:
  static AnalysisReport report_of(const std::vector<std::string>& names, const std::vector<Signals>& by_checkpoint) {
    AnalysisReport report;
    Table table{.name = "drift",
                .columns = {"signal", "from", "to", "Pearson", "mean absolute change", "deviation", "checkpoint"}};
    for (std::size_t s = 0; s < kSignals.size(); ++s)
      for (std::size_t from = 0; from + 1 < names.size(); ++from) {
        const std::vector<double>&before = by_checkpoint[from][s], &after = by_checkpoint.back()[s];
        const auto correlation = pearson(before, after);
        std::vector<double> change;
        for (std::size_t t = 0; t < before.size(); ++t) change.push_back(std::abs(after[t] - before[t]));
        table.add(kSignals[s], names[from], names.back(), correlation.value_or(std::nan("")), mean(change),
                  std_population(after), std::to_string(from) + ": " + names[from]);
        report.find(std::string(kSignals[s]) + ", " + names[from] + " to " + names.back(), std::string(kPaper[s]),
                    correlation_text({.value = correlation, .pairs = before.size()}) + ", mean change " +
                        number_text(mean(change)));
      }
    report.tables = {std::move(table)};
    report.figures = {{.title = "Correlation of each token's signal with its value at the last checkpoint",
                       .table = "drift",
                       .draw = Draw::Bars,
                       .x = "checkpoint",
                       .y = {"Pearson"},
                       .series = {"signal"},
                       .y_axis = {.low = -1, .high = 1}}};
    report.notes = {
        "The first checkpoint is the frozen reference, and the text is what it sampled; every checkpoint scores that "
        "text. The reference's signals are the same by construction.",
        "The shift is 0 everywhere at the reference itself, which correlates with nothing: give three checkpoints to "
        "see how it drifts."};
    return report;
  }

  int tasks_ = 32;
  SampledKind tokens_ = SampledKind::Any;
};

}  // namespace

std::unique_ptr<Analysis> actfocus_signals() { return std::make_unique<ActfocusSignals>(); }

}  // namespace carnot
