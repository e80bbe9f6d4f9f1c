#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/serving/job_console.h"

namespace carnot {
namespace {

class ScoreCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("FILE", request_.input,
                 "JSON lines: objects with ids or text, and perhaps an id; default: standard input",
                 Presence::Optional);
    declare_model(take, request_.model);
    take.number("--temperature", "T", request_.temperature, between(1e-6, 1e6),
                "of softmax(logits / temperature); default: 1");
    take.count("--batch-tokens", "N", request_.batch_tokens, 1, "of a forward pass; default: 4096");
  }

  Exit run(const Console& console) override {
    prepare_to_compute();
    const auto job = prepare_score(request_, console.in);
    if (!job) return report(console, job.error());
    return ended(run_score(*job, prepare_job(console)), console);
  }

 private:
  ScoreRequest request_;
};

}  // namespace

CommandEntry score_entry() {
  return {.name = "score",
          .arguments = "--model DIR [FILE]",
          .summary = "log-probabilities and entropies of token sequences, line by line",
          .example = "--model runs/quickstart sequences.jsonl",
          .make = make_command<ScoreCommand>};
}

}  // namespace carnot
