#include "carnot/serving/tinker/requests.h"

#include "carnot/core/base/json_fields.h"

namespace carnot {
namespace {

constexpr std::int64_t kMostSequence = INT64_MAX - 1;
constexpr int kMostSamples = 1024;
constexpr int kMostLikeliestTokens = 20;
constexpr std::int64_t kMostRank = 1024;

template <class Request, class Read>
Result<Request> parse(std::string_view body, const Read& read) {
  CARNOT_ASSIGN_OR_RETURN(const Json object, parse_json_object<Json>(body, "the request"));
  std::vector<std::string> problems;
  Request request{};
  read(JsonFields(object, "the request", problems), request);
  if (!problems.empty()) return join_errors(problems);
  return request;
}

void read_name(const JsonFields& fields, const char* name, std::string& value) {
  if (fields.require(name)) fields.read(name, value);
}

void read_sequence(const JsonFields& fields, const char* name, std::int64_t& value) {
  fields.read_whole(name, value, 0, kMostSequence);
}

void read_seed(const JsonFields& fields, std::optional<std::uint64_t>& seed) {
  if (fields.find("seed") == nullptr) return;
  std::uint64_t value = 0;
  fields.read_whole("seed", value);
  seed = value;
}

std::optional<std::vector<Json>> members(const JsonFields& fields, const Json& holder, const char* name,
                                         const std::string& what) {
  if (!holder.contains(name) || !holder[name].is_array()) {
    fields.problem(std::string(name) + ": expected " + what);
    return std::nullopt;
  }
  return holder[name].get<std::vector<Json>>();
}

std::optional<std::vector<TokenId>> token_ids(const Json& list) {
  std::vector<TokenId> tokens;
  for (const Json& token : list) {
    TokenId id = 0;
    if (!JsonFields::whole(token, id) || id < 0) return std::nullopt;
    tokens.push_back(id);
  }
  return tokens;
}

void read_prompt(const JsonFields& fields, TextRequest& request) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr || !prompt->is_object()) return fields.problem("prompt: expected an object with chunks");
  const auto chunks = members(fields, *prompt, "chunks", "a list of chunks of tokens");
  if (!chunks) return;
  for (const Json& chunk : *chunks) {
    const bool is_text = chunk.is_object() && chunk.contains("tokens") && chunk["tokens"].is_array() &&
                         (!chunk.contains("type") || chunk["type"] == "encoded_text");
    const auto tokens = is_text ? token_ids(chunk["tokens"]) : std::nullopt;
    if (!tokens) return fields.problem("prompt: expected chunks of encoded text, with token ids");
    request.prompt.insert(request.prompt.end(), tokens->begin(), tokens->end());
  }
  if (request.prompt.empty()) fields.problem("prompt: expected at least one token");
}

void read_stop(const JsonFields& fields, TextRequest& request) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return;
  request.stop_tokens.emplace();
  if (stop->is_string()) return request.stop_strings.push_back(stop->get<std::string>());
  if (stop->is_array() && !stop->empty() && stop->front().is_string()) {
    for (const Json& text : *stop) {
      if (!text.is_string()) return fields.expected("stop", "a string, or a list of strings or of token ids");
      request.stop_strings.push_back(text.get<std::string>());
    }
    return;
  }
  auto tokens = stop->is_array() ? token_ids(*stop) : std::nullopt;
  if (!tokens) return fields.expected("stop", "a string, or a list of strings or of token ids");
  request.stop_tokens = std::move(*tokens);
}

void read_sampling(const JsonFields& fields, TextRequest& request) {
  if (fields.find("max_tokens") != nullptr) {
    std::int64_t most = 0;
    fields.read_whole("max_tokens", most, 1, INT32_MAX);
    request.max_tokens = static_cast<int>(most);
  }
  fields.read("temperature", request.temperature);
  fields.read("top_p", request.top_p);
  fields.read_whole("top_k", request.top_k);
  if (request.top_k < 0) request.top_k = 0;
  if (!(request.temperature >= 0 && request.temperature <= 1e6))
    fields.expected("temperature", "a number from 0 to 1e6");
  if (!(request.top_p > 0 && request.top_p <= 1)) fields.expected("top_p", "a number above 0, at most 1");
  read_seed(fields, request.seed);
  read_stop(fields, request);
}

void refuse(const JsonFields& fields, const char* name, bool is_set) {
  if (is_set) fields.problem(std::string(name) + ": not supported");
}

void read_reports(const JsonFields& fields, TextRequest& request) {
  int of_prompt = 0, alternatives = 0;
  bool stability = false;
  fields.read("prompt_logprobs", request.prompt_log_probs);
  fields.read_whole("topk_sample_logprobs", request.likeliest);
  if (request.likeliest < 0 || request.likeliest > kMostLikeliestTokens)
    fields.expected("topk_sample_logprobs", "an integer from 0 to " + std::to_string(kMostLikeliestTokens));
  if (fields.find("prompt_logprobs_last_n") != nullptr) {
    std::int64_t last = 0;
    fields.read_whole("prompt_logprobs_last_n", last, 1, std::max<std::int64_t>(1, std::ssize(request.prompt) - 1));
    request.prompt_log_probs_last = static_cast<int>(last);
  }
  fields.read_whole("topk_prompt_logprobs", of_prompt);
  fields.read_whole("prompt_alt_tokens_k", alternatives);
  fields.read("record_stability_info", stability);
  refuse(fields, "topk_prompt_logprobs", of_prompt != 0);
  refuse(fields, "prompt_alt_tokens_k", alternatives != 0);
  refuse(fields, "target_prompt_logprobs", fields.find("target_prompt_logprobs") != nullptr);
  refuse(fields, "record_stability_info", stability);
}

}  // namespace

