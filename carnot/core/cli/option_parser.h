// cli/option_parser.h -- the arguments of a command, declared once: parsed into plain values, and listed for --help,
// shell completion and the manual page. Only its source knows the parsing library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"

namespace carnot {

/// One argument as a user sees it.
struct OptionUsage {
  std::string name{};      ///< "--dtype"; of an operand "RECIPE"
  std::string argument{};  ///< of a flag: what follows it ("N"); empty: nothing does
  std::string help{};
  std::vector<std::string> words{};  ///< what it can be; empty: anything
  bool operand = false;              ///< given without a flag
  bool required = false;
  bool repeated = false;
};

enum class Presence { Required, Optional };

class OptionParser {
 public:
  OptionParser();
  ~OptionParser();

  // Each declares one argument, whose value goes to `value`. REQUIRES: `value` outlives the parser.

  template <class Text>
  void operand(const std::string& name, Text& value, const std::string& help, Presence presence) {
    declare({.name = name, .help = help, .operand = true, .required = presence == Presence::Required}, into(value));
  }
  void operand(const std::string& name, std::vector<std::string>& values, const std::string& help) {
    declare({.name = name, .help = help, .operand = true, .repeated = true}, behind(values));
  }
  /// An operand that is one of `words`, where it is there.
  void operand(const std::string& name, std::string& value, const std::vector<std::string>& words,
               const std::string& help) {
    declare({.name = name, .help = help, .words = words, .operand = true},
            into(value, [words](const std::string& text) { return word_in(text, words); }));
  }

  void flag(const std::string& name, bool& value, const std::string& help);
  /// Sets `value` to false.
  void flag_off(const std::string& name, bool& value, const std::string& help);

  template <class Text>
  void text(const std::string& name, const std::string& argument, Text& value, const std::string& help,
            Presence presence = Presence::Optional) {
    declare({.name = name, .argument = argument, .help = help, .required = presence == Presence::Required},
            into(value));
  }
  void word(const std::string& name, const std::string& argument, std::string& value,
            const std::vector<std::string>& words, const std::string& help) {
    declare({.name = name, .argument = argument, .help = help, .words = words},
            into(value, [words](const std::string& text) { return word_in(text, words); }));
  }
  /// May be given several times. No string may be empty.
  void texts(const std::string& name, const std::string& argument, std::vector<std::string>& values,
             const std::string& help) {
    declare({.name = name, .argument = argument, .help = help, .repeated = true},
            [put = behind(values)](const std::string& text) {
              return text.empty() ? Status(Error{"is empty"}) : put(text);
            });
  }
  /// Separated by commas.
  void list(const std::string& name, const std::string& argument, std::vector<std::string>& values,
            const std::string& help);

  /// `value`: a double, or an optional one; of count() an int.
  template <class Number>
  void number(const std::string& name, const std::string& argument, Number& value, const Limits& limits,
              const std::string& help) {
    declare({.name = name, .argument = argument, .help = help},
            into(value, [limits](const std::string& text) { return number_in(text, limits); }));
  }
  template <class Count>
  void count(const std::string& name, const std::string& argument, Count& value, int least, const std::string& help) {
    declare({.name = name, .argument = argument, .help = help},
            into(value, [least](const std::string& text) { return count_in(text, least); }));
  }
  /// Any number below 2^64.
  void seed(const std::string& name, const std::string& argument, std::uint64_t& value, const std::string& help);

  struct Outcome {
    bool help_wanted = false;
    std::vector<std::string> unexpected{};  ///< arguments that nothing was declared for; flags begin with '-'
  };

  /// Fills the values. The error says which argument is wrong; where help is requested, nothing is missing.
  Result<Outcome> parse(std::span<const std::string> arguments);

  /// In the order of declaration, without `--help`, which every command has.
  const std::vector<OptionUsage>& usage() const;

 private:
  using Read = std::function<Status(const std::string&)>;

  /// Values arrive as strings and are read by `read`: the library's own messages and checks speak of its types.
  void declare(OptionUsage option, const Read& read);

  static Result<double> number_in(const std::string& text, const Limits& limits);
  static Result<int> count_in(const std::string& text, int least);
  static Result<std::string> word_in(const std::string& text, const std::vector<std::string>& words);

  template <class Value, class Parse>
  static Read into(Value& value, const Parse& parse) {
    return [&value, parse](const std::string& text) -> Status {
      CARNOT_ASSIGN_OR_RETURN(value, parse(text));
      return Done{};
    };
  }
  template <class Text>
  static Read into(Text& value) {
    return into(value, [](const std::string& text) { return Result<std::string>(text); });
  }
  static Read behind(std::vector<std::string>& values) {
    return [&values](const std::string& text) -> Status {
      values.push_back(text);
      return Done{};
    };
  }

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carnot
