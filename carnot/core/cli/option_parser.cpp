#include "carnot/core/cli/option_parser.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>

#include "carnot/core/config/numbers.h"

namespace carnot {
namespace {

Error expected(const std::string& what, const std::string& found) {
  return {"expected " + what + ", found " + (found.empty() ? "nothing" : "'" + found + "'")};
}

std::string describe_number(const Limits& limits) {
  const std::string accepted = describe(limits);
  return accepted.empty() ? "a number" : "a number " + accepted;
}

}  // namespace

struct OptionParser::State {
  CLI::App app;
  std::vector<OptionUsage> usage;
};

OptionParser::OptionParser() : state_(std::make_unique<State>()) {
  state_->app.set_help_flag("-h,--help", "");
  state_->app.allow_extras();
}

OptionParser::~OptionParser() = default;

void OptionParser::declare(OptionUsage option, const Read& read) {
  const CLI::callback_t take = [read, name = option.name](const CLI::results_t& values) {
    for (const std::string& value : values)
      if (const Status status = read(value); !status) throw CLI::ValidationError(name, status.error().message);
    return true;
  };
  CLI::Option* declared = state_->app.add_option(option.name, take, option.help);
  if (option.repeated) {
    declared->expected(1, CLI::detail::expected_max_vector_size);
    declared->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    declared->allow_extra_args(option.operand);
  } else {
    declared->expected(1);
  }
  declared->required(option.required);
  state_->usage.push_back(std::move(option));
}

Result<double> OptionParser::number_in(const std::string& text, const Limits& limits) {
  const auto number = parse_number(text);
  const std::string wrong = number ? violation(limits, *number) : describe_number(limits);
  if (!wrong.empty()) return expected(wrong, text);
  return *number;
}

Result<int> OptionParser::count_in(const std::string& text, int least) {
  const Limits limits = count_from(least);
  const auto count = parse_whole_number(text);
  if (!count || static_cast<double>(*count) < limits.low) return expected("an integer " + describe(limits), text);
  if (const std::string wrong = violation(limits, static_cast<double>(*count)); !wrong.empty())
    return expected(wrong, text);
  return static_cast<int>(*count);
}

Result<std::string> OptionParser::word_in(const std::string& text, const std::vector<std::string>& words) {
  if (const std::string wrong = violation(one_of(words), text); !wrong.empty()) return expected(wrong, text);
  return text;
}

void OptionParser::flag(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag_callback(name, [&value] { value = true; });
  state_->usage.push_back({.name = name, .help = help});
}

void OptionParser::flag_off(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag_callback(name, [&value] { value = false; });
  state_->usage.push_back({.name = name, .help = help});
}

void OptionParser::list(const std::string& name, const std::string& argument, std::vector<std::string>& values,
                        const std::string& help) {
  declare({.name = name, .argument = argument, .help = help}, [&values](const std::string& text) -> Status {
    for (std::string& value : CLI::detail::split(text, ',')) values.push_back(std::move(value));
    return Done{};
  });
}

void OptionParser::seed(const std::string& name, const std::string& argument, std::uint64_t& value,
                        const std::string& help) {
  declare({.name = name, .argument = argument, .help = help}, [&value](const std::string& text) -> Status {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size())
      return expected("an integer at least 0, below 2^64", text);
    return Done{};
  });
}

Result<OptionParser::Outcome> OptionParser::parse(std::span<const std::string> arguments) {
  Outcome outcome;
  try {
    state_->app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    outcome.help_wanted = true;
  } catch (const CLI::RequiredError& error) {
    // An unknown flag may be why something is missing, and comes first.
    outcome.unexpected = state_->app.remaining();
    if (outcome.unexpected.empty()) return Error{error.what()};
    return outcome;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    const bool twice = what.find("At Most") != std::string::npos;
    return Error{what.substr(0, what.find(':')) + (twice ? ": given twice" : ": expected a value after it")};
  } catch (const CLI::ParseError& error) {
    return Error{error.what()};
  }
  outcome.unexpected = state_->app.remaining();
  return outcome;
}

const std::vector<OptionUsage>& OptionParser::usage() const { return state_->usage; }

}  // namespace carnot
