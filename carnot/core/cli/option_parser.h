// cli/option_parser.h -- the arguments of a command, declared once: parsed into plain values, and listed for --help,
// shell completion and the manual page. Only its source knows the parsing library.
#pragma once

#include <cstdint>
#include <filesystem>
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

  void operand(const std::string& name, std::string& value, const std::string& help, Presence presence);
  void operand(const std::string& name, std::filesystem::path& value, const std::string& help, Presence presence);
  void operand(const std::string& name, std::vector<std::string>& values, const std::string& help);
  /// An operand that is one of `words`, where it is there.
  void operand(const std::string& name, std::string& value, const std::vector<std::string>& words,
               const std::string& help);

  void flag(const std::string& name, bool& value, const std::string& help);
  /// Sets `value` to false.
  void flag_off(const std::string& name, bool& value, const std::string& help);

  void text(const std::string& name, const std::string& argument, std::string& value, const std::string& help,
            Presence presence = Presence::Optional);
  void text(const std::string& name, const std::string& argument, std::filesystem::path& value, const std::string& help,
            Presence presence = Presence::Optional);
  void word(const std::string& name, const std::string& argument, std::string& value,
            const std::vector<std::string>& words, const std::string& help);
  /// May be given several times. No text may be empty.
  void texts(const std::string& name, const std::string& argument, std::vector<std::string>& values,
             const std::string& help);
  /// Separated by commas.
  void list(const std::string& name, const std::string& argument, std::vector<std::string>& values,
            const std::string& help);

  void number(const std::string& name, const std::string& argument, double& value, const Limits& limits,
              const std::string& help);
  void number(const std::string& name, const std::string& argument, std::optional<double>& value, const Limits& limits,
              const std::string& help);
  void count(const std::string& name, const std::string& argument, int& value, int least, const std::string& help);
  void count(const std::string& name, const std::string& argument, std::optional<int>& value, int least,
             const std::string& help);
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
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carnot
