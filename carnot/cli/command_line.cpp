#include "carnot/cli/command_line.h"

#include <algorithm>
#include <memory>

#include "carnot/base/nearest_word.h"
#include "carnot/cli/terminal_text.h"
#include "carnot/config/aliases.h"

namespace carnot {
namespace {

struct CommandEntry {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  Request blank;  ///< filled from the arguments
};

const std::vector<CommandEntry>& commands() {
  using Stage = RunRequest::Stage;
  static const std::vector<CommandEntry> table = {
      {"train", "RECIPE [key=value ...]", "warm start, reinforcement learning, evaluation",
       RunRequest{.stage = Stage::Training}},
      {"sft", "RECIPE [key=value ...]", "the warm start alone", RunRequest{.stage = Stage::Sft}},
      {"rollout", "RECIPE [key=value ...]", "roll out one step's tasks into rollouts/step_0.jsonl",
       RunRequest{.stage = Stage::Rollout}},
      {"compare", "RECIPE --methods M,M,... [key=value ...]", "train methods over seeds, and report their differences",
       CompareRequest{}},
      {"eval", "PATH [key=value ...]", "evaluate a run's latest checkpoint, or a checkpoint", EvaluateRequest{}},
      {"generate", "--model DIR [PROMPT ...]", "continue prompts or conversations", GenerateRequest{}},
      {"score", "--model DIR [FILE]", "log-probabilities and entropies of token sequences, line by line",
       ScoreRequest{}},
      {"export", "PATH --output DIR", "a run's policy as a Hugging Face folder, its adapters as PEFT's",
       ExportRequest{}},
      {"inspect", "PATH", "show trajectories with their spans and numbers", InspectRequest{.colour = true}},
      {"credit", "FILE --method M [key=value ...]", "recompute credit on rollouts", CreditRequest{}},
      {"analyze", "NAME [PATH ...] [key=value ...]", "an analysis of a paper: numbers, a page, and the paper's figures",
       AnalyzeRequest{}},
      {"list", "[methods|environments|chats|analyses|keys]", "what there is to choose from", ListRequest{}},
      {"env", "NAME [key=value ...]", "play an environment by hand", PlayRequest{}},
      {"tokenize", "DIR", "JSON strings to token ids, line by line, and back", TokenizeRequest{}},
      {"completion", "[bash|zsh|fish]", "completion of commands, flags and keys, for a shell to read",
       CompletionRequest{}},
      {"man", "", "the manual page", ManualRequest{}},
      {"help", "[COMMAND | keys [RECIPE]]", "the flags of a command; the keys of a recipe", HelpRequest{}},
  };
  return table;
}

void add_overrides(OptionParser& take, std::vector<std::string>& overrides, const std::string& help) {
  take.operand("KEY=VALUE", overrides, help);
}

void declare(OptionParser& take, RunRequest& request) {
  take.operand("RECIPE", request.recipe, "YAML file", Presence::Required);
  add_overrides(take, request.overrides, "laid over the recipe: train.steps=10");
  take.flag("--dry-run", request.dry_run, "print the resolved configuration and the memory budget, run nothing");
}

void declare(OptionParser& take, CompareRequest& request) {
  take.operand("RECIPE", request.recipe, "YAML file", Presence::Required);
  add_overrides(take, request.overrides, "laid over the recipe for all runs: train.steps=10");
  take.text("--methods", "LIST", request.methods,
            "separated by commas, settings of one in brackets: \"grpo, grpo + aem, a2tgpo [train.epochs=2]\"; "
            "default: all");
  take.text("--seeds", "LIST", request.seeds, "0-4 or 0,1,2; default: 0-2");
  take.text("--base", "M", request.base, "the method that others are compared with; default: the first, of all grpo");
  take.text("--output", "FOLDER", request.output, "folder of all runs and the report; default: runs/compare");
  take.flag("--dry-run", request.dry_run, "print the runs and what is there of them, run nothing");
}

void declare(OptionParser& take, EvaluateRequest& request) {
  take.operand("PATH", request.path, "run folder, or one of its checkpoints", Presence::Required);
  add_overrides(take, request.overrides, "laid over the run's config.yaml: eval.tasks=500");
  take.flag("--json", request.json, "print the results as JSON");
}

void declare(OptionParser& take, ModelChoice& model) {
  take.text("--model", "DIR", model.path, "Hugging Face folder, checkpoint, or run folder: its latest",
            Presence::Required);
  take.text("--chat", "NAME", model.chat, "chat family; default: the run's, or the model family's");
  take.word("--device", "D", model.device, {"cpu", "cuda"}, "where tensors live; default: cpu");
  take.word("--dtype", "T", model.dtype, {"float32", "float64", "bfloat16"}, "of the computation; default: float32");
  take.count("--threads", "N", model.threads, 0, "of the kernels; default: one per processor");
}

void declare(OptionParser& take, GenerateRequest& request) {
  take.operand("PROMPT", request.prompts, "texts to answer, or with --raw to continue; without one, standard input");
  declare(take, request.model);
  take.text("--messages", "JSON", request.messages, "a conversation as JSON: [{\"role\": ..., \"content\": ...}, ...]");
  take.text("--input", "FILE", request.input, "JSON lines with prompt, messages or ids; -: standard input");
  take.text("--system", "TEXT", request.system, "system message of prompts");
  take.flag("--raw", request.raw, "prompts as they are, without a chat format");
  take.flag("--json", request.json, "one object a line: text, token ids, log-probabilities, entropies");
  take.number("--temperature", "T", request.temperature, between(0, 1e6),
              "0: the most likely token; default: the model's, else 0");
  take.number("--top-p", "P", request.top_p, between(1e-9, 1), "sample from the most likely tokens with this mass");
  take.count("--top-k", "K", request.top_k, 0, "sample from this many most likely tokens; 0: all");
  take.count("--max-tokens", "N", request.max_tokens, 1, "of a text; default: 512");
  take.texts("--stop", "TEXT", request.stop,
             "text that ends a result and is left out of it; may be given several times");
  take.seed("--seed", "N", request.seed, "of the draws");
  take.count("--samples", "N", request.samples, 1, "texts of each prompt");
  take.count("--batch", "N", request.batch, 1, "texts in work at a time; default: 32");
  take.count("--cache-tokens", "N", request.cache_tokens, 0,
             "positions of the KV cache; default: enough, at most 65536");
}

void declare(OptionParser& take, ScoreRequest& request) {
  take.operand("FILE", request.input,
               "JSON lines: objects with ids or text, and perhaps an id; default: standard input", Presence::Optional);
  declare(take, request.model);
  take.number("--temperature", "T", request.temperature, between(1e-6, 1e6),
              "of softmax(logits / temperature); default: 1");
  take.count("--batch-tokens", "N", request.batch_tokens, 1, "of a forward pass; default: 4096");
}

void declare(OptionParser& take, ExportRequest& request) {
  take.operand("PATH", request.path, "run folder (its latest checkpoint), checkpoint, or Hugging Face folder",
               Presence::Required);
  take.text("--output", "DIR", request.output, "folder to make", Presence::Required);
  take.flag("--merge-lora", request.merge_lora,
            "one model with the adapters merged in; without it DIR/base and DIR/adapter (PEFT)");
  take.word("--dtype", "TYPE", request.dtype, {"float32", "bfloat16", "float16"}, "of the weights; default: as stored");
  take.number("--shard-megabytes", "N", request.shard_megabytes, between(0.001, 1e9),
              "a larger model is written in several files; default: 5000");
  take.flag("--overwrite", request.overwrite, "replace what an earlier export wrote");
}

void declare(OptionParser& take, InspectRequest& request) {
  take.operand("PATH", request.path, "rollouts/step_N.jsonl, or a run folder: its latest", Presence::Required);
  take.count("--row", "N", request.row, 1, "show the trajectory on this line");
  take.text("--traj", "ID", request.trajectory, "show the trajectory of this traj_id");
  take.text("--tokenizer", "PATH", request.tokenizer, "tokenizer.json or its folder; default: the run's");
  take.flag("--tokens", request.tokens, "with a table of the sampled tokens");
  take.list("--columns", "NAMES", request.columns, "of that table, separated by commas; default: all in the file");
  take.flag_off("--no-color", request.colour, "brackets instead of colours, as when the output is no terminal");
}

void declare(OptionParser& take, CreditRequest& request) {
  take.operand("FILE", request.file, "rollouts: docs/trajectory_format.md", Presence::Required);
  take.text("--method", "M", request.method, "method or composition: grpo + aem", Presence::Required);
  take.text("--output", "FILE", request.output, "file to write; default: standard output");
  take.flag("--explain", request.explain,
            "also ratio, clip_state and gradient of each token, and the critic's, where rows hold `logp`");
  add_overrides(take, request.overrides,
                "options of the method, as in a recipe's `method` section, and objective.* keys");
}

void declare(OptionParser& take, AnalyzeRequest& request) {
  take.operand("NAME", request.name, "`carnot list analyses` prints them", Presence::Required);
  take.operand("ARGUMENTS", request.arguments,
               "paths that it reads, and key=value: its options and, for a checkpoint, keys of its recipe");
  take.text("--output", "DIR", request.output, "folder of NAME.json and NAME.html; default: analyses");
}

void declare(OptionParser& take, ListRequest& request) {
  take.operand("TOPIC", request.topic, {"methods", "environments", "chats", "analyses", "keys"},
               "what to print; default: the first three");
  take.flag("--json", request.json, "print JSON");
}

void declare(OptionParser& take, PlayRequest& request) {
  take.operand("NAME", request.name, "`carnot list environments` prints them", Presence::Required);
  add_overrides(take, request.overrides, "options of the environment, as in a recipe's `env` section: dim_x=8");
  take.seed("--seed", "N", request.seed, "of the instance");
  take.seed("--run-seed", "N", request.run_seed, "the recipe's `seed`, of what all instances share");
  take.flag("--json", request.json, "one object a line");
  take.flag("--prompt", request.prompt, "what a policy sees; each line of input is one response");
}

void declare(OptionParser& take, TokenizeRequest& request) {
  take.operand("DIR", request.tokenizer, "folder with a tokenizer, or a tokenizer.json", Presence::Required);
  take.flag("--decode", request.decode, "token ids to JSON strings");
}

void declare(OptionParser& take, CompletionRequest& request) {
  take.operand("SHELL", request.shell, {"bash", "zsh", "fish"}, "whose completion to print; default: bash");
}

CommandUsage usage_of(const CommandEntry& entry, const OptionParser& parser) {
  return {.name = std::string(entry.name),
          .arguments = std::string(entry.arguments),
          .summary = std::string(entry.summary),
          .options = parser.usage()};
}

/// The parser of a command, which fills `request`.
std::unique_ptr<OptionParser> parser_of(Request& request) {
  auto parser = std::make_unique<OptionParser>();
  std::visit(
      [&](auto& fields) {
        if constexpr (requires { declare(*parser, fields); }) declare(*parser, fields);
      },
      request);
  return parser;
}

std::string overview() {
  std::string text = "carnot: reinforcement learning of language-model agents\n\nusage:\n";
  std::vector<std::vector<std::string>> rows;
  for (const CommandEntry& entry : commands()) {
    const std::string use = "  carnot " + std::string(entry.name) + " " + std::string(entry.arguments);
    rows.push_back({use, std::string(entry.summary)});
  }
  return text + text_table(rows) +
         "\n`carnot COMMAND --help` prints the flags of a command, `carnot --version` the version.\n";
}

const CommandEntry* find_command(std::string_view name) {
  const auto& all = commands();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
  return found == all.end() ? nullptr : &*found;
}

Error unknown_command(const std::string& name) {
  if (name.starts_with('-'))
    return {"expected a command, found the flag '" + name + "'; `carnot --help` lists the commands"};
  if (name.ends_with(".yaml")) return {"expected a command, found a recipe; did you mean `carnot train " + name + "`?"};
  std::vector<std::string> names;
  for (const CommandEntry& entry : commands()) names.emplace_back(entry.name);
  return {unknown_word("command", name, names)};
}

bool reads_recipe(const Request& request) {
  return std::holds_alternative<RunRequest>(request) || std::holds_alternative<CompareRequest>(request) ||
         std::holds_alternative<EvaluateRequest>(request);
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
                       const Request& request) {
  if (!argument.starts_with('-')) return "expected no further argument, found '" + argument + "'";
  const std::string start = "there is no flag '" + argument + "'; ";
  std::vector<std::string> flags{"--help"};
  bool takes_settings = false;
  for (const OptionUsage& option : usage.options) {
    if (!option.operand) flags.push_back(option.name);
    takes_settings = takes_settings || option.name == "KEY=VALUE" || option.name == "ARGUMENTS";
  }
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string nearest = nearest_word(flag, flags);
  if (!nearest.empty() && edit_distance(flag, nearest) <= 2) return start + "did you mean '" + nearest + "'?";
  if (takes_settings)
    return start + "a setting is written key=value, as in " + as_setting(argument, arguments, reads_recipe(request));
  return start + "`carnot " + usage.name + " --help` lists them";
}

/// The usage, and whose options the command takes as far as its arguments say.
Request help_of(const std::string& text, const Request& request) {
  if (const auto* run = std::get_if<RunRequest>(&request))
    return RunHelpRequest{text, {.recipe = run->recipe, .overrides = run->overrides}};
  if (const auto* compare = std::get_if<CompareRequest>(&request))
    return RunHelpRequest{text, {.recipe = compare->recipe, .overrides = compare->overrides}};
  if (std::holds_alternative<EvaluateRequest>(request)) return RunHelpRequest{text};
  if (const auto* analyze = std::get_if<AnalyzeRequest>(&request)) return AnalysesRequest{text, analyze->name};
  HelpRequest help{.text = text};
  if (const auto* play = std::get_if<PlayRequest>(&request)) help.environment = play->name;
  if (const auto* credit = std::get_if<CreditRequest>(&request)) help.method = credit->method;
  return help;
}

Result<Request> parse_command(const CommandEntry& entry, std::span<const std::string> arguments) {
  Request request = entry.blank;
  const auto parser = parser_of(request);
  const CommandUsage usage = usage_of(entry, *parser);
  const auto outcome = parser->parse(arguments);
  if (!outcome)
    return Error{usage.name + ": " + outcome.error().message + "; `carnot " + usage.name +
                 " --help` prints what it takes"};
  if (outcome->help_wanted) return help_of(usage_text(usage), request);
  if (!outcome->unexpected.empty())
    return Error{usage.name + ": " + unexpected(outcome->unexpected.front(), arguments, usage, request)};
  const auto* credit = std::get_if<CreditRequest>(&request);
  if (credit != nullptr && credit->explain) return Request(ExplainRequest{*credit});
  const auto* list = std::get_if<ListRequest>(&request);
  if (list != nullptr && list->topic == "keys") return Request(KeysRequest{.json = list->json});
  if (list != nullptr && list->topic == "analyses") return Request(AnalysesRequest{.json = list->json});
  return request;
}

bool asks_for_help(const std::string& argument) { return argument == "-h" || argument == "--help"; }

Result<Request> parse_help(std::span<const std::string> arguments) {
  if (arguments.empty() || asks_for_help(arguments.front())) return Request(HelpRequest{overview()});
  if (arguments.front() == "keys") {
    KeysRequest keys;
    if (arguments.size() > 1) keys.recipe = arguments[1];
    if (arguments.size() > 2) keys.overrides.assign(arguments.begin() + 2, arguments.end());
    return Request(keys);
  }
  const CommandEntry* entry = find_command(arguments.front());
  if (entry == nullptr) return unknown_command(arguments.front());
  const std::vector<std::string> help{"--help"};
  return entry->name == "help" ? Request(HelpRequest{overview()}) : parse_command(*entry, help);
}

}  // namespace

std::vector<CommandUsage> command_usages() {
  std::vector<CommandUsage> usages;
  for (const CommandEntry& entry : commands()) {
    Request request = entry.blank;
    usages.push_back(usage_of(entry, *parser_of(request)));
  }
  return usages;
}

Result<Request> parse_command_line(std::span<const std::string> arguments) {
  if (arguments.empty()) return Error{"expected a command; `carnot --help` lists them"};
  const std::string& name = arguments.front();
  const auto rest = arguments.subspan(1);
  if (name == "--version") return Request(VersionRequest{});
  if (asks_for_help(name) || name == "help") return parse_help(rest);
  const CommandEntry* entry = find_command(name);
  if (entry == nullptr) return unknown_command(name);
  return parse_command(*entry, rest);
}

}  // namespace carnot
