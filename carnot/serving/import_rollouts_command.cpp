// The command `carnot import-rollouts`: what other systems write becomes a folder of rollouts, with log-probabilities
// and signals of a model where one is named.
#include <iterator>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/rollout/info_gain.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/core/rows/row_file.h"
#include "carnot/serving/imported/imported_groups.h"
#include "carnot/serving/job_console.h"
#include "carnot/serving/loaded_model.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRowProblems = 20;

struct ImportRequest {
  std::vector<std::string> files{}, scores{};
  fs::path output{}, tokenizer{}, reference{};
  std::string format{}, answer_lead{};
  ModelRequest model{};
  RolloutImportOptions options{};
  LogProbPassOptions pass{};
};

void copy_column(Tree& tree, Column from, Column to) {
  for (int n = 0; n < tree.columns.num_turns(from); ++n) {
    const std::vector<double> values = tree.columns.turn(from, n);
    tree.columns.edit(to, n, static_cast<int>(values.size())) = values;
  }
}

/// Log-probabilities and entropies under the model, as the old policy's; and as those of sampling, where the records
/// have none.
void measure_policy(const Model& model, std::vector<Group>& groups, const LogProbPassOptions& pass) {
  measure_old_policy(model, groups, pass);
  for (Group& group : groups)
    for (Tree& tree : group.trees) {
      if (!tree.columns.has(Column::LogProbRollout)) copy_column(tree, Column::LogProbOld, Column::LogProbRollout);
      copy_column(tree, Column::EntropyOld, Column::EntropyRollout);
    }
}

Status measure(const ImportRequest& request, const LoadedModel& loaded, std::vector<Group>& groups) {
  measure_policy(*loaded.model, groups, request.pass);
  if (!request.reference.empty()) {
    ModelRequest other = request.model;
    other.path = request.reference;
    CARNOT_ASSIGN_OR_RETURN(const auto reference, load_for_log_probs(other));
    if (reference.model->config().vocab_size != loaded.model->config().vocab_size)
      return Error{request.reference.string() + ": has another vocabulary than " + request.model.path.string()};
    measure_reference(*reference.model, groups, request.pass);
  }
  if (!request.answer_lead.empty())
    measure_info_gain(*loaded.model, *loaded.tokenizer, groups, {.text = request.answer_lead}, {}, request.pass);
  return Done{};
}

/// A folder as a run's: rollouts/step_N.jsonl, and the tokenizer. Returns its number of steps.
Result<std::size_t> write_folder(const fs::path& output, const std::vector<Group>& groups, const LoadedModel& loaded) {
  CARNOT_ASSIGN_OR_RETURN(const auto tokenizer, read_file(loaded.folder / "tokenizer.json"));
  CARNOT_RETURN_IF_ERROR(make_folder(output / "rollouts"));
  CARNOT_RETURN_IF_ERROR(write_file_atomically(output / "tokenizer.json", tokenizer));
  std::map<std::int64_t, std::vector<Group>> steps;
  for (const Group& group : groups) steps[group.step].push_back(group);
  for (const auto& [step, own] : steps)
    CARNOT_RETURN_IF_ERROR(write_file_atomically(
        output / "rollouts" / ("step_" + std::to_string(step) + ".jsonl"),
        rollout_rows(own, {}, [&](std::span<const TokenId> tokens) { return loaded.tokenizer->decode(tokens); })));
  return steps.size();
}

std::string summary(const ImportRequest& request, const ImportedRollouts& read, const ImportedGroups& made,
                    std::size_t steps) {
  std::string text = std::to_string(read.rollouts.size()) + " trajectories (" + std::string(read.format->name) + ": " +
                     std::string(read.format->what) + ") in " + std::to_string(made.groups.size()) + " groups of " +
                     std::to_string(steps) + (steps == 1 ? " step" : " steps") + " in " + request.output.string() +
                     "\n";
  if (read.format->sums_measures && request.scores.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : read.rollouts.front().measures) names.push_back(name);
    text += "The score is the sum of " + join(names, ", ") + "; --score chooses others.\n";
  }
  if (made.failed > 0) text += std::to_string(made.failed) + " failed before any response; they were left out.\n";
  if (made.log_probs > 0)
    text += std::to_string(made.log_probs) + " have the log-probabilities of their records (logp_rollout).\n";
  if (made.not_aligned > 0)
    text += std::to_string(made.not_aligned) +
            " have records with another number of log-probabilities than tokens here; they were left out.\n";
  if (made.groups.size() == read.rollouts.size() && made.groups.size() > 1)
    text += "No two trajectories are of one task: methods that compare a group's members give them nothing.\n";
  return text + "carnot view " + request.output.string() + " shows them.\n";
}

/// The score as the sum of these measures.
Status add_scores(const std::vector<std::string>& measures, ImportedRollouts& read) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < read.rollouts.size() && problems.size() < kMostRowProblems; ++i) {
    ImportedRollout& rollout = read.rollouts[i];
    rollout.score = 0;
    for (const std::string& name : measures) {
      const auto found = rollout.measures.find(name);
      if (found == rollout.measures.end())
        problems.push_back(read.lines[i] + name + ": this field is missing, or no number; --score reads it");
      else
        rollout.score += found->second;
    }
  }
  return problems.empty() ? Status(Done{}) : join_errors(problems);
}

