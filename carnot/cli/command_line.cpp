#include "carnot/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "carnot/cli/terminal_text.h"
#include "carnot/config/edit_distance.h"

namespace carnot {
namespace {

constexpr int kHelpColumn = 34;

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
      {"sft", "RECIPE [key=value ...]", "the warm start alone", RunRequest{.stage = Stage::Supervised}},
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
      {"help", "[COMMAND | keys [RECIPE]]", "the flags of a command; the keys of a recipe", HelpRequest{}},
  };
  return table;
}

void add_overrides(CLI::App& app, std::vector<std::string>& overrides, const std::string& help) {
  app.add_option("KEY=VALUE", overrides, help)->type_name("");
}

void declare(CLI::App& app, RunRequest& request) {
  app.add_option("RECIPE", request.recipe, "YAML file")->required()->type_name("");
  add_overrides(app, request.overrides, "laid over the recipe: train.steps=10");
  app.add_flag("--dry-run", request.dry_run, "print the resolved configuration and the memory budget, run nothing");
}

void declare(CLI::App& app, CompareRequest& request) {
  app.add_option("RECIPE", request.recipe, "YAML file")->required()->type_name("");
  add_overrides(app, request.overrides, "laid over the recipe for all runs: train.steps=10");
  app.add_option("--methods", request.methods,
                 "separated by commas, settings of one in brackets: \"grpo, grpo + aem, a2tgpo [train.epochs=2]\"; "
                 "default: all")
      ->type_name("LIST");
  app.add_option("--seeds", request.seeds, "0-4 or 0,1,2; default: 0-2")->type_name("LIST");
  app.add_option("--base", request.base, "the method that others are compared with; default: the first, of all grpo")
      ->type_name("M");
  app.add_option("--output", request.output, "folder of all runs and the report; default: runs/compare")
      ->type_name("FOLDER");
  app.add_flag("--dry-run", request.dry_run, "print the runs and what is there of them, run nothing");
}

void declare(CLI::App& app, EvaluateRequest& request) {
  app.add_option("PATH", request.path, "run folder, or one of its checkpoints")->required()->type_name("");
  add_overrides(app, request.overrides, "laid over the run's config.yaml: eval.tasks=500");
  app.add_flag("--json", request.json, "print the results as JSON");
}

void declare(CLI::App& app, ModelChoice& model) {
  app.add_option("--model", model.path, "Hugging Face folder, checkpoint, or run folder: its latest")
      ->required()
      ->type_name("DIR");
  app.add_option("--chat", model.chat, "chat family; default: the run's, or the model family's")->type_name("NAME");
  app.add_option("--device", model.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}))->type_name("D");
  app.add_option("--dtype", model.dtype, "float32, float64 or bfloat16; default: float32")
      ->check(CLI::IsMember({"float32", "float64", "bfloat16"}))
      ->type_name("T");
  app.add_option("--threads", model.threads, "of the kernels; default: one per processor")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

