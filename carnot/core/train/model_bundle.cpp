#include "carnot/core/train/model_bundle.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/saturating.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/config/numbers.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/folder_chat.h"
#include "carnot/core/hf/hub_cache.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/kernel/kernel_choice.h"
#include "carnot/core/nn/cpu_memory.h"
#include "carnot/core/nn/cuda_backend.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/template_chat.h"

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

/// With the program that it runs, where it is one.
std::string described_environment(Recipe& recipe) {
  std::string text = "env: " + recipe.environment_name;
  const FieldTable table = recipe.table();
  for (const FieldRow& row : table.rows())
    if (row.key == "env.command") text += " " + row.value;
  return text;
}

Result<Tokenizer> trained_tokenizer(Recipe& recipe) {
  const auto texts = recipe.environment->tokenizer_texts();
  if (texts.empty())
    return Error{"tokenizer.path: environment '" + recipe.environment_name +
                 "' offers no texts to train a tokenizer from; expected model.path or tokenizer.path"};
  BpeTrainingOptions options{.added_tokens = kChatTokens, .protected_words = recipe.environment->tokenizer_words()};
  for (const std::string& tag : recipe.environment->tokenizer_added_tokens()) options.added_tokens.push_back(tag);
  const int needed = 256 + static_cast<int>(options.added_tokens.size() + 2 * options.protected_words.size());
  options.vocab_size = recipe.tokenizer.vocab_size > 0 ? recipe.tokenizer.vocab_size : needed;
  const auto json = train_byte_level_bpe(texts, options);
  if (!json) return Error{"the tokenizer for " + described_environment(recipe) + ": " + json.error().message};
  return Tokenizer::parse(*json, "trained tokenizer");
}

/// The shape of the recipe's policy.
Result<ModelConfig> policy_config(const Recipe& recipe, const fs::path& pretrained, const Tokenizer& tokenizer,
                                  const ChatFamily& chat) {
  if (!pretrained.empty()) {
    auto config = load_model_config(pretrained);
    if (config && config->vocab_size < tokenizer.vocab_size())
      return Error{recipe.model.path + ": the model knows " + std::to_string(config->vocab_size) +
                   " tokens, its tokenizer " + std::to_string(tokenizer.vocab_size())};
    return config;
  }
  ModelConfig config = recipe.model.shape;
  config.vocab_size = tokenizer.vocab_size();
  config.eos_tokens = chat.stop_tokens();
  CARNOT_RETURN_IF_ERROR(check_model_config(config));
  return config;
}

/// Where positions end for more than lack of training, trajectories do, too.
Status check_router(const Recipe& recipe, const ModelConfig& config) {
  if (recipe.train.router_aux_coefficient == 0 || config.num_expert_layers() > 0) return Done{};
  return Error{"train.router_aux_coefficient: the model has no experts; expected 0"};
}

Status check_context(const Recipe& recipe, const ModelConfig& config) {
  const int context = recipe.rollout.options.episode.max_context_tokens;
  if (context <= config.max_positions || !config.rope_scaling.changes_beyond_max_positions()) return Done{};
  return Error{"rollout.max_context_tokens: " + std::to_string(context) + "; expected at most " +
               std::to_string(config.max_positions) +
               ", the positions that the model's short_factor is for (docs/models.md)"};
}

/// The name in tokenizer.chat, or where that is "auto" the one that goes with the template in the tokenizer's folder.
std::string chosen_chat(const std::string& name, const ModelFiles& files) {
  if (name != "auto") return name;
  const auto chosen = folder_chat_name(files);
  if (!chosen) return "chatml";
  log_info("tokenizer.chat: " + *chosen + ", by the tokenizer's chat template");
  return *chosen;
}

