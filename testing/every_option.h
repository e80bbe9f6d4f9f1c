// testing/every_option.h -- a command that takes an argument of every kind and prints what it got.
#pragma once

#include <ostream>

#include "carnot/core/cli/command.h"

namespace carnot::testing {

class EveryOption final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("RECIPE", recipe_, "YAML file", Presence::Required);
    take.operand("KEY=VALUE", overrides_, "applied over it");
    take.flag("--dry-run", dry_run_, "print");
    take.flag_off("--no-color", colour_, "brackets");
    take.text("--chat", "NAME", chat_, "a string");
    take.word("--dtype", "T", dtype_, {"float32", "float64"}, "one of some words");
    take.texts("--until", "TEXT", stops_, "several times");
    take.list("--columns", "NAMES", columns_, "separated by commas");
    take.number("--top-p", "P", top_p_, between(1e-9, 1), "a number");
    take.number("--temperature", "T", temperature_, between(0, 1e6), "a number that may be missing");
    take.count("--samples", "N", samples_, 1, "a count");
    take.count("--top-k", "K", top_k_, 0, "a count that may be missing");
    take.seed("--seed", "N", seed_, "below 2^64");
  }

  Exit run(const Console& console) override {
    console.out << recipe_.string() << " |";
    for (const auto* texts : {&overrides_, &stops_, &columns_}) {
      for (const std::string& text : *texts) console.out << ' ' << text;
      console.out << " |";
    }
    console.out << ' ' << dry_run_ << colour_ << ' ' << chat_ << ' ' << dtype_ << ' ' << top_p_ << ' '
                << temperature_.value_or(-1) << ' ' << samples_ << ' ' << top_k_.value_or(-1) << ' ' << seed_ << '\n';
    return Exit::Success;
  }

 private:
  std::filesystem::path recipe_;
  std::vector<std::string> overrides_, stops_, columns_;
  bool dry_run_ = false, colour_ = true;
  std::string chat_ = "auto", dtype_ = "float32";
  double top_p_ = 1;
  std::optional<double> temperature_;
  int samples_ = 1;
  std::optional<int> top_k_;
  std::uint64_t seed_ = 0;
};

/// The command under `name`, as one that reads a recipe.
inline CommandEntry every_option_entry(std::string_view name) {
  return {.name = name,
          .arguments = "RECIPE [key=value ...]",
          .summary = "takes everything",
          .example = "recipe.yaml",
          .settings = Settings::OfRecipe,
          .make = make_command<EveryOption>};
}

}  // namespace carnot::testing
