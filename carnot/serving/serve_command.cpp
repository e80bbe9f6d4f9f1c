// The command `carnot serve`: a model that answers OpenAI's API, or Tinker's training API, over HTTP until it is asked
// to stop.
#include <algorithm>
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
#include "carnot/serving/tinker/tinker_api.h"

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
  bool tinker = false;  ///< Tinker's API instead of OpenAI's
  std::string weights = "runs/tinker";
  int models = 8;
  int micro_batch_tokens = 4096;
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

std::string name_of(const ServeRequest& request) {
  return request.name.empty() ? request.model.path.string() : request.name;
}

/// What the server needs of the API behind it.
template <class Queue>
struct Served {
  HttpHandler answer{};
  Queue& queue;
  std::string path{};  ///< of the address that is written
};

HttpServerOptions server_options(const ServeRequest& request, const std::string& key) {
  HttpServerOptions options{
      .host = request.host, .port = request.port, .key = key, .max_connections = request.connections};
  if (request.tinker) {
    options.key_header = "X-API-Key";
    options.open_paths = {"/api/v1/healthz"};
    options.body_types = {"application/json", "application/x-protobuf"};
    options.max_body_bytes = std::size_t{64} << 20;
    options.error_body = [](int, const std::string& what) { return tinker_error(what); };
  } else {
    options.open_paths = {"/health"};
    options.error_body = [](int status, const std::string& what) { return error_answer(status, what); };
  }
  return options;
}

/// Listens, and writes a line with the address. Once `control.stop_requested` is true it takes no more requests,
/// answers those in work and returns.
template <class Queue>
Status serve_until_stopped(const HttpServerOptions& options, const Served<Queue>& served, const JobControl& control) {
  CARNOT_ASSIGN_OR_RETURN(auto server, HttpServer::start(options, served.answer));
  control.out << "http://" << (options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]")
              << ":" << server->port() << served.path << std::endl;
  Queue& queue = served.queue;
  while (!control.stop_requested() && !queue.failure()) std::this_thread::sleep_for(kSlice);
  queue.close();
  while (!queue.is_idle() && !queue.failure()) std::this_thread::sleep_for(kSlice);
  server->stop();
  if (const auto failure = queue.failure()) std::rethrow_exception(failure);
  return Done{};
}

Status serve_openai(const ServeRequest& request, const LoadedModel& model, const HttpServerOptions& options,
                    const JobControl& control) {
  if (!model.chat)
    log_warning(model.folder.string() + ": " +
                (model.chat_problem.empty() ? "no chat format is known for it" : model.chat_problem) +
                "; /v1/chat/completions is refused. --chat names a format");
  TextService service(*model.model, *model.tokenizer, request.texts);
  OpenAiApi api(model, service, name_of(request), seed_of_this_start());
  return serve_until_stopped(
      options,
      Served<TextService>{.answer = [&](const HttpCall& call,
                                        const HttpConnection& connection) { return api.answer(call, connection); },
                          .queue = service,
                          .path = "/v1"},
      control);
}

Status serve_tinker(const ServeRequest& request, const LoadedModel& model, const HttpServerOptions& options,
                    const JobControl& control) {
  TextServiceOptions texts = request.texts;
  texts.cache_tokens = cache_positions(*model.model, texts);
  TinkerService service(model, {.name = name_of(request),
                                .store = request.weights,
                                .models = request.models,
                                .micro_batch_tokens = request.micro_batch_tokens,
                                .texts = texts});
  // Each sample that is waited for takes a connection; others need some, too.
  TinkerApi api(service, std::max(1, std::min(texts.batch + texts.queue, request.connections) / 2));
  return serve_until_stopped(
      options,
      Served<WorkQueue>{.answer = [&](const HttpCall& call, const HttpConnection&) { return api.answer(call); },
                        .queue = service.queue()},
      control);
}

/// The error says what is wrong with the request, among others: an address that other machines reach, without a key.
/// Throws what the engine threw.
Status run_serve(const ServeRequest& request, const JobControl& control) {
  if (request.port > 65535)
    return Error{"--port: expected a number from 0 to 65535, found " + std::to_string(request.port)};
  CARNOT_ASSIGN_OR_RETURN(const auto key, key_of(request));
  ModelRequest wanted = request.model;
  wanted.trains = request.tinker;
  CARNOT_ASSIGN_OR_RETURN(const auto model, load_for_generation(wanted));
  warn_of_ignored_settings(model);
  const HttpServerOptions options = server_options(request, key);
  return request.tinker ? serve_tinker(request, model, options, control)
                        : serve_openai(request, model, options, control);
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
    take.flag("--tinker", request_.tinker, "offer Tinker's training API instead of OpenAI's");
    take.text("--weights", "DIR", request_.weights, "with --tinker: folder of saved weights; default: runs/tinker");
    take.count("--models", "N", request_.models, 1, "with --tinker: adapters in training at a time; default: 8");
    take.count("--micro-batch-tokens", "N", request_.micro_batch_tokens, 1,
               "with --tinker: rows of a forward pass in training; default: 4096");
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
          .summary = "answer OpenAI's API over HTTP, or Tinker's",
          .example = "--model runs/quickstart --port 8000",
          .make = make_command<ServeCommand>};
}

}  // namespace carnot
