#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/serving/job_console.h"

namespace carnot {
namespace {

class GenerateCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    GenerateOptions& options = request_.options;
    take.operand("PROMPT", request_.prompts, "texts to answer, or with --raw to continue; without one, standard input");
    declare_model(take, request_.model);
    take.text("--messages", "JSON", request_.messages,
              "a conversation as JSON: [{\"role\": ..., \"content\": ...}, ...]");
    take.text("--input", "FILE", request_.input, "JSON lines with prompt, messages or ids; -: standard input");
    take.text("--system", "TEXT", request_.system, "system message of prompts");
    take.flag("--raw", request_.raw, "prompts as they are, without a chat format");
    take.flag("--json", request_.json, "one object per line: text, token ids, log-probabilities, entropies");
    take.number("--temperature", "T", request_.temperature, between(0, 1e6),
                "0: the most likely token; default: the model's, else 0");
    take.number("--top-p", "P", request_.top_p, between(1e-9, 1), "sample from the most likely tokens with this mass");
    take.count("--top-k", "K", request_.top_k, 0, "sample from this many most likely tokens; 0: all");
    take.count("--max-tokens", "N", options.max_tokens, 1, "of a text; default: 512");
    take.texts("--stop", "TEXT", options.stop_strings,
               "text that ends a result and is left out of it; may be given several times");
    take.seed("--seed", "N", options.seed, "of the draws");
    take.count("--samples", "N", options.samples, 1, "texts of each prompt");
    take.count("--batch", "N", options.batch, 1, "texts in work at a time; default: 32");
    take.count("--cache-tokens", "N", options.cache_tokens, 0,
               "positions of the KV cache; default: enough, at most 65536");
  }

  Exit run(const Console& console) override {
    prepare_to_compute();
    const auto job = prepare_generate(request_, console.in);
    if (!job) return report(console, job.error());
    return ended(run_generate(*job, prepare_job(console)), console);
  }

 private:
  GenerateRequest request_;
};

}  // namespace

CommandEntry generate_entry() {
  return {.name = "generate",
          .arguments = "--model DIR [PROMPT ...]",
          .summary = "continue prompts or conversations",
          .example = "--model runs/quickstart \"What is the region of Pelminster ?\"",
          .make = make_command<GenerateCommand>};
}

}  // namespace carnot
