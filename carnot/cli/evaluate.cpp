#include <ostream>

#include "carnot/cli/entries.h"
#include "carnot/cli/recipe_keys.h"
#include "carnot/cli/run_console.h"

namespace carnot {
namespace {

class EvaluateCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("PATH", request_.path, "run folder, one of its checkpoints, or a recipe", Presence::Required);
    take.operand(
        "KEY=VALUE", request_.overrides,
        "override the run's config.yaml or the recipe: eval.tasks=500; `carnot help keys RECIPE` lists the keys");
    take.flag("--json", request_.json, "print the results as JSON");
    take.word("--agent", "NAME", request_.agent, kAgents,
              "prompt: the environment's own prompts (default); react: thought, action, observation");
    take.text("--model", "DIR", request_.model, "evaluate this model: Hugging Face folder, checkpoint or run folder");
    take.text("--endpoint", "URL", request_.endpoint.url,
              "evaluate a model behind an OpenAI-compatible server: http://HOST:PORT/v1");
    take.text("--endpoint-model", "NAME", request_.endpoint.model, "that model, as the server names it");
    take.text("--endpoint-key-env", "NAME", request_.endpoint.key_variable,
              "environment variable with the server's key; default: none is sent");
    take.number("--endpoint-timeout", "SECONDS", request_.endpoint.timeout, {.low = 0, .high = 1e6, .open_low = true},
                "for an answer, retries included; default: 600");
    take.count("--endpoint-requests", "N", most_requests_, 1, "at most; what needs another one has failed");
    take.count("--concurrency", "N", request_.endpoint.concurrency, 1, "requests at a time; default: 8");
    take.text("--transcripts", "FILE", request_.transcripts, "write all conversations with the server's model there");
  }

  Exit run(const Console& console) override {
    request_.endpoint.request_timeout = request_.endpoint.timeout;
    request_.endpoint.max_requests = most_requests_;
    return ended(run_evaluation(request_, prepare_run(console, StopLeaves::Nothing)), console);
  }

 private:
  EvaluationRequest request_{.endpoint = {.timeout = 600}};
  int most_requests_ = 1'000'000;
};

}  // namespace

CommandEntry evaluate_entry() {
  return {.name = "eval",
          .arguments = "PATH [key=value ...]",
          .summary = "evaluate a run's latest checkpoint, a checkpoint, a model, or one behind a server",
          .example = "runs/quickstart eval.tasks=500",
          .settings = Settings::OfRecipe,
          .make = make_command<EvaluateCommand>};
}

}  // namespace carnot
