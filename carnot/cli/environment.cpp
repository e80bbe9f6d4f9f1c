#include "carnot/env/environment.h"

#include <ostream>

#include "carnot/cli/entries.h"
#include "carnot/config/document.h"
#include "carnot/config/printer.h"
#include "carnot/config/reader.h"
#include "carnot/env/play.h"

namespace carnot {
namespace {

/// An environment with options from the command line, played by hand.
class EnvironmentCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("NAME", options_.name, "`carnot list environments` prints them", Presence::Required);
    take.operand("KEY=VALUE", overrides_, "options of the environment, as in a recipe's `env` section: dim_x=8");
    take.seed("--seed", "N", options_.seed, "of the instance");
    take.seed("--run-seed", "N", run_seed_, "the recipe's `seed`, of what all instances share");
    take.flag("--json", options_.json, "one object a line");
    take.flag("--prompt", options_.prompt, "what a policy sees; each line of input is one response");
  }

  Exit run(const Console& console) override { return ended(play_on(console), console); }

  Exit print_keys(const Console& console) override {
    if (options_.name.empty()) return Exit::Success;
    auto factory = make_environment_factory(options_.name);
    if (!factory) return report(console, factory.error());
    FieldTable table;
    table.add("", **factory);
    console.out << "\nKeys of " << options_.name << ":\n" << help_text(table) << std::flush;
    return Exit::Success;
  }

 private:
  /// Until the instance is done or the console's input ends.
  Status play_on(const Console& console) const {
    auto factory = make_environment_factory(options_.name);
    if (!factory) return factory.error();
    const auto document = Document::parse("", "command line", {.overrides = overrides_, .aliases = {}});
    if (!document) return document.error();
    ConfigReader reader(*document);
    reader.read("", **factory);
    if (const Status status = reader.finish(); !status) return status;
    if (const Status status = (*factory)->prepare(run_seed_); !status) return status;
    return play(**factory, options_, console.in, console.out);
  }

  PlayOptions options_;
  std::uint64_t run_seed_ = 0;
  std::vector<std::string> overrides_;  ///< a recipe's `env.` keys without that prefix
};

}  // namespace

CommandEntry environment_entry() {
  return {.name = "env",
          .arguments = "NAME [key=value ...]",
          .summary = "play an environment by hand",
          .example = "frozen_lake --seed 3",
          .settings = Settings::OfItsOwn,
          .make = make_command<EnvironmentCommand>};
}

}  // namespace carnot
