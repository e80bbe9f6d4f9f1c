#include "carnot/serving/tinker/tinker_service.h"

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/hf/adapter_folder.h"

namespace carnot {
namespace {

constexpr std::chrono::minutes kForgottenAfter{30};
constexpr std::size_t kMostSnapshots = 4;  // of a model
constexpr std::size_t kSessionDigits = 32;

TinkerReply json_reply(const Json& json) { return {.body = json_line(json)}; }

TinkerReply reply_of(const Status& status, const Json& done) {
  return status ? json_reply(done) : failed_reply(status.error().message, true);
}

TinkerRefusal unknown(const std::string& what, const std::string& id) {
  return {.status = 404, .message = what + " '" + id + "' is not known here; it ended, or the server was restarted"};
}

std::string text_of(std::int64_t number) { return std::to_string(number); }

/// The folder's adapter over the base model's weights.
Result<Model> with_adapter(const Model& base, const std::filesystem::path& folder) {
  Model model = base;
  CARNOT_RETURN_IF_ERROR(load_adapters(model, folder));
  return model;
}

}  // namespace

TinkerService::TinkerService(const LoadedModel& model, const TinkerOptions& options)
    : base_(model),
      options_(options),
      store_(options.store),
      seed_(derive_seed(0, random_hexadecimal(kSessionDigits))),
      queue_(*model.tokenizer, options.texts,
             std::min(model.model->config().max_positions, options.texts.cache_tokens)) {}

std::string TinkerService::create_session() {
  const std::lock_guard lock(mutex_);
  end_forgotten_sessions();
  const std::string id = random_hexadecimal(kSessionDigits);
  sessions_[id] = Clock::now();
  return id;
}

bool TinkerService::keep_alive(const std::string& session_id) {
  const std::lock_guard lock(mutex_);
  end_forgotten_sessions();
  const auto found = sessions_.find(session_id);
  if (found != sessions_.end()) found->second = Clock::now();
  return found != sessions_.end();
}

void TinkerService::end_session(const std::string& session_id) {
  const std::lock_guard lock(mutex_);
  drop_session(session_id);
}

void TinkerService::end_forgotten_sessions() {
  std::vector<std::string> forgotten;
  for (const auto& [id, heard] : sessions_)
    if (Clock::now() - heard > kForgottenAfter) forgotten.push_back(id);
  for (const std::string& id : forgotten) drop_session(id);
}

void TinkerService::drop_session(const std::string& session_id) {
  sessions_.erase(session_id);
  std::erase_if(models_, [&](const auto& model) { return model.second.session_id == session_id; });
  std::erase_if(samplers_, [&](const auto& sampler) { return sampler.second.session_id == session_id; });
}

TinkerAnswer<std::string> TinkerService::submit(const std::string& id, TinkerWork work) {
  if (queue_.submit(id, std::move(work)) != WorkQueue::Submitted::Full) return id;
  return TinkerRefusal{.status = 429, .message = "too many requests wait already; expected a later attempt"};
}

TinkerAnswer<std::string> TinkerService::submit(const std::string& model_id, std::int64_t seq_id,
                                                std::function<TinkerReply(TrainedAdapter&)> work) {
  const std::string id = model_id + ":" + text_of(seq_id);
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model_id);
  if (found == models_.end()) return unknown("the model", model_id);
  TrainedModel& model = found->second;
  sessions_[model.session_id] = Clock::now();
  if (seq_id <= model.last_seq_id) {
    if (queue_.knows(id)) return id;  // sent again
    return TinkerRefusal{.message = "seq_id: " + text_of(seq_id) + " was answered before; the model is at " +
                                    text_of(model.last_seq_id)};
  }
  const Adapter adapter = model.adapter;
  auto submitted = submit(id, [adapter, work = std::move(work)] {
    if (!*adapter) return failed_reply("the model could not be made", false);
    return work(**adapter);
  });
  if (std::holds_alternative<std::string>(submitted)) model.last_seq_id = seq_id;
  return submitted;
}

std::optional<TinkerRefusal> TinkerService::add_model(const std::string& session_id, const std::string& model_id,
                                                      const LoraOptions& lora, const Adapter& adapter) {
  const std::lock_guard lock(mutex_);
  if (!sessions_.contains(session_id)) return unknown("the session", session_id);
  if (models_.contains(model_id)) return std::nullopt;
  if (std::ssize(models_) >= options_.models)
    return TinkerRefusal{.status = 429,
                         .message = std::to_string(models_.size()) + " adapters are in training, as many as may be"};
  models_[model_id] = {.session_id = session_id, .lora = lora, .adapter = adapter};
  return std::nullopt;
}

TinkerAnswer<std::string> TinkerService::submit_new(const std::string& model_id, std::function<TinkerReply()> make) {
  auto submitted = submit(model_id + ":0", std::move(make));
  if (std::holds_alternative<std::string>(submitted)) return submitted;
  const std::lock_guard lock(mutex_);
  models_.erase(model_id);
  return submitted;
}

