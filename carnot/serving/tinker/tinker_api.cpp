#include "carnot/serving/tinker/tinker_api.h"

#include <array>
#include <ctime>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

constexpr std::string_view kRoot = "/api/v1/";
constexpr const char* kProtobuf = "application/x-protobuf";
// Shorter than the 45 seconds after which the client gives up.
constexpr std::chrono::seconds kPatience{20};

HttpReply json_answer(const Json& json) { return {.body = json_line(json)}; }

HttpReply refusal(int status, const std::string& message) { return {.status = status, .body = tinker_error(message)}; }
HttpReply refusal(const TinkerRefusal& refused) { return refusal(refused.status, refused.message); }

std::vector<std::string> split(std::string_view route) {
  std::vector<std::string> parts(1);
  for (const char c : route) {
    if (c == '/')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

HttpReply no_route(const HttpCall& call) { return refusal(404, call.method + " " + call.path + ": no such route"); }

template <class Request, class Done>
HttpReply with(const Result<Request>& request, const Done& done) {
  return request ? done(*request) : refusal(400, request.error().message);
}

HttpReply future(const TinkerAnswer<std::string>& submitted) {
  if (const auto* refused = std::get_if<TinkerRefusal>(&submitted)) return refusal(*refused);
  return json_answer({{"request_id", std::get<std::string>(submitted)}});
}

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&time, &parts));
  return text.data();
}

Json listed(const WeightsListing& listing) {
  return {{"checkpoint_id", listing.weights.checkpoint_id()},
          {"checkpoint_type", listing.weights.for_sampler ? "sampler" : "training"},
          {"time", time_text(listing.saved_at)},
          {"tinker_path", listing.weights.path()},
          {"size_bytes", listing.bytes}};
}

/// What the client asks before anything else, so that it sends what is understood here.
Json client_settings(int samples) {
  return {{"pjwt_auth_enabled", false},
          {"parallel_fwdbwd_chunks", false},
          {"proto_compress_fwdbwd", false},
          {"fwdbwd_max_chunk_len", 1 << 16},  // the data of a step belong together
          {"fwdbwd_max_chunk_bytes_count", 48'000'000},
          {"sample_max_concurrent_requests", samples},
          {"use_pyqwest_transport", false}};
}

}  // namespace

std::string tinker_error(const std::string& message) { return json_line(Json{{"detail", message}}); }

HttpReply TinkerApi::answer(const HttpCall& call) {
  if (!call.path.starts_with(kRoot)) return no_route(call);
  const std::string route = call.path.substr(kRoot.size());
  if (call.method == "POST") return post(route, call);
  if (call.method == "GET") return get(route);
  const auto parts = split(route);
  if (call.method == "DELETE" && parts.size() == 5 && parts[0] == "training_runs" && parts[2] == "checkpoints")
    return checkpoints(call.method, parts[1], parts[3] + "/" + parts[4]);
  return no_route(call);
}

HttpReply TinkerApi::post(const std::string& route, const HttpCall& call) {
  if (route == "retrieve_future") return retrieve(call.body);
  if (route == "get_info") return info(call.body);
  if (route == "weights_info") return weights_info(call.body);
  if (route == "client/config") return json_answer(client_settings(samples_));
  if (route == "client/dynamic_config") return json_answer(Json::object());
  if (route == "telemetry") return json_answer({{"status", "accepted"}});
  if (route.find("session") != std::string::npos) return sessions(route, call.body);
  return work(route, call);
}

HttpReply TinkerApi::sessions(const std::string& route, const std::string& body) {
  if (route == "create_session")
    return json_answer({{"type", "create_session"}, {"session_id", service_.create_session()}});
  if (route == "session_heartbeat") {
    return with(parse_text_field(body, "session_id"), [&](const std::string& id) {
      return service_.keep_alive(id) ? json_answer({{"type", "session_heartbeat"}}) : refusal(410, "the session ended");
    });
  }
  if (route == "create_sampling_session") {
    return with(parse_sampling_session(body), [&](const SamplingSessionRequest& request) {
      const auto created = service_.create_sampling_session(request);
      if (const auto* refused = std::get_if<TinkerRefusal>(&created)) return refusal(*refused);
      return json_answer(
          {{"type", "create_sampling_session"}, {"sampling_session_id", std::get<std::string>(created)}});
    });
  }
  const auto parts = split(route);
  if (parts.size() != 3 || parts[0] != "sessions" || parts[2] != "finish")
    return refusal(404, route + ": no such route");
  service_.end_session(parts[1]);
  return json_answer(Json::object());
}