void declare(CLI::App& app, GenerateRequest& request) {
  app.footer("Without a prompt, standard input is one. Results come in the order of the input. See docs/generate.md.");
  app.add_option("PROMPT", request.prompts, "texts to answer, or with --raw to continue")->type_name("");
  declare(app, request.model);
  app.add_option("--messages", request.messages, "a conversation as JSON: [{\"role\": ..., \"content\": ...}, ...]")
      ->type_name("JSON");
  app.add_option("--input", request.input, "JSON lines with prompt, messages or ids; -: standard input")
      ->type_name("FILE");
  app.add_option("--system", request.system, "system message of prompts")->type_name("TEXT");
  app.add_flag("--raw", request.raw, "prompts as they are, without a chat format");
  app.add_flag("--json", request.json, "one object a line: text, token ids, log-probabilities, entropies");
  app.add_option("--temperature", request.temperature, "0: the most likely token; default: the model's, else 0")
      ->check(CLI::NonNegativeNumber)
      ->type_name("T");
  app.add_option("--top-p", request.top_p, "sample from the most likely tokens with this mass")
      ->check(CLI::Range(1e-9, 1.0))
      ->type_name("P");
  app.add_option("--top-k", request.top_k, "sample from this many most likely tokens; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("K");
  app.add_option("--max-tokens", request.max_tokens, "of a text; default: 512")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--stop", request.stop, "text that ends a result and is left out of it; may be given several times")
      ->allow_extra_args(false)
      ->check([](const std::string& stop) { return stop.empty() ? std::string("is empty") : std::string(); })
      ->type_name("TEXT");
  app.add_option("--seed", request.seed, "of the draws")->check(CLI::NonNegativeNumber)->type_name("N");
  app.add_option("--samples", request.samples, "texts of each prompt")->check(CLI::PositiveNumber)->type_name("N");
  app.add_option("--batch", request.batch, "texts in work at a time; default: 32")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--cache-tokens", request.cache_tokens, "positions of the KV cache; default: enough, at most 65536")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

void declare(CLI::App& app, ScoreRequest& request) {
  app.footer("A line is an object with ids or text, and perhaps an id. See docs/generate.md.");
  app.add_option("FILE", request.input, "JSON lines; default: standard input")->type_name("");
  declare(app, request.model);
  app.add_option("--temperature", request.temperature, "of softmax(logits / temperature); default: 1")
      ->check(CLI::Range(1e-6, 1e6))
      ->type_name("T");
  app.add_option("--batch-tokens", request.batch_tokens, "of a forward pass; default: 4096")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
}

void declare(CLI::App& app, ExportRequest& request) {
  app.add_option("PATH", request.path, "run folder (its latest checkpoint), checkpoint, or Hugging Face folder")
      ->required()
      ->type_name("");
  app.add_option("--output", request.output, "folder to make")->required()->type_name("DIR");
  app.add_flag("--merge-lora", request.merge_lora,
               "one model with the adapters merged in; without it DIR/base and DIR/adapter (PEFT)");
  app.add_option("--dtype", request.dtype, "float32, bfloat16 or float16; default: as stored")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->type_name("TYPE");
  app.add_option("--shard-megabytes", request.shard_megabytes, "a larger model is written in several files")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  app.add_flag("--overwrite", request.overwrite, "replace a folder that is there");
}

void declare(CLI::App& app, InspectRequest& request) {
  app.add_option("PATH", request.path, "rollouts/step_N.jsonl, or a run folder: its latest")->required()->type_name("");
  app.add_option("--row", request.row, "show the trajectory on this line")->check(CLI::PositiveNumber)->type_name("N");
  app.add_option("--traj", request.trajectory, "show the trajectory of this traj_id")->type_name("ID");
  app.add_option("--tokenizer", request.tokenizer, "tokenizer.json or its folder; default: the run's")
      ->type_name("PATH");
  app.add_flag("--tokens", request.tokens, "with a table of the sampled tokens");
  app.add_option("--columns", request.columns, "of that table, separated by commas; default: all in the file")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  app.add_flag("!--no-color", request.colour, "brackets instead of colours, as when the output is no terminal");
}

void declare(CLI::App& app, CreditRequest& request) {
  app.add_option("FILE", request.file, "rollouts: docs/trajectory_format.md")->required()->type_name("");
  app.add_option("--method", request.method, "method or composition: grpo + aem")->required()->type_name("M");
  app.add_option("--output", request.output, "file to write; default: standard output")->type_name("FILE");
  app.add_flag("--explain", request.explain,
               "also ratio, clip_state and gradient of each token, where rows hold `logp`");
  add_overrides(app, request.overrides,
                "options of the method, as in a recipe's `method` section, and objective.* keys");
}

void declare(CLI::App& app, AnalyzeRequest& request) {
  app.add_option("NAME", request.name, "`carnot list analyses` prints them")->required()->type_name("");
  app.add_option("ARGUMENTS", request.arguments,
                 "paths that it reads, and key=value: its options and, for a checkpoint, keys of its recipe")
      ->type_name("");
  app.add_option("--output", request.output, "folder of NAME.json and NAME.html; default: analyses")->type_name("DIR");
}

void declare(CLI::App& app, ListRequest& request) {
  app.add_option("TOPIC", request.topic, "methods, environments, chats, analyses or keys; default: the first three")
      ->check(CLI::IsMember({"methods", "environments", "chats", "analyses", "keys"}))
      ->type_name("");
  app.add_flag("--json", request.json, "print JSON");
}

void declare(CLI::App& app, PlayRequest& request) {
  app.add_option("NAME", request.name, "`carnot list environments` prints them")->required()->type_name("");
  add_overrides(app, request.overrides, "options of the environment, as in a recipe's `env` section: dim_x=8");
  app.add_option("--seed", request.seed, "of the instance")->check(CLI::NonNegativeNumber)->type_name("N");
  app.add_option("--run-seed", request.run_seed, "the recipe's `seed`, of what all instances share")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_flag("--json", request.json, "one object a line");
  app.add_flag("--prompt", request.prompt, "what a policy sees; each line of input is one response");
}

void declare(CLI::App& app, TokenizeRequest& request) {
  app.add_option("DIR", request.tokenizer, "folder with a tokenizer, or a tokenizer.json")->required()->type_name("");
  app.add_flag("--decode", request.decode, "token ids to JSON strings");
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
  const auto distance = [&](const CommandEntry& entry) { return edit_distance(name, entry.name); };
  const auto& all = commands();
  const auto nearest =
      std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  const bool near = distance(*nearest) <= std::max(1, static_cast<int>(nearest->name.size()) / 2);
  return {"there is no command '" + name + "'; " +
          (near ? "did you mean '" + std::string(nearest->name) + "'?" : "`carnot --help` lists them")};
}

/// The usage, and whose options the command takes as far as its arguments say.
Request help_of(const CLI::App& app, const Request& request) {
  if (const auto* run = std::get_if<RunRequest>(&request))
    return RunHelpRequest{app.help(), {.recipe = run->recipe, .overrides = run->overrides}};
  if (const auto* compare = std::get_if<CompareRequest>(&request))
    return RunHelpRequest{app.help(), {.recipe = compare->recipe, .overrides = compare->overrides}};
  if (std::holds_alternative<EvaluateRequest>(request)) return RunHelpRequest{app.help()};
  if (const auto* analyze = std::get_if<AnalyzeRequest>(&request)) return AnalysesRequest{app.help(), analyze->name};
  HelpRequest help{.text = app.help()};
  if (const auto* play = std::get_if<PlayRequest>(&request)) help.environment = play->name;
  if (const auto* credit = std::get_if<CreditRequest>(&request)) help.method = credit->method;
  return help;
}

Result<Request> parse_command(const CommandEntry& entry, std::span<const std::string> arguments) {
  Request request = entry.blank;
  CLI::App app(std::string(entry.summary), "carnot " + std::string(entry.name));
  app.get_formatter()->column_width(kHelpColumn);
  app.set_help_flag("-h,--help", "print this");
  std::visit(
      [&](auto& fields) {
        if constexpr (requires { declare(app, fields); }) declare(app, fields);
      },
      request);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return help_of(app, request);
  } catch (const CLI::ParseError& error) {
    const std::string name(entry.name);
    return Error{name + ": " + error.what() + "; `carnot " + name + " --help` prints what it takes"};
  }
  const auto* credit = std::get_if<CreditRequest>(&request);
  if (credit != nullptr && credit->explain) return Request(ExplainRequest{*credit});
  const auto* list = std::get_if<ListRequest>(&request);
  if (list != nullptr && list->topic == "keys") return Request(KeysRequest{.json = list->json});
  if (list != nullptr && list->topic == "analyses") return Request(AnalysesRequest{.json = list->json});
  return request;
}

Result<Request> parse_help(std::span<const std::string> arguments) {
  if (arguments.empty()) return Request(HelpRequest{overview()});
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

Result<Request> parse_command_line(std::span<const std::string> arguments) {
  if (arguments.empty()) return Error{"expected a command; `carnot --help` lists them"};
  const std::string& name = arguments.front();
  const auto rest = arguments.subspan(1);
  if (name == "--version") return Request(VersionRequest{});
  if (name == "-h" || name == "--help" || name == "help") return parse_help(rest);
  const CommandEntry* entry = find_command(name);
  if (entry == nullptr) return unknown_command(name);
  return parse_command(*entry, rest);
}

}  // namespace carnot