std::optional<TinkerRefusal> TinkerService::check_base(const std::string& name) const {
  if (name == options_.name) return std::nullopt;
  return TinkerRefusal{.message = "base_model: expected '" + options_.name + "', found '" + name + "'"};
}

TinkerAnswer<std::string> TinkerService::create_model(const CreateModelRequest& request) {
  if (auto refused = check_base(request.base_model)) return *refused;
  const std::string model_id = request.session_id + ":train:" + text_of(request.model_seq_id);
  const auto adapter = std::make_shared<std::unique_ptr<TrainedAdapter>>();
  const LoraOptions lora = lora_of(request);
  if (auto refused = add_model(request.session_id, model_id, lora, adapter)) return *refused;
  const std::uint64_t seed = request.seed.value_or(derive_seed(seed_, model_id));
  return submit_new(model_id, [=, this] {
    *adapter = std::make_unique<TrainedAdapter>(*base_.model, lora, seed, options_.micro_batch_tokens);
    return json_reply({{"type", "create_model"}, {"model_id", model_id}});
  });
}

Result<LoraOptions> TinkerService::lora_of_weights(const SavedWeights& weights) const {
  CARNOT_RETURN_IF_ERROR(store_.check(weights));
  const auto folder = store_.folder_of(weights);
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(folder / kAdapterConfigFile));
  CARNOT_ASSIGN_OR_RETURN(const Json config, parse_json_object<Json>(text, weights.path()));
  const Json base = config.contains("base_model_name_or_path") ? config["base_model_name_or_path"] : Json();
  if (base != options_.name)
    return Error{weights.path() + ": trained on " + shown(base) + "; this server has '" + options_.name + "'"};
  return read_adapter_options(folder);
}

TinkerAnswer<std::string> TinkerService::load_weights(const LoadWeightsRequest& request) {
  if (!request.base_model.empty())
    if (auto refused = check_base(request.base_model)) return *refused;
  const auto weights = parse_weights_path(request.path);
  if (!weights) return TinkerRefusal{.message = "path: " + weights.error().message};
  const auto lora = lora_of_weights(*weights);
  if (!lora) return TinkerRefusal{.status = 404, .message = lora.error().message};
  if (request.optimizer && weights->for_sampler)
    return TinkerRefusal{.message = request.path + ": weights for sampling have no optimizer state"};
  const bool is_new = request.model_id.empty();
  const std::string model_id =
      is_new ? request.session_id + ":train:" + text_of(request.model_seq_id) : request.model_id;
  const auto load = [folder = store_.folder_of(*weights), request, model_id](TrainedAdapter& adapter) {
    return reply_of(adapter.load(folder, request.optimizer),
                    {{"type", "load_weights"}, {"path", request.path}, {"model_id", model_id}});
  };
  if (!is_new) return submit(model_id, request.seq_id, load);
  const auto adapter = std::make_shared<std::unique_ptr<TrainedAdapter>>();
  if (auto refused = add_model(request.session_id, model_id, *lora, adapter)) return *refused;
  return submit_new(model_id, [=, this, options = *lora] {
    auto made = std::make_unique<TrainedAdapter>(*base_.model, options, 0, options_.micro_batch_tokens);
    TinkerReply reply = load(*made);
    *adapter = std::move(made);
    return reply;
  });
}

TinkerAnswer<std::string> TinkerService::forward_backward(ForwardBackwardRequest request) {
  const std::string model_id = request.model_id;
  const std::int64_t seq_id = request.seq_id;
  return submit(model_id, seq_id, [request = std::move(request)](TrainedAdapter& adapter) -> TinkerReply {
    const auto output = adapter.forward_backward(request);
    if (!output) return failed_reply(output.error().message, true);
    return {.body = forward_backward_bytes(*output), .is_protobuf = true};
  });
}

TinkerAnswer<std::string> TinkerService::optim_step(const OptimStepRequest& request) {
  return submit(request.model_id, request.seq_id, [adam = request.adam](TrainedAdapter& adapter) {
    return json_reply({{"metrics", adapter.optim_step(adam)}});
  });
}

TinkerAnswer<std::string> TinkerService::save_weights(const SaveWeightsRequest& request) {
  const SavedWeights weights{.model_id = request.model_id,
                             .name = request.name.empty() ? "request-" + text_of(request.seq_id) : request.name};
  return submit(request.model_id, request.seq_id, [=, this](TrainedAdapter& adapter) {
    return reply_of(store_.save(weights, request.overwrite,
                                [&](const auto& folder) { return adapter.save(folder, options_.name, true); }),
                    {{"type", "save_weights"}, {"path", weights.path()}});
  });
}

