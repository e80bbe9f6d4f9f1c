#include "carnot/core/cli/option_parser.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>

#include "carnot/core/config/numbers.h"

namespace carnot {
namespace {

using Read = std::function<Status(const std::string&)>;

Error expected(const std::string& what, const std::string& found) {
  return {"expected " + what + ", found " + (found.empty() ? "nothing" : "'" + found + "'")};
}

std::string describe_number(const Limits& limits) {
  const std::string accepted = describe(limits);
  return accepted.empty() ? "a number" : "a number " + accepted;
}

/// Reads a string to where it belongs.
template <class Text>
Read into(Text& value) {
  return [&value](const std::string& text) -> Status {
    value = text;
    return Done{};
  };
}

template <class Number>
Read read_number(const Limits& limits, Number& value) {
  return [limits, &value](const std::string& text) -> Status {
    const auto number = parse_number(text);
    const std::string wrong = number ? violation(limits, *number) : describe_number(limits);
    if (!wrong.empty()) return expected(wrong, text);
    value = *number;
    return Done{};
  };
}

template <class Count>
Read read_count(int least, Count& value) {
  return [limits = count_from(least), &value](const std::string& text) -> Status {
    const auto count = parse_whole_number(text);
    if (!count || static_cast<double>(*count) < limits.low) return expected("an integer " + describe(limits), text);
    if (const std::string wrong = violation(limits, static_cast<double>(*count)); !wrong.empty())
      return expected(wrong, text);
    value = static_cast<int>(*count);
    return Done{};
  };
}

Read read_word(const std::vector<std::string>& words, std::string& value) {
  return [words, &value](const std::string& text) -> Status {
    if (const std::string wrong = violation(one_of(words), text); !wrong.empty()) return expected(wrong, text);
    value = text;
    return Done{};
  };
}

}  // namespace

struct OptionParser::State {
  /// Values arrive as strings and are read here: the library's own messages and checks speak of its types.
  void declare(OptionUsage option, const Read& read) {
    const CLI::callback_t take = [read, name = option.name](const CLI::results_t& values) {
      for (const std::string& value : values)
        if (const Status status = read(value); !status) throw CLI::ValidationError(name, status.error().message);
      return true;
    };
    CLI::Option* declared = app.add_option(option.name, take, option.help);
    if (option.repeated) {
      declared->expected(1, CLI::detail::expected_max_vector_size);
      declared->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      declared->allow_extra_args(option.operand);
    } else {
      declared->expected(1);
    }
    declared->required(option.required);
    usage.push_back(std::move(option));
  }

  CLI::App app;
  std::vector<OptionUsage> usage;
};

OptionParser::OptionParser() : state_(std::make_unique<State>()) {
  state_->app.set_help_flag("-h,--help", "");
  state_->app.allow_extras();
}

OptionParser::~OptionParser() = default;

void OptionParser::operand(const std::string& name, std::string& value, const std::string& help, Presence presence) {
  const bool required = presence == Presence::Required;
  state_->declare({.name = name, .help = help, .operand = true, .required = required}, into(value));
}

void OptionParser::operand(const std::string& name, std::filesystem::path& value, const std::string& help,
                           Presence presence) {
  const bool required = presence == Presence::Required;
  state_->declare({.name = name, .help = help, .operand = true, .required = required}, into(value));
}

void OptionParser::operand(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  state_->declare({.name = name, .help = help, .operand = true, .repeated = true},
                  [&values](const std::string& text) -> Status {
                    values.push_back(text);
                    return Done{};
                  });
}

void OptionParser::operand(const std::string& name, std::string& value, const std::vector<std::string>& words,
                           const std::string& help) {
  state_->declare({.name = name, .help = help, .words = words, .operand = true}, read_word(words, value));
}

void OptionParser::flag(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag_callback(name, [&value] { value = true; });
  state_->usage.push_back({.name = name, .help = help});
}

void OptionParser::flag_off(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag_callback(name, [&value] { value = false; });
  state_->usage.push_back({.name = name, .help = help});
}

void OptionParser::text(const std::string& name, const std::string& argument, std::string& value,
                        const std::string& help, Presence presence) {
  const bool required = presence == Presence::Required;
  state_->declare({.name = name, .argument = argument, .help = help, .required = required}, into(value));
}

void OptionParser::text(const std::string& name, const std::string& argument, std::filesystem::path& value,
                        const std::string& help, Presence presence) {
  const bool required = presence == Presence::Required;
  state_->declare({.name = name, .argument = argument, .help = help, .required = required}, into(value));
}

void OptionParser::word(const std::string& name, const std::string& argument, std::string& value,
                        const std::vector<std::string>& words, const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help, .words = words}, read_word(words, value));
}

void OptionParser::texts(const std::string& name, const std::string& argument, std::vector<std::string>& values,
                         const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help, .repeated = true},
                  [&values](const std::string& text) -> Status {
                    if (text.empty()) return Error{"is empty"};
                    values.push_back(text);
                    return Done{};
                  });
}

void OptionParser::list(const std::string& name, const std::string& argument, std::vector<std::string>& values,
                        const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help}, [&values](const std::string& text) -> Status {
    for (std::string& value : CLI::detail::split(text, ',')) values.push_back(std::move(value));
    return Done{};
  });
}

void OptionParser::number(const std::string& name, const std::string& argument, double& value, const Limits& limits,
                          const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help}, read_number(limits, value));
}

void OptionParser::number(const std::string& name, const std::string& argument, std::optional<double>& value,
                          const Limits& limits, const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help}, read_number(limits, value));
}

void OptionParser::count(const std::string& name, const std::string& argument, int& value, int least,
                         const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help}, read_count(least, value));
}

void OptionParser::count(const std::string& name, const std::string& argument, std::optional<int>& value, int least,
                         const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help}, read_count(least, value));
}

void OptionParser::seed(const std::string& name, const std::string& argument, std::uint64_t& value,
                        const std::string& help) {
  state_->declare({.name = name, .argument = argument, .help = help}, [&value](const std::string& text) -> Status {
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
