#include "carnot/core/env/environment.h"

#include <ostream>

#include "carnot/core/cli/command.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/config/reader.h"
#include "carnot/core/env/play.h"

namespace carnot {
namespace {

/// A section's name, for the pass that finds out which options it has.
struct NameOnly {
  std::string name{};
  void fields(FieldVisitor& visit) { visit.field("name", name, "environment"); }
};

struct SeedOnly {
  std::int64_t seed = 0;
  void fields(FieldVisitor& visit) { visit.field("seed", seed, "of the run"); }
};

/// An environment with options from the command line or a recipe, played by hand.
class EnvironmentCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("NAME", options_.name, "`carnot list environments` prints them; or a recipe's file",
                 Presence::Required);
    take.operand("KEY=VALUE", overrides_, "options of the environment, as in a recipe's `env` section: dim_x=8");
    take.seed("--seed", "N", options_.seed, "of the instance");
    take.seed("--run-seed", "N", run_seed_, "the recipe's `seed`, of what all instances share");
    take.flag("--json", options_.json, "one object a line");
    take.flag("--prompt", options_.prompt,
              "what a policy sees; each line of input is one response, or the call of a tool: "
              R"({"name": "calculator", "arguments": {"expression": "2 + 2"}})");
  }

  Exit run(const Console& console) override { return ended(play_on(console), console); }

  Exit print_keys(const Console& console) override {
    if (options_.name.empty() || is_recipe()) return Exit::Success;
    auto factory = make_environment_factory(options_.name);
    if (!factory) return report(console, factory.error());
    FieldTable table;
    table.add("", **factory);
    console.out << "\nKeys of " << options_.name << ":\n" << help_text(table) << std::flush;
    return Exit::Success;
  }

 private:
  using Factory = std::unique_ptr<EnvironmentFactory>;

  bool is_recipe() const { return options_.name.ends_with(".yaml") || options_.name.ends_with(".yml"); }

  /// Until the instance is done or the console's input ends.
  Status play_on(const Console& console) {
    auto factory = is_recipe() ? of_recipe() : of_name();
    if (!factory) return factory.error();
    CARNOT_RETURN_IF_ERROR((*factory)->prepare(run_seed_));
    return play(**factory, options_, console.in, console.out);
  }

  Result<Factory> of_name() const {
    auto factory = make_environment_factory(options_.name);
    if (!factory) return factory.error();
    CARNOT_ASSIGN_OR_RETURN(const auto document,
                            Document::parse("", "command line", {.overrides = overrides_, .aliases = {}}));
    ConfigReader reader(document);
    reader.read("", **factory);
    CARNOT_RETURN_IF_ERROR(reader.finish());
    return std::move(factory).value();
  }

  /// The recipe's `env` section, and its seed where the command line has none.
  Result<Factory> of_recipe() {
    std::vector<std::string> overrides;
    for (const std::string& one : overrides_) overrides.push_back((one.starts_with("env.") ? "" : "env.") + one);
    CARNOT_ASSIGN_OR_RETURN(const auto document, Document::load(options_.name, {.overrides = overrides}));
    ConfigReader reader(document);
    for (const auto& [key, setting] : document.settings())
      if (const std::string section = key.substr(0, key.find('.')); section != "env") reader.skip(section);
    NameOnly choice;
    SeedOnly run{.seed = static_cast<std::int64_t>(run_seed_)};
    reader.read("env", choice);
    reader.read("", run);
    if (choice.name.empty()) return Error{options_.name + ": names no environment; expected env: NAME"};
    auto factory = make_environment_factory(choice.name);
    if (!factory) return factory.error();
    reader.read("env", **factory);
    CARNOT_RETURN_IF_ERROR(reader.finish());
    options_.name = choice.name;
    if (run_seed_ == 0) run_seed_ = static_cast<std::uint64_t>(run.seed);
    return std::move(factory).value();
  }

  PlayOptions options_;
  std::uint64_t run_seed_ = 0;
  std::vector<std::string> overrides_;  ///< a recipe's `env.` keys without that prefix
};

}  // namespace

CommandEntry environment_entry() {
  return {.name = "env",
          .arguments = "NAME|RECIPE [key=value ...]",
          .summary = "play an environment by hand",
          .example = "frozen_lake --seed 3",
          .settings = Settings::OfItsOwn,
          .make = make_command<EnvironmentCommand>};
}

}  // namespace carnot