/// A run needs a format that only grows.
Result<std::unique_ptr<ChatFamily>> chat_of_run(const Recipe& recipe, const ModelFiles& files,
                                                const Tokenizer& tokenizer) {
  const std::string& name = recipe.tokenizer.chat;
  std::string advice = TemplateChat::is_name(name) ? "; tokenizer.chat=chatml or another known format" : "";
  if (name == "chatml" && !folder_chat_name(files))
    advice =
        "; it is taken where the model's folder has no chat template: put that of an instruct model there as "
        "chat_template.jinja, or set tokenizer.chat (docs/models.md)";
  auto chat = make_folder_chat(name, files, tokenizer);
  if (!chat) return Error{"tokenizer.chat: " + chat.error().message + advice};
  if (recipe.tokenizer.control_tokens_in_messages) (*chat)->read_control_tokens_as(ControlTokens::Tokens);
  if (const Status grows = check_append_only(**chat); !grows)
    return Error{"tokenizer.chat: this format cannot be trained with (generate, score and serve take it): " +
                 grows.error().message + advice};
  return chat;
}

/// Where a bundle comes from. Empty paths: made here.
struct Source {
  fs::path model{};
  fs::path tokenizer{};
};

/// `pretrained`: the folder of model.path.
Result<Source> source_of(const Recipe& recipe, const fs::path& pretrained, const std::optional<fs::path>& checkpoint) {
  if (checkpoint) return Source{.model = *checkpoint, .tokenizer = *checkpoint};
  if (recipe.tokenizer.path.empty()) return Source{.model = pretrained, .tokenizer = pretrained};
  const auto tokenizer = pretrained_folder(recipe.tokenizer.path);
  if (!tokenizer) return Error{"tokenizer.path: " + tokenizer.error().message};
  return Source{.model = pretrained, .tokenizer = *tokenizer};
}

/// A dtype of "auto" becomes the one that the model's weights are stored in, or float32.
Status settle_dtype(Recipe& recipe, const Source& source, const fs::path& pretrained) {
  std::string& dtype = recipe.run.dtype;
  if (dtype != "auto") return Done{};
  dtype = "float32";
  if (source.model.empty()) return Done{};
  const bool on_base = holds_adapters(source.model) && !pretrained.empty();  // which may have moved
  CARNOT_ASSIGN_OR_RETURN(const auto stored, stored_dtype(on_base ? pretrained : source.model));
  if (stored == at::kBFloat16) dtype = "bfloat16";
  if (stored == at::kDouble) dtype = "float64";
  const std::string why = stored == at::kHalf ? ": it holds every number of the stored float16, which is not trained in"
                                              : ", as the weights are stored";
  log_info("dtype: " + dtype + why);
  return Done{};
}

/// Lets the model folder's end tokens end a message; a model made here gets its own small files.
Status finish_chat(ModelBundle& bundle, const Source& source) {
  if (source.model.empty()) bundle.model_files.merge(new_model_files(*bundle.chat));
  CARNOT_ASSIGN_OR_RETURN(const auto generation, generation_config(bundle.model_files, source.model.string()));
  for (const std::string& setting : generation.ignored)
    log_warning(source.model.string() + "/generation_config.json: " + setting + " is not applied to rollouts");
  bundle.chat->also_stop_at(bundle.config.eos_tokens);
  bundle.chat->also_stop_at(generation.eos_tokens);
  return Done{};
}

std::string in_words(const LoraOptions& lora) {
  if (lora.rank == 0) return "no adapters";
  std::string text = "adapters of rank " + std::to_string(lora.rank) + ", alpha " + write_number(lora.alpha) + " on";
  for (const std::string& target : lora.targets) text += " " + target;
  return text;
}

/// The recipe's lora.* and a folder's adapters have to be the same; where model.adapter names a folder, the folder
/// decides.
Status settle_adapters(Recipe& recipe, const std::optional<fs::path>& checkpoint) {
  if (!checkpoint && recipe.model.adapter.empty()) return Done{};
  const fs::path folder = checkpoint ? *checkpoint / kAdapterFolder : fs::path(recipe.model.adapter);
  LoraOptions held;
  if (!checkpoint || fs::exists(folder)) {
    CARNOT_ASSIGN_OR_RETURN(const auto options, read_adapter_options(folder));
    held = options;
  }
  if (recipe.lora.rank == 0 && !recipe.model.adapter.empty()) recipe.lora = held;
  if (recipe.lora == held || (recipe.lora.rank == 0 && held.rank == 0)) return Done{};
  return Error{(checkpoint ? *checkpoint : folder).string() + ": holds " + in_words(held) + "; lora.* asks for " +
               in_words(recipe.lora)};
}

