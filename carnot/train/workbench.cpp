#include "carnot/train/workbench.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <thread>

#include "carnot/base/log.h"
#include "carnot/base/random.h"
#include "carnot/base/thread_pool.h"
#include "carnot/nn/cuda_backend.h"
#include "carnot/nn/safetensors.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float64") return at::kDouble;
  if (dtype == "bfloat16") return at::kBFloat16;
  return at::kFloat;
}

/// Tokens that chat families and padding-free training need of a tokenizer made here.
const std::vector<std::string> kChatTokens{"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

Result<Tokenizer> trained_tokenizer(const Recipe& recipe) {
  const auto texts = recipe.environment->tokenizer_texts();
  if (texts.empty())
    return Error{"tokenizer.path: environment '" + recipe.environment_name +
                 "' offers no texts to train a tokenizer from; expected model.path or tokenizer.path"};
  BpeTrainingOptions options{.added_tokens = kChatTokens, .protected_words = recipe.environment->tokenizer_words()};
  for (const std::string& tag : recipe.environment->tokenizer_added_tokens()) options.added_tokens.push_back(tag);
  const int needed = 256 + static_cast<int>(options.added_tokens.size() + 2 * options.protected_words.size());
  options.vocab_size = recipe.tokenizer.vocab_size > 0 ? recipe.tokenizer.vocab_size : needed;
  const auto json = train_byte_level_bpe(texts, options);
  if (!json) return json.error();
  return Tokenizer::parse(*json, "trained tokenizer");
}

Result<Tokenizer> make_tokenizer(const Recipe& recipe) {
  if (!recipe.tokenizer.path.empty()) return Tokenizer::load(recipe.tokenizer.path);
  if (!recipe.model.path.empty()) return Tokenizer::load(recipe.model.path);
  return trained_tokenizer(recipe);
}

Result<Model> make_policy(const Recipe& recipe, const Tokenizer& tokenizer, const ChatFamily& chat) {
  const at::TensorOptions options = tensor_options(recipe.run);
  if (!recipe.model.path.empty()) {
    auto model = load_model(recipe.model.path, options);
    if (model && model->config().vocab_size < tokenizer.vocab_size())
      return Error{recipe.model.path + ": the model knows " + std::to_string(model->config().vocab_size) +
                   " tokens, its tokenizer " + std::to_string(tokenizer.vocab_size())};
    return model;
  }
  ModelConfig config = recipe.model.shape;
  config.vocab_size = tokenizer.vocab_size();
  config.eos_tokens = chat.stop_tokens();
  if (const Status status = check_model_config(config); !status) return Error{"model: " + status.error().message};
  return Model(config, derive_seed(static_cast<std::uint64_t>(recipe.run.seed), "weights"), options, recipe.model.init_std);
}

/// The name in tokenizer.chat, or where that is "auto" the family whose template the tokenizer's folder has.
std::string chosen_chat(const std::string& name, const ModelFiles& files) {
  if (name != "auto") return name;
  const auto jinja = chat_template(files);
  if (!jinja) return "chatml";
  const std::string_view family = chat_family_of_template(*jinja);
  if (family.empty()) {
    log_warning("tokenizer.chat: the tokenizer's chat template is none that is known; chatml is used instead");
    return "chatml";
  }
  log_info("tokenizer.chat: " + std::string(family) + ", by the tokenizer's chat template");
  return std::string(family);
}

/// Where a workbench comes from. Empty paths: made here.
struct Source {
  fs::path model{};
  fs::path tokenizer{};
};

/// Lets the model folder's end tokens end a message; a model made here gets small files of its own.
Status finish_chat(Workbench& bench, const Source& source) {
  if (source.model.empty()) bench.model_files.merge(new_model_files(*bench.chat));
  const auto generation = generation_config(bench.model_files, source.model.string());
  if (!generation) return generation.error();
  for (const std::string& setting : generation->ignored)
    log_warning(source.model.string() + "/generation_config.json: " + setting + " is not applied to rollouts");
  bench.chat->also_stop_at(bench.policy->config().eos_tokens);
  bench.chat->also_stop_at(generation->eos_tokens);
  return Done{};
}

Result<Workbench> assemble(Recipe& recipe, Result<Tokenizer> tokenizer, const Source& source,
                           const std::function<Result<Model>(const Workbench&)>& policy) {
  if (!tokenizer) return tokenizer.error();
  Workbench bench;
  bench.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer).value());
  auto files = read_model_files(source.model, source.tokenizer);
  if (!files) return files.error();
  bench.model_files = std::move(files).value();
  recipe.tokenizer.chat = chosen_chat(recipe.tokenizer.chat, bench.model_files);
  auto chat = make_chat_family(recipe.tokenizer.chat, *bench.tokenizer);
  if (!chat) return Error{"tokenizer.chat: " + chat.error().message};
  bench.chat = std::move(chat).value();
  if (const Status status = check_append_only(*bench.chat); !status) return status.error();
  auto model = policy(bench);
  if (!model) return model.error();
  bench.policy = std::make_unique<Model>(std::move(model).value());
  if (const Status status = finish_chat(bench, source); !status) return status.error();
  return bench;
}

}  // namespace

