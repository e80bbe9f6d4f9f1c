#include "carnot/serving/tinker/trained_adapter.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <limits>
#include <span>

#include "carnot/core/base/file.h"
#include "carnot/core/data/prefix_tree.h"
#include "carnot/core/hf/adapter_config.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/optim/local_optimizer.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/trainer_state.h"
#include "carnot/core/train/shard_work.h"
#include "carnot/serving/tinker/losses.h"
#include "carnot/serving/tinker/method_loss.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "trainer_state.json";

/// Data that are computed in one pass.
struct DatumBatch {
  PrefixTree tree;
  std::vector<std::size_t> data;
  std::vector<std::int64_t> rows, targets;  ///< of all tokens, datum by datum
};

std::vector<DatumBatch> batches_of(std::span<const TinkerDatum> data, int most_rows) {
  std::vector<DatumBatch> batches;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::vector<TokenId>& tokens = data[i].tokens;
    if (batches.empty() || batches.back().tree.num_rows() + batches.back().tree.num_new_rows(tokens) > most_rows)
      batches.emplace_back();
    DatumBatch& batch = batches.back();
    const auto rows = batch.tree.add(tokens);
    batch.data.push_back(i);
    batch.rows.insert(batch.rows.end(), rows.begin(), rows.end());
    for (const double target : data[i].inputs.at("target_tokens").values)
      batch.targets.push_back(static_cast<std::int64_t>(target));
  }
  return batches;
}

at::Tensor log_probs(const Model& model, const DatumBatch& batch) {
  const std::vector<TokenId>& tokens = batch.tree.tokens();
  const at::Tensor hidden = model.hidden(at::tensor(std::vector<std::int64_t>(tokens.begin(), tokens.end()), at::kLong),
                                         at::tensor(batch.tree.positions(), at::kLong), attention_plan(batch.tree));
  const at::Tensor rows_T = hidden.index_select(0, at::tensor(batch.rows, at::kLong).to(hidden.device()));
  return token_statistics(rows_T, model, at::tensor(batch.targets, at::kLong)).logprob_T.to(at::kCPU, at::kDouble);
}

std::vector<float> floats(const at::Tensor& values_T) {
  const at::Tensor values = values_T.detach().to(at::kFloat).contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

/// Token ids out of the vocabulary, and data that are longer than the model's positions.
Status check_tokens(const ModelConfig& config, std::span<const TinkerDatum> data) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::string where = "data[" + std::to_string(i) + "]";
    const auto known = [&](double id) { return id >= 0 && id < config.vocab_size && id == std::floor(id); };
    if (std::ssize(data[i].tokens) > config.max_positions)
      return Error{where + ".model_input: " + std::to_string(data[i].tokens.size()) + " tokens, the model has " +
                   std::to_string(config.max_positions) + " positions"};
    for (const TokenId token : data[i].tokens)
      if (!known(token))
        return Error{where + ".model_input: token " + std::to_string(token) + " is not in the vocabulary"};
    const auto targets = data[i].inputs.find("target_tokens");
    if (targets == data[i].inputs.end()) continue;  // the loss says so
    for (const double target : targets->second.values)
      if (!known(target)) return Error{where + ".target_tokens: " + std::to_string(target) + " is not a token id"};
  }
  return Done{};
}

std::unique_ptr<Optimizer> make_optimizer(const Model& model, const OptimizerOptions& options) {
  return std::make_unique<LocalOptimizer>(optimizer_weights(model.adapters()), options);
}

OptimizerOptions options_of(const AdamParams& adam) {
  return {.beta1 = adam.beta1,
          .beta2 = adam.beta2,
          .epsilon = adam.epsilon,
          .weight_decay = adam.weight_decay,
          .max_grad_norm = adam.max_grad_norm > 0 ? adam.max_grad_norm : std::numeric_limits<double>::infinity()};
}

Status continue_optimizer(Optimizer& optimizer, const fs::path& folder) {
  const fs::path state_file = folder / kStateFile;
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(state_file));
  CARNOT_ASSIGN_OR_RETURN(const auto state, parse_trainer_state(text, state_file.string()));
  return load_optimizer(optimizer, folder / kOptimizerFile, state.optimizer.value_or(UpdateCounts{}));
}

bool alike(const OptimizerOptions& a, const OptimizerOptions& b) {
  return a.beta1 == b.beta1 && a.beta2 == b.beta2 && a.epsilon == b.epsilon && a.weight_decay == b.weight_decay &&
         a.max_grad_norm == b.max_grad_norm;
}

}  // namespace