/// All files, which have one format.
Result<ImportedRollouts> read_files(const ImportRequest& request) {
  ImportedRollouts all;
  std::string format = request.format;
  for (const std::string& file : request.files) {
    if (file.ends_with(".eval"))
      return Error{file + ": is an archive; expected JSON, as inspect log convert --to json makes of it"};
    CARNOT_ASSIGN_OR_RETURN(const auto text, read_row_text(file, "python3"));
    CARNOT_ASSIGN_OR_RETURN(auto read, parse_rollouts(text, file, format));
    all.format = read.format;
    format = read.format->name;
    std::move(read.rollouts.begin(), read.rollouts.end(), std::back_inserter(all.rollouts));
    std::move(read.lines.begin(), read.lines.end(), std::back_inserter(all.lines));
  }
  if (!request.scores.empty()) CARNOT_RETURN_IF_ERROR(add_scores(request.scores, all));
  return all;
}

Result<std::string> import_files(ImportRequest request) {
  if (request.files.empty()) return Error{"expected a FILE, or several of one format"};
  if (request.model.path.empty() == request.tokenizer.empty())
    return Error{"expected either --model DIR, which measures, or --tokenizer DIR"};
  if (request.model.path.empty() && (!request.reference.empty() || !request.answer_lead.empty()))
    return Error{"--reference and --answer-lead: measure with a model; expected --model DIR with them"};
  if (fs::exists(request.output / "rollouts"))
    return Error{request.output.string() + ": holds rollouts already; expected a new folder"};
  CARNOT_ASSIGN_OR_RETURN(const auto read, read_files(request));
  const bool measures = !request.model.path.empty();
  if (!measures) request.model.path = request.tokenizer;
  CARNOT_ASSIGN_OR_RETURN(const auto loaded,
                          measures ? load_for_generation(request.model) : load_for_texts(request.model));
  if (!loaded.chat)
    return Error{loaded.folder.string() + ": " +
                 (loaded.chat_problem.empty() ? "no chat format is known for it" : loaded.chat_problem) +
                 "; --chat names one"};
  CARNOT_ASSIGN_OR_RETURN(auto made, import_groups(read, *loaded.chat, request.options));
  if (measures) CARNOT_RETURN_IF_ERROR(measure(request, loaded, made.groups));
  CARNOT_ASSIGN_OR_RETURN(const auto steps, write_folder(request.output, made.groups, loaded));
  return summary(request, read, made, steps);
}

class ImportRolloutsCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    std::vector<std::string> formats;
    for (const RolloutFormat& format : rollout_formats()) formats.emplace_back(format.name);
    take.operand("FILE", request_.files, "what another system wrote: JSON lines, JSON, CSV, Parquet");
    take.text("--output", "DIR", request_.output, "folder to write, as a run's", Presence::Required);
    take.word("--format", "F", request_.format, formats, "of the file; default: as its first record is");
    take.list("--score", "FIELDS", request_.scores,
              "numeric fields whose sum is the score; default: the format's own, of trl all but step and advantage");
    take.text("--tokenizer", "DIR", request_.tokenizer, "folder with tokenizer and chat template; nothing is measured");
    take.text("--model", "DIR", request_.model.path,
              "Hugging Face folder or id in the hub's cache, checkpoint, or run folder: measures log-probabilities and "
              "entropies");
    take.text("--reference", "DIR", request_.reference, "with --model: measures a reference, too");
    take.text("--answer-lead", "TEXT", request_.answer_lead,
              "with --model: measures information gains of the answers, after this text: \"<answer>\"");
    take.text("--chat", "NAME", request_.model.chat, "chat family; default: the folder's template");
    take.text("--think-tag", "TAG", request_.options.think_tag,
              "what a response has between these tags is thinking, the rest action; default: think");
    take.number("--success", "SCORE", request_.options.success_score, Limits(),
                "from which a trajectory counts as success; default: 1");
    take.number("--temperature", "T", request_.pass.temperature, between(1e-6, 1e6),
                "at which the policy sampled; default: 1");
    take.word("--dtype", "T", request_.model.dtype, {"float32", "float64", "bfloat16"},
              "of the computation; default: float32");
    take.count("--threads", "N", request_.model.threads, 0, "of the kernels; default: one per processor");
    take.count("--batch-tokens", "N", request_.pass.max_tokens, 1, "of a forward pass; default: 4096");
  }

  Exit run(const Console& console) override {
    prepare_to_compute();
    return print(import_files(request_), console);
  }

 private:
  ImportRequest request_;
};

}  // namespace

CommandEntry import_rollouts_entry() {
  return {.name = "import-rollouts",
          .arguments = "FILE ... --output DIR",
          .summary = "rollouts of verl, TRL, verifiers, Inspect or OpenAI messages as Carnot's",
          .example = "completions.parquet --model models/Qwen2.5-0.5B-Instruct --output imported",
          .make = make_command<ImportRolloutsCommand>};
}

}  // namespace carnot
