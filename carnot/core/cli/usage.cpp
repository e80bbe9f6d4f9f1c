#include "carnot/core/cli/usage.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "carnot/core/base/strings.h"
#include "carnot/core/config/printer.h"

namespace carnot {

extern const std::string_view kCompletionOfBash, kManualPage;  // completion.bash, carnot.1

namespace {

constexpr std::size_t kHelpColumn = 34;
constexpr std::size_t kWidth = 100;

std::string help_of(const OptionUsage& option) {
  std::string text = option.help;
  if (!option.words.empty()) text += " (" + join(option.words, " | ") + ")";
  return option.required && !option.operand ? text + "; required" : text;
}

std::string entry(const std::string& name, const std::string& help) {
  const std::string line = "  " + name, lines = wrapped(help, std::string(kHelpColumn, ' '), kWidth);
  const bool fits = line.size() + 2 <= kHelpColumn;
  return fits ? line + lines.substr(line.size()) : line + "\n" + lines;
}

std::string shown_name(const OptionUsage& option) {
  return option.argument.empty() ? option.name : option.name + " " + option.argument;
}

std::vector<std::string> names_of(std::span<const CommandUsage> usages) {
  std::vector<std::string> names;
  for (const CommandUsage& usage : usages) names.push_back(usage.name);
  return names;
}

/// What an operand of the command can be, as far as it is a list of words.
std::vector<std::string> operand_words(const CommandUsage& usage, std::span<const CommandUsage> usages) {
  if (usage.name == "help") return names_of(usages);
  for (const OptionUsage& option : usage.options)
    if (option.operand && !option.words.empty()) return option.words;
  return {};
}

std::string bash_case(const CommandUsage& usage, std::span<const CommandUsage> usages) {
  std::vector<std::string> flags{"--help"};
  std::string values;
  for (const OptionUsage& option : usage.options) {
    if (option.operand) continue;
    flags.push_back(option.name);
    if (!option.argument.empty())
      values += "        " + option.name + ") words=" + in_single_quotes(join(option.words, " ")) + "; flags= ;;\n";
  }
  std::string text = "    " + usage.name + ")\n      flags=" + in_single_quotes(join(flags, " ")) +
                     "\n      words=" + in_single_quotes(join(operand_words(usage, usages), " ")) + "\n";
  if (usage.recipe_keys) text += "      words+=\" $_carnot_keys\"\n";
  if (!values.empty()) text += "      case $before in\n" + values + "      esac\n";
  return text + "      ;;\n";
}

/// `text` with each name in double braces replaced.
std::string filled(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string out(text);
  for (const auto& [name, value] : values) {
    const std::size_t at = out.find("{{" + name + "}}");
    CARNOT_CHECK(at != out.npos, name);
    out.replace(at, name.size() + 4, value);
  }
  return out;
}

std::string bash_script(std::span<const CommandUsage> usages, std::span<const std::string> keys) {
  std::string assignments, cases;
  for (const std::string& key : keys) assignments += (assignments.empty() ? "" : " ") + key + "=";
  for (const CommandUsage& usage : usages) cases += bash_case(usage, usages);
  return filled(kCompletionOfBash, {{"keys", in_single_quotes(assignments)},
                                    {"commands", in_single_quotes(join(names_of(usages), " ") + " --help --version")},
                                    {"cases", cases}});
}

std::string fish_script(std::span<const CommandUsage> usages, std::span<const std::string> keys) {
  std::string text;
  for (const CommandUsage& usage : usages) {
    text += "complete -c carnot -n __fish_use_subcommand -f -a " + usage.name + " -d " +
            in_single_quotes(usage.summary) + "\n";
    const std::string here = "complete -c carnot -n '__fish_seen_subcommand_from " + usage.name + "' ";
    text += here + "-l help -d 'print this command'\\''s usage'\n";
    for (const OptionUsage& option : usage.options) {
      if (option.operand) continue;
      text += here + "-l " + option.name.substr(2);
      if (!option.words.empty()) text += " -x -a " + in_single_quotes(join(option.words, " "));
      if (option.words.empty() && !option.argument.empty()) text += " -r";
      text += " -d " + in_single_quotes(option.help) + "\n";
    }
    const auto words = operand_words(usage, usages);
    if (!words.empty()) text += here + "-f -a " + in_single_quotes(join(words, " ")) + "\n";
    if (usage.recipe_keys) text += here + "-a \"$_carnot_keys\"\n";
  }
  std::vector<std::string> assignments;
  for (const std::string& key : keys) assignments.push_back(key + "=");
  return "set -g _carnot_keys " + join(assignments, " ") + "\n" + text;
}

/// Text that man shows as it is.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string manual_section(const CommandUsage& usage) {
  std::string text = ".SS " + roff("carnot " + usage.name + " " + usage.arguments) + "\n" + roff(usage.summary) + ".\n";
  for (const OptionUsage& option : usage.options)
    text += ".TP\n.B " + roff(shown_name(option)) + "\n" + roff(help_of(option)) + "\n";
  return text + ".PP\nExample:\n.B " + roff(usage.example) + "\n";
}

}  // namespace

std::string usage_text(const CommandUsage& usage) {
  std::string text =
      "carnot " + usage.name + (usage.arguments.empty() ? "" : " " + usage.arguments) + "\n\n" + usage.summary + "\n\n";
  for (const OptionUsage& option : usage.options) text += entry(shown_name(option), help_of(option));
  return text + entry("-h, --help", "print this") + "\nExample: " + usage.example + "\n";
}

std::string completion_script(const std::string& shell, std::span<const CommandUsage> usages,
                              std::span<const std::string> keys) {
  if (shell == "fish") return "# source (carnot completion fish | psub)\n" + fish_script(usages, keys);
  if (shell == "zsh")
    return "#compdef carnot\n# source <(carnot completion zsh)\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_script(usages, keys);
  return "# source <(carnot completion bash)\n" + bash_script(usages, keys);
}

std::string manual_page(std::span<const CommandUsage> usages, const std::string& version) {
  std::string commands;
  for (const CommandUsage& usage : usages) commands += manual_section(usage);
  return filled(kManualPage, {{"version", version}, {"commands", commands}});
}

}  // namespace carnot
