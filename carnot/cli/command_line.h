// cli/command_line.h -- what the user typed, as plain values; the table of commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/cli/inspect.h"
#include "carnot/cli/play_environment.h"
#include "carnot/cli/recompute_credit.h"
#include "carnot/cli/usage.h"

namespace carnot {

struct HelpRequest {
  std::string text{};         ///< usage and flags
  std::string environment{};  ///< whose keys stand below; empty: no environment's
  std::string method{};       ///< the same
};

struct VersionRequest {};

/// The keys of a recipe; without one, of the default recipe.
struct KeysRequest {
  std::filesystem::path recipe{};
  std::vector<std::string> overrides{};
  bool json = false;
};

/// Help of a command that reads a recipe: its keys stand below.
struct RunHelpRequest {
  std::string text{};
  KeysRequest keys{};
};

/// train, sft, rollout
struct RunRequest {
  enum class Stage { Training, Sft, Rollout };
  Stage stage = Stage::Training;
  std::filesystem::path recipe{};
  std::vector<std::string> overrides{};
  bool dry_run = false;
};

struct CompareRequest {
  std::filesystem::path recipe{};
  std::string methods = "all";
  std::string seeds = "0-2";
  std::string base{};
  std::filesystem::path output = "runs/compare";
  std::vector<std::string> overrides{};
  bool dry_run = false;
};

struct EvaluateRequest {
  std::filesystem::path path{};
  std::vector<std::string> overrides{};
  bool json = false;
};

/// The model that `generate` and `score` run.
struct ModelChoice {
  std::filesystem::path path{};
  std::string chat{};
  std::string device = "cpu";
  std::string dtype = "float32";
  int threads = 0;
};

struct GenerateRequest {
  ModelChoice model{};
  std::vector<std::string> prompts{};
  std::string messages{};
  std::string input{};
  std::string system{};
  bool raw = false;
  bool json = false;
  std::optional<double> temperature{}, top_p{};
  std::optional<int> top_k{};
  int max_tokens = 512;
  std::vector<std::string> stop{};
  std::uint64_t seed = 0;
  int samples = 1;
  int batch = 32;
  int cache_tokens = 0;
};

struct ScoreRequest {
  ModelChoice model{};
  std::string input = "-";
  double temperature = 1;
  int batch_tokens = 4096;
};

/// Names of analyses with what they read; with an analysis' own name, its options.
struct AnalysesRequest {
  std::string text{};  ///< usage and flags, printed in front
  std::string name{};
  bool json = false;
};

struct AnalyzeRequest {
  std::string name{};
  std::vector<std::string> arguments{};  ///< paths and `key=value`
  std::filesystem::path output = "analyses";
};

/// `credit --explain`: reads the objective's tensors, which `credit` alone does without.
struct ExplainRequest {
  CreditRequest credit{};
};

struct ExportRequest {
  std::filesystem::path path{};
  std::filesystem::path output{};
  bool merge_lora = false;
  std::string dtype{};
  double shard_megabytes = 5000;
  bool overwrite = false;
};

struct ListRequest {
  std::string topic{};  ///< methods, environments, chats; empty: all of them
  bool json = false;
};

struct TokenizeRequest {
  std::filesystem::path tokenizer{};
  bool decode = false;
};

/// The script that completes command lines in a shell: bash, zsh or fish.
struct CompletionRequest {
  std::string shell = "bash";
};

/// The manual page, for `man -l`.
struct ManualRequest {};

using Request = std::variant<HelpRequest, VersionRequest, KeysRequest, RunHelpRequest, RunRequest, CompareRequest,
                             EvaluateRequest, GenerateRequest, ScoreRequest, ExportRequest, InspectRequest,
                             CreditRequest, ExplainRequest, AnalysesRequest, AnalyzeRequest, ListRequest, PlayRequest,
                             TokenizeRequest, CompletionRequest, ManualRequest>;

/// The request that the arguments (without the program's name) make. The error says what is wrong with their use.
Result<Request> parse_command_line(std::span<const std::string> arguments);

/// Every command with what it takes, in the order of `carnot --help`.
std::vector<CommandUsage> command_usages();

}  // namespace carnot