Result<CreateModelRequest> parse_create_model(std::string_view body) {
  return parse<CreateModelRequest>(body, [](const JsonFields& fields, CreateModelRequest& request) {
    read_name(fields, "session_id", request.session_id);
    read_sequence(fields, "model_seq_id", request.model_seq_id);
    read_name(fields, "base_model", request.base_model);
    if (const auto lora = fields.object("lora_config", "the adapter; training all weights is not supported")) {
      std::int64_t rank = 0;
      lora->read_whole("rank", rank, 1, kMostRank);
      request.rank = static_cast<int>(rank);
      lora->read("train_attn", request.train_attention);
      lora->read("train_mlp", request.train_mlp);
      read_seed(*lora, request.seed);
      if (!request.train_attention && !request.train_mlp)
        lora->problem("train_unembed alone is not supported; expected train_attn or train_mlp");
    }
    const Json* optimizer = fields.find("optimizer_config");
    if (optimizer != nullptr && optimizer->is_object() && optimizer->contains("type") &&
        (*optimizer)["type"] != "adamw")
      fields.problem("optimizer_config.type: expected adamw, found " + shown((*optimizer)["type"]));
  });
}

Result<OptimStepRequest> parse_optim_step(std::string_view body) {
  return parse<OptimStepRequest>(body, [](const JsonFields& fields, OptimStepRequest& request) {
    read_name(fields, "model_id", request.model_id);
    read_sequence(fields, "seq_id", request.seq_id);
    const auto adam = fields.object("adam_params", "AdamW's settings; other optimizers are not supported");
    if (!adam) return;
    const auto number = [&](const char* name, double& value, double low, double high) {
      adam->read(name, value);
      if (!(value >= low && value <= high))
        adam->expected(name, "a number from " + std::to_string(low) + " to " + std::to_string(high));
    };
    number("learning_rate", request.adam.learning_rate, 0, 10);
    number("beta1", request.adam.beta1, 0, 1);
    number("beta2", request.adam.beta2, 0, 1);
    number("eps", request.adam.epsilon, 0, 1);
    number("weight_decay", request.adam.weight_decay, 0, 10);
    number("grad_clip_norm", request.adam.max_grad_norm, 0, 1e30);
  });
}

Result<SaveWeightsRequest> parse_save_weights(std::string_view body) {
  return parse<SaveWeightsRequest>(body, [](const JsonFields& fields, SaveWeightsRequest& request) {
    read_name(fields, "model_id", request.model_id);
    read_sequence(fields, "seq_id", request.seq_id);
    fields.read("path", request.name);
    fields.read("overwrite", request.overwrite);
    fields.read_whole("sampling_session_seq_id", request.sampling_session_seq_id);
    const Json* kind = fields.find("kind");
    if (kind != nullptr && *kind != "snapshot") fields.expected("kind", "snapshot");
  });
}

Result<LoadWeightsRequest> parse_load_weights(std::string_view body) {
  return parse<LoadWeightsRequest>(body, [](const JsonFields& fields, LoadWeightsRequest& request) {
    read_name(fields, "path", request.path);
    fields.read("base_model", request.base_model);
    fields.read("optimizer", request.optimizer);
    fields.read("model_id", request.model_id);
    if (!request.model_id.empty()) return read_sequence(fields, "seq_id", request.seq_id);
    read_name(fields, "session_id", request.session_id);
    read_sequence(fields, "model_seq_id", request.model_seq_id);
  });
}

Result<SamplingSessionRequest> parse_sampling_session(std::string_view body) {
  return parse<SamplingSessionRequest>(body, [](const JsonFields& fields, SamplingSessionRequest& request) {
    read_name(fields, "session_id", request.session_id);
    read_sequence(fields, "sampling_session_seq_id", request.seq_id);
    fields.read("base_model", request.base_model);
    fields.read("model_path", request.model_path);
    if (request.base_model.empty() && request.model_path.empty()) fields.problem("expected base_model or model_path");
  });
}

Result<TextRequest> parse_sample(std::string_view body) {
  return parse<TextRequest>(body, [](const JsonFields& fields, TextRequest& request) {
    read_name(fields, "sampling_session_id", request.sampling_session_id);
    read_sequence(fields, "seq_id", request.seq_id);
    read_prompt(fields, request);
    fields.read_whole("num_samples", request.samples);
    if (request.samples < 1 || request.samples > kMostSamples)
      fields.expected("num_samples", "an integer from 1 to " + std::to_string(kMostSamples));
    if (const auto sampling = fields.object("sampling_params", "how to sample")) read_sampling(*sampling, request);
    read_reports(fields, request);
  });
}

Result<std::string> parse_text_field(std::string_view body, const char* field) {
  return parse<std::string>(body,
                            [&](const JsonFields& fields, std::string& value) { read_name(fields, field, value); });
}

}  // namespace carnot