void TinkerService::add_snapshot(const std::string& model_id, const std::string& sampling_session_id,
                                 const Model& policy) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model_id);
  if (found == models_.end()) return;
  samplers_[sampling_session_id] = {.session_id = found->second.session_id,
                                    .sampler = std::make_shared<Sampler>([policy] { return Result<Model>(policy); })};
  std::vector<std::string>& snapshots = found->second.snapshots;
  snapshots.push_back(sampling_session_id);
  if (snapshots.size() <= kMostSnapshots) return;
  samplers_.erase(snapshots.front());
  snapshots.erase(snapshots.begin());
}

TinkerAnswer<std::string> TinkerService::save_for_sampler(const SaveWeightsRequest& request) {
  const SavedWeights weights{.model_id = request.model_id, .for_sampler = true, .name = request.name};
  const std::string session_id = request.model_id.substr(0, request.model_id.find(':'));
  const std::string sampling_id = session_id + ":sample:" + text_of(request.sampling_session_seq_id);
  return submit(request.model_id, request.seq_id, [=, this](TrainedAdapter& adapter) {
    Json done{{"type", "save_weights_for_sampler"}};
    if (weights.name.empty()) {
      add_snapshot(weights.model_id, sampling_id, adapter.snapshot());
      done["sampling_session_id"] = sampling_id;
      return json_reply(done);
    }
    done["path"] = weights.path();
    return reply_of(
        store_.save(weights, true, [&](const auto& folder) { return adapter.save(folder, options_.name, false); }),
        done);
  });
}

std::shared_ptr<Sampler> TinkerService::sampler_of(const std::optional<SavedWeights>& weights) const {
  if (!weights) return std::make_shared<Sampler>([this] { return Result<Model>(*base_.model); });
  const auto folder = store_.folder_of(*weights);
  return std::make_shared<Sampler>([this, folder] { return with_adapter(*base_.model, folder); });
}

TinkerAnswer<std::string> TinkerService::create_sampling_session(const SamplingSessionRequest& request) {
  std::optional<SavedWeights> weights;
  if (!request.model_path.empty()) {
    auto parsed = parse_weights_path(request.model_path);
    if (!parsed) return TinkerRefusal{.message = "model_path: " + parsed.error().message};
    if (const auto lora = lora_of_weights(*parsed); !lora)
      return TinkerRefusal{.status = 404, .message = lora.error().message};
    weights = std::move(*parsed);
  } else if (auto refused = check_base(request.base_model)) {
    return *refused;
  }
  const std::lock_guard lock(mutex_);
  if (!sessions_.contains(request.session_id)) return unknown("the session", request.session_id);
  const std::string id = request.session_id + ":sample:" + text_of(request.seq_id);
  samplers_.try_emplace(
      id,
      SamplingSession{.session_id = request.session_id, .path = request.model_path, .sampler = sampler_of(weights)});
  return id;
}

TinkerAnswer<std::string> TinkerService::sample(const TextRequest& request) {
  const auto vocabulary = static_cast<TokenId>(base_.model->config().vocab_size);
  for (const TokenId token : request.prompt)
    if (token >= vocabulary)
      return TinkerRefusal{.message = "prompt: token " + text_of(token) + " is not in the vocabulary"};
  const int length = static_cast<int>(request.prompt.size()), most = longest_text();
  const int max_tokens = request.max_tokens.value_or(std::max(1, most - length));
  if (length + static_cast<std::int64_t>(max_tokens) > most)
    return TinkerRefusal{.message = "prompt and max_tokens: " + text_of(length) + " and " + text_of(max_tokens) +
                                    " tokens; a text has at most " + text_of(most)};
  std::shared_ptr<Sampler> sampler;
  {
    const std::lock_guard lock(mutex_);
    const auto found = samplers_.find(request.sampling_session_id);
    if (found == samplers_.end()) return unknown("the sampling session", request.sampling_session_id);
    sessions_[found->second.session_id] = Clock::now();
    sampler = found->second.sampler;
  }
  const std::string id = request.sampling_session_id + ":" + text_of(request.seq_id);
  SampleWork work{.sampler = sampler,
                  .job = {.prompt = request.prompt,
                          .samples = request.samples,
                          .sampling = {request.temperature, request.top_p, request.top_k},
                          .key = {.seed = request.seed.value_or(derive_seed(seed_, id))},
                          .max_tokens = max_tokens,
                          .stop_tokens = request.stop_tokens.value_or(answer_end_tokens(base_)),
                          .stop_strings = request.stop_strings,
                          .likeliest = request.likeliest}};
  if (request.prompt_log_probs)
    work.first_scored = request.prompt_log_probs_last ? length - *request.prompt_log_probs_last : 1;
  return submit(id, std::move(work));
}

std::optional<LoraOptions> TinkerService::lora_of_model(const std::string& model_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model_id);
  return found == models_.end() ? std::nullopt : std::optional(found->second.lora);
}

std::optional<std::string> TinkerService::path_of_sampler(const std::string& sampling_session_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = samplers_.find(sampling_session_id);
  return found == samplers_.end() ? std::nullopt : std::optional(found->second.path);
}

}  // namespace carnot