/// `threads` threads; one per processor where that is 0.
Status start_kernel_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    return Error{"threads: " + std::to_string(threads) + "; expected a number from 0 to " +
                 std::to_string(kMaxThreads)};
  const int processors = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, unsigned{kMaxThreads}));
  try {
    set_num_threads(threads > 0 ? threads : processors);
  } catch (const std::system_error& error) {
    return Error{std::string("threads: ") + error.what() + "; expected a higher limit of processes, or threads=1"};
  }
  return Done{};
}

}  // namespace

at::TensorOptions tensor_options(const RunOptions& run) {
  return at::TensorOptions().dtype(scalar_type(run.dtype)).device(at::Device(run.device));
}

std::string own_kernels(const RunOptions& run) {
  return kernel_sets(tensor_options(run).dtype().toScalarType()) + " (LibTorch's: " + at::get_cpu_capability() + ")";
}

Status ModelBundle::prepare_device(const RunOptions& run) {
  CARNOT_RETURN_IF_ERROR(kernel::check_kernel_choice());
  if (run.device == "cuda")
    if (const Status cuda = load_cuda_backend(); !cuda)
      return Error{"device: cuda: " + cuda.error().message + "; expected cpu"};
  CARNOT_RETURN_IF_ERROR(start_kernel_threads(run.threads));
  // What LibTorch does for us on the CPU is small; a second pool of spinning threads would take the kernels'
  // processors.
  at::set_num_threads(1);
  take_aligned_tensor_memory();
  keep_few_compiled_products();
  return Done{};
}

Result<ModelBundle> ModelBundle::open(Recipe& recipe, const std::optional<fs::path>& checkpoint) {
  CARNOT_RETURN_IF_ERROR(recipe.environment->prepare(static_cast<std::uint64_t>(recipe.run.seed)));
  CARNOT_RETURN_IF_ERROR(recipe.settle_steps());
  ModelBundle bundle;
  // A checkpoint holds all it needs; only that of a run with adapters asks where its base is now.
  auto pretrained = pretrained_folder(recipe.model.path);
  if (!pretrained && !checkpoint) return Error{"model.path: " + pretrained.error().message};
  bundle.pretrained = pretrained ? std::move(pretrained).value() : fs::path(recipe.model.path);
  CARNOT_ASSIGN_OR_RETURN(const auto source, source_of(recipe, bundle.pretrained, checkpoint));
  CARNOT_ASSIGN_OR_RETURN(auto tokenizer,
                          source.tokenizer.empty() ? trained_tokenizer(recipe) : Tokenizer::load(source.tokenizer));
  bundle.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  CARNOT_ASSIGN_OR_RETURN(auto files, read_model_files(source.model, source.tokenizer));
  bundle.model_files = std::move(files);
  recipe.tokenizer.chat = chosen_chat(recipe.tokenizer.chat, bundle.model_files);
  CARNOT_ASSIGN_OR_RETURN(auto chat, chat_of_run(recipe, bundle.model_files, *bundle.tokenizer));
  bundle.chat = std::move(chat);
  CARNOT_ASSIGN_OR_RETURN(const auto config,
                          checkpoint ? load_model_config(*checkpoint)
                                     : policy_config(recipe, bundle.pretrained, *bundle.tokenizer, *bundle.chat));
  bundle.config = config;
  CARNOT_RETURN_IF_ERROR(check_context(recipe, config));
  CARNOT_RETURN_IF_ERROR(check_router(recipe, config));
  CARNOT_RETURN_IF_ERROR(finish_chat(bundle, source));
  CARNOT_RETURN_IF_ERROR(settle_adapters(recipe, checkpoint));
  CARNOT_RETURN_IF_ERROR(settle_dtype(recipe, source, bundle.pretrained));
  bundle.checkpoint = checkpoint;
  return bundle;
}

