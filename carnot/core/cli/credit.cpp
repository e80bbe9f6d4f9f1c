#include "carnot/core/cli/credit.h"

#include <optional>
#include <ostream>

#include "carnot/core/cli/command.h"
#include "carnot/core/cli/run_files.h"
#include "carnot/core/config/printer.h"

namespace carnot {
namespace {

class CreditCommand final : public Command {
 public:
  explicit CreditCommand(const CreditExplainer& explainer) : explainer_(explainer) {}

  void declare(OptionParser& take) override {
    take.operand("PATH", path_, "rollouts (docs/trajectory_format.md), or a run folder: its latest",
                 Presence::Required);
    take.count("--step", "N", step_, 0, "of a run folder: the rollouts of this step");
    take.text("--method", "M", request_.method, "method or composition: grpo + aem", Presence::Required);
    take.text("--output", "FILE", output_, "file to write; default: standard output");
    take.flag("--explain", explain_,
              "also ratio, clip_state and gradient of each token, and the critic's, where rows hold `logp`");
    take.operand("KEY=VALUE", request_.overrides,
                 "options of the method, as in a recipe's `method` section, and objective.* keys");
  }

  Exit run(const Console& console) override {
    auto file = rollouts_file();
    if (!file) return report(console, file.error());
    request_.file = std::move(file).value();
    const auto rows = credit_rows(request_, explain_ ? explainer_.needs : FurtherNeeds());
    if (!rows) return report(console, rows.error());
    warn(console, rows->method.warnings);
    if (!explain_) return write_output(written_rows(*rows), output_, console);
    const auto explained = explainer_.explain(*rows);
    if (!explained) return report(console, explained.error());
    for (const std::string& term : explained->excluded) report(console, {"`gradient` leaves out " + term});
    return write_output(written_rows(*rows, explained->lists), output_, console);
  }

  Exit print_keys(const Console& console) override {
    if (request_.method.empty()) return Exit::Success;
    auto recipe = parse_method(request_.method);
    if (!recipe) return report(console, recipe.error());
    FieldTable table;
    table.add("", *recipe);
    console.out << "\nKeys of " << request_.method << ":\n" << help_text(table) << std::flush;
    return Exit::Success;
  }

 private:
  Result<std::filesystem::path> rollouts_file() const {
    CARNOT_ASSIGN_OR_RETURN(const auto all, rollouts_at(path_));
    if (!step_) return all.back().path;
    if (!std::filesystem::is_directory(path_)) return Error{"--step: expected a run folder, found " + path_.string()};
    const auto chosen = choose_steps(all, {std::to_string(*step_)}, 1);
    if (!chosen) return Error{path_.string() + ": " + chosen.error().message};
    return chosen->front().path;
  }

  CreditExplainer explainer_;
  std::filesystem::path path_;
  std::optional<int> step_;
  CreditRequest request_;
  std::filesystem::path output_;  ///< empty: standard output
  bool explain_ = false;
};

}  // namespace

CommandEntry credit_entry(const CreditExplainer& explainer) {
  return {.name = "credit",
          .arguments = "PATH --method M [key=value ...]",
          .summary = "recompute credit on rollouts",
          .example = "runs/quickstart --step 60 --method \"grpo + aem\" aem.lambda=0.5 --output aem.jsonl",
          .settings = Settings::OfItsOwn,
          .make = [explainer] { return std::make_unique<CreditCommand>(explainer); }};
}

}  // namespace carnot
