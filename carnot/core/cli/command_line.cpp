#include "carnot/core/cli/command_line.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include "carnot/core/base/nearest_word.h"
#include "carnot/core/cli/terminal_text.h"
#include "carnot/core/config/aliases.h"

namespace carnot {
namespace {

using Commands = std::span<const CommandEntry>;

std::string overview(const CommandTable& table) {
  std::string text = "carnot: reinforcement learning of language-model agents\n\nusage:\n";
  std::vector<std::vector<std::string>> rows;
  for (const CommandEntry& entry : table.commands) {
    const std::string use = "  carnot " + std::string(entry.name) + " " + std::string(entry.arguments);
    rows.push_back({use, std::string(entry.summary)});
  }
  text += text_table(rows);
  for (const std::string_view name : table.left_out)
    text +=
        (name == table.left_out.front() ? "\nnot in this build (`./run build` adds them): " : ", ") + std::string(name);
  return text + (table.left_out.empty() ? "" : "\n") +
         "\n`carnot COMMAND --help` prints the flags of a command, `carnot --version` the version.\n"
         "Example: carnot train recipes/quickstart.yaml\n";
}

const CommandEntry* find_command(Commands commands, std::string_view name) {
  const auto found = std::ranges::find(commands, name, &CommandEntry::name);
  return found == commands.end() ? nullptr : &*found;
}

Error unknown_command(const CommandTable& table, const std::string& name) {
  if (name.starts_with('-'))
    return {"expected a command, found the flag '" + name + "'; `carnot --help` lists the commands"};
  if (name.ends_with(".yaml")) return {"expected a command, found a recipe; did you mean `carnot train " + name + "`?"};
  if (std::ranges::find(table.left_out, name) != table.left_out.end())
    return {"the command '" + name + "' is not in this build of carnot; `./run build` adds it"};
  std::vector<std::string> names;
  for (const CommandEntry& entry : table.commands) names.emplace_back(entry.name);
  return {unknown_word("command", name, names)};
}

std::string example_of(const CommandEntry& entry) {
  std::string example = "carnot " + std::string(entry.name);
  return entry.example.empty() ? example : example + " " + std::string(entry.example);
}

CommandUsage usage_of(const CommandEntry& entry, const std::vector<OptionUsage>& options) {
  return {.name = std::string(entry.name),
          .arguments = std::string(entry.arguments),
          .summary = std::string(entry.summary),
          .example = example_of(entry),
          .recipe_keys = entry.settings == Settings::OfRecipe,
          .options = options};
}

/// "--steps" of `--steps 10` as the setting that was probably meant: train.steps=10.
std::string as_setting(const std::string& flag, std::span<const std::string> arguments, bool of_recipe) {
  const std::size_t equals = flag.find('=');
  std::string key = flag.substr(0, equals);
  key.erase(0, key.find_first_not_of('-'));
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string familiar(of_recipe ? familiar_key(key) : std::string_view());
  if (!familiar.empty()) key = familiar;
  if (of_recipe && key.find('.') == std::string::npos) return "train.steps=10";
  if (equals != std::string::npos) return key + flag.substr(equals);
  const auto at = std::find(arguments.begin(), arguments.end(), flag);
  const bool has_value = at != arguments.end() && at + 1 != arguments.end() && !(at + 1)->starts_with('-');
  return key + "=" + (has_value ? *(at + 1) : "VALUE");
}

/// What to type instead of an argument that the command does not take.
std::string unexpected(const std::string& argument, std::span<const std::string> arguments, const CommandUsage& usage,
                       Settings settings) {
  if (!argument.starts_with('-')) return "expected no further argument, found '" + argument + "'";
  const std::string start = "there is no flag '" + argument + "'; ";
  std::vector<std::string> flags{"--help"};
  for (const OptionUsage& option : usage.options)
    if (!option.operand) flags.push_back(option.name);
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string nearest = nearest_word(flag, flags);
  if (!nearest.empty() && edit_distance(flag, nearest) <= 2) return start + "did you mean '" + nearest + "'?";
  if (settings == Settings::None) return start + "`carnot " + usage.name + " --help` lists them";
  return start + "a setting is written key=value, as in " +
         as_setting(argument, arguments, settings == Settings::OfRecipe);
}

Action printing(std::string text) {
  return [text = std::move(text)](const Console& console) {
    console.out << text << std::flush;
    return Exit::Success;
  };
}

Result<Action> parse_command(const CommandEntry& entry, std::span<const std::string> arguments) {
  const std::shared_ptr<Command> command = entry.make();
  OptionParser parser;
  command->declare(parser);
  const CommandUsage usage = usage_of(entry, parser.usage());
  const auto outcome = parser.parse(arguments);
  if (!outcome)
    return Error{usage.name + ": " + outcome.error().message + "; `carnot " + usage.name +
                 " --help` prints what it takes"};
  if (outcome->help_wanted)
    return Action([command, print = printing(usage_text(usage))](const Console& console) {
      print(console);
      return command->print_keys(console);
    });
  if (!outcome->unexpected.empty())
    return Error{usage.name + ": " + unexpected(outcome->unexpected.front(), arguments, usage, entry.settings)};
  return Action([command](const Console& console) { return command->run(console); });
}

/// A file's name may hold an equals sign.
bool is_setting(const std::string& argument) {
  std::error_code ignored;
  return argument.find('=') != std::string::npos && !std::filesystem::exists(argument, ignored);
}

bool asks_for_help(const std::string& argument) { return argument == "-h" || argument == "--help"; }

Result<Action> parse_help(const CommandTable& table, std::span<const std::string> arguments) {
  if (arguments.empty() || asks_for_help(arguments.front()) || arguments.front() == "help")
    return printing(overview(table));
  if (arguments.front() == "keys") {
    auto settings = arguments.subspan(1);
    std::filesystem::path recipe;
    if (!settings.empty() && !is_setting(settings.front())) {
      recipe = settings.front();
      settings = settings.subspan(1);
    }
    return Action([print = table.print_recipe_keys, recipe, overrides = std::vector(settings.begin(), settings.end())](
                      const Console& console) { return print(recipe, overrides, console); });
  }
  const CommandEntry* entry = find_command(table.commands, arguments.front());
  if (entry == nullptr) return unknown_command(table, arguments.front());
  const std::vector<std::string> help{"--help"};
  return parse_command(*entry, help);
}

}  // namespace

CommandEntry help_entry() {
  return {.name = "help",
          .arguments = "[COMMAND | keys [RECIPE] [key=value ...]]",
          .summary = "the flags of a command; the keys of a recipe or, with env=NAME, of an environment",
          .example = "keys env=sokoban",
          .settings = Settings::OfRecipe};
}

std::vector<CommandUsage> command_usages(std::span<const CommandEntry> commands) {
  std::vector<CommandUsage> usages;
  for (const CommandEntry& entry : commands) {
    OptionParser parser;
    const std::unique_ptr<Command> command = entry.make ? entry.make() : nullptr;
    if (command) command->declare(parser);
    usages.push_back(usage_of(entry, parser.usage()));
  }
  return usages;
}

Result<Action> parse_command_line(const CommandTable& table, std::span<const std::string> arguments) {
  if (arguments.empty()) return Error{"expected a command; `carnot --help` lists them"};
  const std::string& name = arguments.front();
  const auto rest = arguments.subspan(1);
  if (name == "--version") return printing("carnot " + table.version + "\n");
  if (asks_for_help(name) || name == "help") return parse_help(table, rest);
  const CommandEntry* entry = find_command(table.commands, name);
  if (entry == nullptr) return unknown_command(table, name);
  return parse_command(*entry, rest);
}

}  // namespace carnot