Status ModelBundle::load_policy(const Recipe& recipe) {
  const at::TensorOptions options = carnot::tensor_options(recipe.run);
  const auto seed = static_cast<std::uint64_t>(recipe.run.seed);
  if (checkpoint || !pretrained.empty()) {
    CARNOT_ASSIGN_OR_RETURN(auto loaded, checkpoint ? carnot::load_policy(*checkpoint, options, pretrained)
                                                    : load_merged(pretrained, options));
    policy = std::make_unique<Model>(std::move(loaded));
  } else {
    policy = std::make_unique<Model>(config, derive_seed(seed, "weights"), options, recipe.model.init_std);
  }
  policy->checkpoint_activations(recipe.train.activation_checkpointing);
  if (checkpoint) {
    CARNOT_ASSIGN_OR_RETURN(auto below, read_base_model(*checkpoint, pretrained));
    base = std::move(below);
    return Done{};
  }
  if (!recipe.model.adapter.empty()) {
    CARNOT_RETURN_IF_ERROR(load_adapters(*policy, recipe.model.adapter));
  } else if (recipe.lora.rank > 0) {
    policy->add_adapters(recipe.lora, derive_seed(seed, "adapters"));
  }
  if (!policy->has_adapters() || pretrained.empty()) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto below, base_model_of(pretrained));
  base = std::move(below);
  return Done{};
}

Result<ModelBundle> ModelBundle::make(Recipe& recipe, const std::optional<fs::path>& checkpoint) {
  auto bundle = open(recipe, checkpoint);
  if (!bundle) return bundle;
  CARNOT_RETURN_IF_ERROR(bundle->load_policy(recipe));
  return bundle;
}

void ModelBundle::add_companions(const Recipe& recipe) {
  const auto needed = recipe.measurements();
  if (needed.contains(Measurement::Reference)) reference = std::make_unique<Model>(policy->frozen());
  if (needed.contains(Measurement::Values)) critic = std::make_unique<ValueModel>(*policy);
}

std::int64_t cache_blocks(const RolloutSettings& options, std::int64_t trajectories) {
  const Saturating context = options.options.episode.max_context_tokens;
  const Saturating tokens = options.cache_tokens > 0 ? options.cache_tokens : context * trajectories;
  // A partly filled block per trajectory, and the prompts' own.
  return ((tokens + kBlockTokens - 1) / kBlockTokens + Saturating(2) * trajectories).value();
}

std::int64_t cache_states(const RolloutSettings& options, std::int64_t trajectories) {
  const std::int64_t group_size = std::max(options.options.group_size, 1);
  const Saturating groups = (Saturating(trajectories) + group_size - 1) / group_size;
  const Saturating states = groups + Saturating(options.options.answer_scoring ? 2 : 1) * trajectories;
  return std::min(states.value(), cache_blocks(options, trajectories));
}

std::int64_t cache_window_blocks(const RolloutSettings& options, const ModelConfig& model, std::int64_t trajectories) {
  if (!model.has_windows()) return 0;
  return window_blocks_for(model.window, cache_states(options, trajectories), options.engine.max_batch_tokens,
                           cache_blocks(options, trajectories));
}

void Generation::give_back_memory() {
  CARNOT_CHECK_EQ(engine->free_blocks(), runner->cache_size().blocks);
  CARNOT_CHECK_EQ(engine->free_states(), runner->cache_size().states);
  CARNOT_CHECK_EQ(engine->free_window_blocks(), runner->cache_size().window_blocks);
  runner->give_back_memory();
}

Generation make_generation(const ModelBundle& bundle, const RolloutSettings& options, std::int64_t trajectories) {
  const std::int64_t blocks = cache_blocks(options, trajectories);
  if (blocks > std::numeric_limits<int>::max())
    throw std::length_error("the KV cache would have " + std::to_string(blocks) + " blocks; rollout.cache_tokens");
  Generation generation;
  const CacheSize size{
      .blocks = static_cast<int>(blocks),
      .states = static_cast<int>(cache_states(options, trajectories)),
      .window_blocks = static_cast<int>(cache_window_blocks(options, bundle.policy->config(), trajectories))};
  generation.runner = std::make_unique<DecoderRunner>(*bundle.policy, size);
  EngineOptions engine = options.engine;
  engine.drawable_tokens = bundle.tokenizer->vocab_size();
  generation.engine = std::make_unique<Engine>(*generation.runner, engine);
  return generation;
}

}  // namespace carnot
