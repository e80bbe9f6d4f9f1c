#include "carnot/serving/serve.h"

#include <chrono>
#include <ostream>
#include <random>
#include <thread>

#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/http/server.h"
#include "carnot/serving/openai_api.h"

namespace carnot {
namespace {

constexpr std::chrono::milliseconds kSlice{50};

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

}  // namespace

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

}  // namespace carnot