LoraOptions lora_of(const CreateModelRequest& request) {
  LoraOptions lora{.rank = request.rank, .alpha = kTinkerAlpha, .targets = {}};
  for (std::size_t p = 0; p < kProjectionNames.size(); ++p) {
    const bool attention = p < static_cast<std::size_t>(Projection::Gate);
    if (attention ? request.train_attention : request.train_mlp) lora.targets.emplace_back(kProjectionNames[p]);
  }
  return lora;
}

TrainedAdapter::TrainedAdapter(const Model& base, const LoraOptions& lora, std::uint64_t seed, int micro_batch_tokens)
    : base_(base), model_(base), options_(options_of({})), micro_batch_tokens_(micro_batch_tokens) {
  model_.add_adapters(lora, seed);
  model_.requires_grad(true);
  optimizer_ = make_optimizer(model_, options_);
}

Result<ForwardBackwardOutput> TrainedAdapter::forward_backward(const ForwardBackwardRequest& request) {
  CARNOT_RETURN_IF_ERROR(check_tokens(model_.config(), request.data));
  if (!is_tinker_loss(request.loss) && is_method(request.loss))
    return method_forward_backward(model_, base_, request, micro_batch_tokens_);
  CARNOT_ASSIGN_OR_RETURN(const auto loss, make_tinker_loss(request));
  const at::AutoGradMode gradients(!request.forward_only);
  ForwardBackwardOutput output{.num_data = std::ssize(request.data)};
  double total = 0;
  for (const DatumBatch& batch : batches_of(request.data, micro_batch_tokens_)) {
    const at::Tensor log_probs_T = log_probs(model_, batch);
    std::vector<at::Tensor> losses;
    std::int64_t begin = 0;
    for (const std::size_t i : batch.data) {
      const TinkerDatum& datum = request.data[i];
      const at::Tensor of_datum_T = log_probs_T.slice(0, begin, begin + std::ssize(datum.tokens));
      begin += std::ssize(datum.tokens);
      losses.push_back(loss->of_tokens(datum, of_datum_T));
      output.columns["logprobs"].push_back(floats(of_datum_T));
      output.columns["elementwise_loss"].push_back(floats(losses.back()));
    }
    const at::Tensor sum = at::cat(losses).sum();
    total += sum.item<double>();
    if (!request.forward_only) sum.backward();
  }
  output.metrics["loss:sum"] = total;
  return output;
}

void TrainedAdapter::use(const AdamParams& adam) {
  const OptimizerOptions options = options_of(adam);
  if (alike(options, options_)) return;
  auto changed = make_optimizer(model_, options);
  changed->load_state(optimizer_->state(), optimizer_->num_updates(), optimizer_->num_skipped()).value();
  optimizer_ = std::move(changed);
  options_ = options;
}

std::map<std::string, double> TrainedAdapter::optim_step(const AdamParams& adam) {
  use(adam);
  const StepReport report = optimizer_->step(adam.learning_rate);
  return {{"grad_norm", report.grad_norm}, {"skipped", report.skipped ? 1 : 0}};
}

Status TrainedAdapter::save(const fs::path& folder, const std::string& base, bool optimizer) {
  CARNOT_RETURN_IF_ERROR(write_file_atomically(folder / kAdapterConfigFile, peft_config(model_, base)));
  CARNOT_RETURN_IF_ERROR(write_safetensors(folder / kAdapterWeightsFile, peft_tensors(model_)));
  if (!optimizer) return Done{};
  std::vector<NamedTensor> state;
  for (const auto& [name, tensor] : optimizer_->state()) state.push_back({name, tensor});
  CARNOT_RETURN_IF_ERROR(write_safetensors(folder / kOptimizerFile, state));
  return write_file_atomically(
      folder / kStateFile,
      trainer_state_json({.optimizer = UpdateCounts{optimizer_->num_updates(), optimizer_->num_skipped()}}));
}

Status TrainedAdapter::load(const fs::path& folder, bool optimizer) {
  const fs::path weights = folder / kAdapterWeightsFile;
  CARNOT_ASSIGN_OR_RETURN(const auto lora, read_adapter_options(folder));
  if (!(lora == model_.lora()))
    return Error{folder.string() + ": rank, alpha or targets are not those of the model's adapter"};
  CARNOT_ASSIGN_OR_RETURN(const auto stored, read_weights(weights));
  std::unique_ptr<Optimizer> continued;
  if (optimizer) {
    continued = make_optimizer(model_, options_);
    CARNOT_RETURN_IF_ERROR(continue_optimizer(*continued, folder));
  }
  CARNOT_RETURN_IF_ERROR(copy_tensors(peft_tensors(model_), stored.tensors, weights.string()));
  for (const NamedTensor& weight : model_.adapters()) weight.tensor.mutable_grad() = at::Tensor();
  optimizer_ = continued ? std::move(continued) : make_optimizer(model_, options_);
  return Done{};
}

}  // namespace carnot