at::TensorOptions tensor_options(const RunOptions& run) {
  return at::TensorOptions().dtype(scalar_type(run.dtype)).device(run.device == "cuda" ? at::kCUDA : at::kCPU);
}

Status Workbench::prepare_device(const RunOptions& run) {
  if (run.device == "cuda")
    if (const Status cuda = load_cuda_backend(); !cuda) return Error{"device: cuda: " + cuda.error().message + "; expected cpu"};
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = run.threads > 0 ? run.threads : processors;
  set_num_threads(threads);
  // What LibTorch does for us on the CPU is small; a second pool of spinning threads would take the kernels' processors.
  at::set_num_threads(1);
  return Done{};
}

Result<Workbench> Workbench::make(Recipe& recipe) {
  if (const Status status = recipe.environment->prepare(static_cast<std::uint64_t>(recipe.run.seed)); !status)
    return Error{"env: " + status.error().message};
  const Source source{.model = recipe.model.path,
                      .tokenizer = recipe.tokenizer.path.empty() ? recipe.model.path : recipe.tokenizer.path};
  return assemble(recipe, make_tokenizer(recipe), source,
                  [&](const Workbench& bench) { return make_policy(recipe, *bench.tokenizer, *bench.chat); });
}

Result<Workbench> Workbench::from_checkpoint(Recipe& recipe, const fs::path& checkpoint) {
  if (const Status status = recipe.environment->prepare(static_cast<std::uint64_t>(recipe.run.seed)); !status)
    return Error{"env: " + status.error().message};
  return assemble(recipe, Tokenizer::load(checkpoint), {.model = checkpoint, .tokenizer = checkpoint},
                  [&](const Workbench&) { return load_model(checkpoint, carnot::tensor_options(recipe.run)); });
}

void Workbench::add_companions(const Recipe& recipe) {
  const auto signals = required_signals(recipe.method);
  if (signals.contains(Signal::Reference)) reference = std::make_unique<Model>(policy->clone());
  if (signals.contains(Signal::Value)) critic = std::make_unique<ValueModel>(*policy);
}

int cache_blocks(const RolloutOptions& options, int trajectories) {
  const int context = options.explore.episode.max_context_tokens;
  const std::int64_t tokens = options.cache_tokens > 0 ? options.cache_tokens : std::int64_t{context} * trajectories;
  // A partly filled block per trajectory, and the prompts' own.
  return static_cast<int>((tokens + kBlockTokens - 1) / kBlockTokens) + 2 * trajectories;
}

Generation make_generation(const Workbench& bench, const RolloutOptions& options, int trajectories) {
  Generation generation;
  generation.policy = std::make_unique<ModelPolicy>(*bench.policy, cache_blocks(options, trajectories));
  EngineOptions engine = options.engine;
  engine.drawable_tokens = bench.tokenizer->vocab_size();
  generation.engine = std::make_unique<Engine>(*generation.policy, engine);
  return generation;
}

}  // namespace carnot
