#include <algorithm>
#include <utility>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/commands/evaluate.h"
#include "carnot/core/train/infra_failures.h"
#include "carnot/serving/api_policy/episodes.h"
#include "carnot/serving/openai/chat_endpoint.h"

namespace carnot {
namespace {

std::vector<EndpointTask> validation_tasks(const Recipe& recipe) {
  std::vector<EndpointTask> tasks;
  const std::int64_t num_tasks = num_evaluated_tasks(recipe.evaluation, *recipe.environment);
  for (std::int64_t i = 0; i < num_tasks; ++i)
    tasks.push_back({.uid = "validation_" + std::to_string(i),
                     .environment = recipe.environment_name,
                     .task_index = i,
                     .make = [&made_by = *recipe.environment, i] { return made_by.make(Split::Validation, i); }});
  return tasks;
}

class EndpointPolicy final : public ApiPolicy {
 public:
  EndpointPolicy(const ChatEndpointOptions& options, std::shared_ptr<ChatEndpoint> endpoint,
                 std::filesystem::path transcripts)
      : options_(options), endpoint_(std::move(endpoint)), transcripts_(std::move(transcripts)) {}

  std::string name() const override { return options_.model + " at " + endpoint_->url().shown(); }

  Result<std::optional<EvaluatedGroups>> evaluate(const Recipe& recipe, Progress& progress,
                                                  const RunControl& control) override {
    const std::vector<EndpointTask> tasks = validation_tasks(recipe);
    progress.begin("evaluation", static_cast<std::int64_t>(tasks.size()) * recipe.evaluation.samples);
    EndpointResult result = play_episodes(endpoint_, tasks, endpoint_run(recipe),
                                          {.on_progress = [&](std::int64_t ended) { progress.update(ended); },
                                           .go_on = [&] { return !control.stop_requested(); }});
    progress.end();
    if (result.stopped) return std::optional<EvaluatedGroups>();
    warn_of_failures("evaluation", result.failures);
    EvaluatedGroups out{.evaluation = evaluation_of(result, recipe)};
    out.groups = std::move(result.groups);
    out.failures = std::move(result.failures);
    if (transcripts_.empty()) return std::optional(std::move(out));
    const std::vector<std::string_view> lines(result.transcripts.begin(), result.transcripts.end());
    CARNOT_RETURN_IF_ERROR(write_file_atomically(transcripts_, lines));
    return std::optional(std::move(out));
  }

 private:
  EndpointRun endpoint_run(const Recipe& recipe) const {
    const RolloutOptions& rollout = recipe.rollout.options;
    return {.episode = {.model = options_.model,
                        .temperature = recipe.evaluation.temperature,
                        .top_p = recipe.evaluation.top_p,
                        .max_context_tokens = rollout.episode.max_context_tokens,
                        .max_response_tokens = rollout.episode.max_response_tokens,
                        .max_turns = rollout.episode.max_turns},
            .samples = recipe.evaluation.samples,
            .concurrency = options_.concurrency,
            .turn_timeout = options_.timeout + rollout.environment_timeout,
            .seed = derive_seed(static_cast<std::uint64_t>(recipe.run.seed), "evaluation")};
  }

  Evaluation evaluation_of(const EndpointResult& result, const Recipe& recipe) const {
    Evaluation evaluation = summarize(result.groups, recipe.evaluation.breakdown);
    evaluation.response_length = static_cast<double>(result.valid_cost.tokens.completion) /
                                 static_cast<double>(std::max<std::int64_t>(1, evaluation.success.trials));
    evaluation.seconds = result.seconds;
    evaluation.cost = EvaluationCost{.requests = endpoint_->requests(),
                                     .prompt_tokens = result.cost.tokens.prompt,
                                     .completion_tokens = result.cost.tokens.completion};
    return evaluation;
  }

  ChatEndpointOptions options_;
  std::shared_ptr<ChatEndpoint> endpoint_;
  std::filesystem::path transcripts_;
};

class EndpointFlags final : public ApiPolicyFlags {
 public:
  void declare(OptionParser& take) override {
    take.text("--endpoint", "URL", options_.url,
              "evaluate a model behind an OpenAI-compatible server: http://HOST:PORT/v1");
    take.text("--endpoint-model", "NAME", options_.model, "that model, as the server names it");
    take.text("--endpoint-key-env", "NAME", options_.key_variable,
              "environment variable with the server's key; default: none is sent");
    take.number("--endpoint-timeout", "SECONDS", options_.timeout, {.low = 0, .high = 1e6, .open_low = true},
                "for an answer, retries included; default: 600");
    take.count("--endpoint-requests", "N", most_requests_, 1, "at most; what needs another one has failed");
    take.count("--concurrency", "N", options_.concurrency, 1, "requests at a time; default: 8");
    take.text("--transcripts", "FILE", transcripts_, "write all conversations with the server's model there");
  }

  Result<std::shared_ptr<ApiPolicy>> policy(bool model_given) const override {
    CARNOT_RETURN_IF_ERROR(check(model_given));
    if (options_.url.empty()) return std::shared_ptr<ApiPolicy>();
    ChatEndpointOptions options = options_;
    options.request_timeout = options.timeout;
    options.max_requests = most_requests_;
    CARNOT_ASSIGN_OR_RETURN(auto opened, ChatEndpoint::open(options, "--endpoint: "));
    return std::shared_ptr<ApiPolicy>(std::make_shared<EndpointPolicy>(options, std::move(opened), transcripts_));
  }

 private:
  Status check(bool model_given) const {
    const bool remote = !options_.url.empty();
    std::vector<std::string> problems;
    if (remote && model_given) problems.emplace_back("--model: has no effect with --endpoint; expected one of them");
    if (remote && options_.model.empty())
      problems.emplace_back("--endpoint-model: missing; expected a model that the server knows");
    if (!remote && !options_.model.empty()) problems.emplace_back("--endpoint-model: has no effect without --endpoint");
    if (!remote && !transcripts_.empty()) problems.emplace_back("--transcripts: has no effect without --endpoint");
    if (options_.concurrency > kMaxThreads)
      problems.push_back("--concurrency: expected a number from 1 to " + std::to_string(kMaxThreads));
    if (!problems.empty()) return join_errors(problems);
    return Done{};
  }

  ChatEndpointOptions options_{.timeout = 600};
  int most_requests_ = 1'000'000;
  std::filesystem::path transcripts_;
};

}  // namespace

std::unique_ptr<ApiPolicyFlags> make_endpoint_flags() { return std::make_unique<EndpointFlags>(); }

}  // namespace carnot
