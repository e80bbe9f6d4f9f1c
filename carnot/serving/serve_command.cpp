// The command `carnot serve`: a model that answers OpenAI's API over HTTP until it is asked to stop.
#include <chrono>
#include <ostream>
#include <random>
#include <thread>

#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/http/server.h"
#include "carnot/serving/job_console.h"
#include "carnot/serving/openai_api.h"
#include "carnot/serving/text_service.h"

namespace carnot {
namespace {

constexpr std::chrono::milliseconds kSlice{50};

struct ServeRequest {
  ModelRequest model{};
  std::string name{};  ///< of the model in requests; empty: `model.path` as it is given
  std::string host = "127.0.0.1";
  int port = 8000;             ///< 0: any that is free
  std::string key_variable{};  ///< environment variable with the key that requests need; empty: they need none
  int connections = 256;
  TextServiceOptions texts{};
};

Result<std::string> key_of(const ServeRequest& request) {
  if (request.key_variable.empty()) {
    if (is_loopback(request.host)) return std::string();
    return Error{"--host " + request.host +
                 ": other machines reach that address; expected --api-key-env NAME with it, or 127.0.0.1"};
  }
  return key_of_variable(request.key_variable, "--api-key-env");
}

std::uint64_t seed_of_this_start() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

/// Loads the model, listens, and writes a line with the address. Once `control.stop_requested` is true it takes no more
/// requests, answers those in work and returns. The error says what is wrong with the request, among others: an address
/// that other machines reach, without a key. Throws what the engine threw.
Status run_serve(const ServeRequest& request, const JobControl& control) {
  if (request.port > 65535)
    return Error{"--port: expected a number from 0 to 65535, found " + std::to_string(request.port)};
  CARNOT_ASSIGN_OR_RETURN(const auto key, key_of(request));
  CARNOT_ASSIGN_OR_RETURN(auto model, load_for_generation(request.model));
  warn_of_ignored_settings(model);
  if (!model.chat)
    log_warning(model.folder.string() + ": " +
                (model.chat_problem.empty() ? "no chat format is known for it" : model.chat_problem) +
                "; /v1/chat/completions is refused. --chat names a format");
  TextService service(*model.model, *model.tokenizer, request.texts);
  OpenAiApi api(model, service, request.name.empty() ? request.model.path.string() : request.name,
                seed_of_this_start());
  CARNOT_ASSIGN_OR_RETURN(
      auto server,
      HttpServer::start(
          {.host = request.host,
           .port = request.port,
           .key = key,
           .open_paths = {"/health"},
           .max_connections = request.connections,
           .error_body = [](int status, const std::string& what) { return error_answer(status, what); }},
          [&](const HttpCall& call, const HttpConnection& connection) { return api.answer(call, connection); }));
  control.out << "http://" << (request.host.find(':') == std::string::npos ? request.host : "[" + request.host + "]")
              << ":" << server->port() << "/v1" << std::endl;
  while (!control.stop_requested() && !service.failure()) std::this_thread::sleep_for(kSlice);
  service.close();
  while (!service.is_idle() && !service.failure()) std::this_thread::sleep_for(kSlice);
  server->stop();
  if (const auto failure = service.failure()) std::rethrow_exception(failure);
  return Done{};
}

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
