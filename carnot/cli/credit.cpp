#include "carnot/cli/credit.h"

#include <ostream>

#include "carnot/cli/entries.h"
#include "carnot/config/printer.h"

namespace carnot {
namespace {

class CreditCommand final : public Command {
 public:
  explicit CreditCommand(const CreditExplainer& explainer) : explainer_(explainer) {}

  void declare(OptionParser& take) override {
    take.operand("FILE", request_.file, "rollouts: docs/trajectory_format.md", Presence::Required);
    take.text("--method", "M", request_.method, "method or composition: grpo + aem", Presence::Required);
    take.text("--output", "FILE", output_, "file to write; default: standard output");
    take.flag("--explain", explain_,
              "also ratio, clip_state and gradient of each token, and the critic's, where rows hold `logp`");
    take.operand("KEY=VALUE", request_.overrides,
                 "options of the method, as in a recipe's `method` section, and objective.* keys");
  }

  Exit run(const Console& console) override {
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
    console.out << "Keys of " << request_.method << ":\n" << help_text(table) << std::flush;
    return Exit::Success;
  }

 private:
  CreditExplainer explainer_;
  CreditRequest request_;
  std::filesystem::path output_;  ///< empty: standard output
  bool explain_ = false;
};

}  // namespace

CommandEntry credit_entry(const CreditExplainer& explainer) {
  return {.name = "credit",
          .arguments = "FILE --method M [key=value ...]",
          .summary = "recompute credit on rollouts",
          .settings = Settings::OfItsOwn,
          .make = [explainer] { return std::make_unique<CreditCommand>(explainer); }};
}

}  // namespace carnot
