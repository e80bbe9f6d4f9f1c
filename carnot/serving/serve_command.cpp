#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/serving/job_console.h"
#include "carnot/serving/model_options.h"
#include "carnot/serving/serve.h"

namespace carnot {
namespace {

class ServeCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    declare_model(take, request_.model);
    take.text("--name", "NAME", request_.name, "of the model in requests; default: what --model says");
    take.text("--host", "ADDRESS", request_.host, "to listen on; default: 127.0.0.1. Others need --api-key-env");
    take.count("--port", "N", request_.port, 0, "to listen on; 0: any that is free; default: 8000");
    take.text("--api-key-env", "NAME", request_.key_variable,
              "environment variable with the key that requests need; default: they need none");
    take.count("--batch", "N", request_.texts.batch, 1, "texts in work at a time; default: 32");
    take.count("--cache-tokens", "N", request_.texts.cache_tokens, 0,
               "positions of the KV cache; default: enough, at most 65536");
    take.count("--queue", "N", request_.texts.queue, 0, "further texts that may wait; default: 256");
    take.count("--connections", "N", request_.connections, 1, "open at a time; default: 256");
  }

  Exit run(const Console& console) override {
    prepare_to_compute();
    return ended(run_serve(request_, prepare_job(console)), console);
  }

 private:
  ServeRequest request_;
};

}  // namespace

CommandEntry serve_entry() {
  return {.name = "serve",
          .arguments = "--model DIR",
          .summary = "answer OpenAI's API over HTTP",
          .example = "--model runs/quickstart --port 8000",
          .make = make_command<ServeCommand>};
}

}  // namespace carnot