HttpReply TinkerApi::work(const std::string& route, const HttpCall& call) {
  const std::string& body = call.body;
  if (route == "forward_backward") {
    return with(parse_forward_backward(body),
                [&](const ForwardBackwardRequest& request) { return future(service_.forward_backward(request)); });
  }
  if (route == "create_model")
    return with(parse_create_model(body), [&](const auto& request) { return future(service_.create_model(request)); });
  if (route == "optim_step")
    return with(parse_optim_step(body), [&](const auto& request) { return future(service_.optim_step(request)); });
  if (route == "save_weights")
    return with(parse_save_weights(body), [&](const auto& request) { return future(service_.save_weights(request)); });
  if (route == "save_weights_for_sampler")
    return with(parse_save_weights(body),
                [&](const auto& request) { return future(service_.save_for_sampler(request)); });
  if (route == "load_weights")
    return with(parse_load_weights(body), [&](const auto& request) { return future(service_.load_weights(request)); });
  if (route == "asample")
    return with(parse_sample(body), [&](const TextRequest& request) {
      const auto submitted = service_.sample(request);
      if (const auto* refused = std::get_if<TinkerRefusal>(&submitted)) return refusal(*refused);
      const std::string& id = std::get<std::string>(submitted);
      Json texts = Json::array();
      for (int i = 0; i < request.samples; ++i) texts.push_back(id + ":" + std::to_string(i));
      return json_answer({{"request_id", id}, {"sample_sequence_ids", std::move(texts)}});
    });
  return no_route(call);
}

HttpReply TinkerApi::retrieve(const std::string& body) {
  return with(parse_text_field(body, "request_id"), [&](const std::string& id) -> HttpReply {
    const auto reply = service_.queue().reply(id, kPatience);
    if (const auto* done = std::get_if<TinkerReply>(&reply))
      return {.body = done->body, .content_type = done->is_protobuf ? kProtobuf : "application/json"};
    if (std::get<WorkQueue::Missing>(reply) == WorkQueue::Missing::Unknown)
      return refusal(410, "request_id: '" + id + "' is not known here");
    return json_answer({{"type", "try_again"}, {"request_id", id}, {"queue_state", "active"}});
  });
}

HttpReply TinkerApi::get(const std::string& route) {
  if (route == "healthz") return json_answer({{"status", "ok"}});
  const std::string& name = service_.options().name;
  if (route == "get_server_capabilities")
    return json_answer({{"supported_models", Json::array({{{"model_name", name},
                                                           {"max_context_length", service_.longest_text()},
                                                           {"trainable", true},
                                                           {"sampleable", true}}})}});
  const auto parts = split(route);
  if (parts.size() == 2 && parts[0] == "samplers") {
    const std::string& id = parts[1];
    const auto path = service_.path_of_sampler(id);
    if (!path) return refusal(404, "the sampling session '" + id + "' is not known here");
    Json sampler{{"sampler_id", id}, {"base_model", name}};
    if (!path->empty()) sampler["model_path"] = *path;
    return json_answer(sampler);
  }
  if (parts.size() == 3 && parts[0] == "training_runs" && parts[2] == "checkpoints")
    return checkpoints("GET", parts[1], "");
  return refusal(404, "GET " + route + ": no such route");
}

HttpReply TinkerApi::info(const std::string& body) {
  return with(parse_text_field(body, "model_id"), [&](const std::string& id) {
    const auto lora = service_.lora_of_model(id);
    const std::string& name = service_.options().name;
    if (!lora) return refusal(404, "the model '" + id + "' is not known here");
    return json_answer({{"type", "get_info"},
                        {"model_data", {{"model_name", name}, {"tokenizer_id", name}}},
                        {"model_id", id},
                        {"is_lora", true},
                        {"lora_rank", lora->rank},
                        {"model_name", name}});
  });
}

HttpReply TinkerApi::weights_info(const std::string& body) {
  return with(parse_text_field(body, "tinker_path"), [&](const std::string& path) {
    const auto weights = parse_weights_path(path);
    if (!weights) return refusal(400, weights.error().message);
    const auto lora = service_.lora_of_weights(*weights);
    if (!lora) return refusal(404, lora.error().message);
    return json_answer({{"base_model", service_.options().name}, {"is_lora", true}, {"lora_rank", lora->rank}});
  });
}

HttpReply TinkerApi::checkpoints(const std::string& method, const std::string& model_id,
                                 const std::string& checkpoint_id) {
  if (method == "GET") {
    Json all = Json::array();
    if (parse_weights_path("tinker://" + model_id + "/weights/any"))
      for (const WeightsListing& listing : service_.store().list(model_id)) all.push_back(listed(listing));
    return json_answer({{"checkpoints", std::move(all)}});
  }
  return with(parse_weights_path("tinker://" + model_id + "/" + checkpoint_id), [&](const SavedWeights& weights) {
    const Status removed = service_.store().remove(weights);
    return removed ? json_answer(Json::object()) : refusal(404, removed.error().message);
  });
}

}  // namespace carnot
