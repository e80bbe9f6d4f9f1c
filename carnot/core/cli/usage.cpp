#include "carnot/core/cli/usage.h"

#include <algorithm>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::size_t kHelpColumn = 34;
constexpr std::size_t kWidth = 100;

/// `text` from column `indent` on, broken at blanks; the first line is there already.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const bool breaks = column > indent && column + 1 + (end - at) > kWidth;
    if (column > indent) out += breaks ? "\n" + std::string(indent, ' ') : " ";
    column = breaks ? indent : column + (column > indent ? 1 : 0);
    out += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out;
}

std::string help_of(const OptionUsage& option) {
  std::string text = option.help;
  if (!option.words.empty()) text += " (" + join(option.words, " | ") + ")";
  return option.required && !option.operand ? text + "; required" : text;
}

std::string entry(const std::string& name, const std::string& help) {
  std::string line = "  " + name;
  if (line.size() + 2 > kHelpColumn) line += "\n";
  const std::size_t last = line.ends_with('\n') ? 0 : line.size();
  return line + std::string(kHelpColumn - last, ' ') + wrapped(help, kHelpColumn) + "\n";
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

std::string bash_script(std::span<const CommandUsage> usages, std::span<const std::string> keys) {
  std::vector<std::string> assignments;
  for (const std::string& key : keys) assignments.push_back(key + "=");
  std::string text = "_carnot_keys=" + in_single_quotes(join(assignments, " ")) +
                     "\n"
                     "_carnot() {\n"
                     "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags= words=\n"
                     "  COMPREPLY=()\n"
                     "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "    COMPREPLY=($(compgen -W " +
                     in_single_quotes(join(names_of(usages), " ") + " --help --version") +
                     " -- \"$word\"))\n"
                     "    return\n"
                     "  fi\n"
                     "  case ${COMP_WORDS[1]} in\n";
  for (const CommandUsage& usage : usages) text += bash_case(usage, usages);
  return text +
         "  esac\n"
         "  case $word in -*) words=$flags ;; esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
         "}\n"
         "complete -o default -o bashdefault -F _carnot carnot\n";
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
  std::string text = ".TH CARNOT 1 \"\" \"carnot " + version +
                     "\" \"User Commands\"\n.SH NAME\ncarnot \\- reinforcement learning of language\\-model agents\n"
                     ".SH SYNOPSIS\n.B carnot\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n.SH COMMANDS\n"
                     "Settings are\n.IR key = value ,\nwith the keys of a recipe;\n.B carnot help keys\nlists them.\n";
  for (const CommandUsage& usage : usages) text += manual_section(usage);
  return text +
         ".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n.TP\n.B 1\nbad input, or a run that failed; the message is on standard "
         "error\n.TP\n.B 2\nthe command line could not be understood\n.TP\n.B 70\na bug\n.TP\n.B 130\nstopped by a "
         "signal, after a checkpoint was written\n";
}

}  // namespace carnot
