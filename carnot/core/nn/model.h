// nn/model.h -- the decoder: one implementation for rollout and training.
//
// Shapes: T rows (tokens, packed without padding), H hidden, V vocabulary. Gradients are computed in grad mode. The
// tensors determine the kernels: Carnot's on the CPU, LibTorch's elsewhere except for statistics; nothing else
// depends on the device. Carnot's are batch-invariant: a row's bits depend on no other row and no thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/layer_plan.h"
#include "carnot/core/nn/logit_rows.h"
#include "carnot/core/nn/lora.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

struct NamedTensor {
  std::string name{};  ///< Llama's in Hugging Face's files: "model.layers.0.self_attn.q_proj.weight"
  at::Tensor tensor{};
  bool is_table = false;  ///< not a map: embedding or head, a row per token or the critic's one; a row per channel
};

/// Marks a weight as trained or frozen. The gradient of a bfloat16 weight is kept in float32: if it were rounded to
/// bfloat16, small contributions of micro-batches would be lost.
void mark_trained(const at::Tensor& weight, bool on);

/// One expert's weights: gate and up [F, H], down [H, F], and their adapters.
struct ExpertWeights {
  at::Tensor gate{}, up{}, down{};
  std::array<Adapter, 3> adapters{};
};

struct ModelWorkspace;
struct LinearWeights;
struct ExpertProducts;
class ExpertBalance;
class PackedWeights;

/// Own: carnot/core/kernel (CPU; float32, float64, bfloat16) and carnot/cuda (token statistics), otherwise LibTorch.
/// Portable: LibTorch only.
enum class KernelChoice { Own, Portable };

class Model {
 public:
  /// Random weights, as nn/random_weights.h has them: matrices normal with standard deviation `init_std` (projections
  /// back into the residual stream: divided by sqrt(2 layers)), biases 0, norms such that they multiply by 1, rates of
  /// the gated delta rule as transformers has them. The same seed gives the same weights on every device.
  /// REQUIRES: a config that check_model_config() accepts.
  Model(const ModelConfig& config, std::uint64_t seed, const at::TensorOptions& options, double init_std = 0.05);

  /// A model of this shape whose weights the caller fills in (loading).
  static Model uninitialised(const ModelConfig& config, const at::TensorOptions& options);

  const ModelConfig& config() const { return config_; }
  at::TensorOptions options() const;

  /// Hidden states after the final norm, which head() maps to logits (a family's division of logits is in them): [T,
  /// H]. tokens_T and positions_T are int64 on the CPU. `balance` counts how experts are used, and the backward pass,
  /// which it must outlive, adds its gradient; null: none.
  at::Tensor hidden(const at::Tensor& tokens_T, const at::Tensor& positions_T, const AttentionPlan& plan,
                    ExpertBalance* balance = nullptr) const;

  /// The weights that map hidden states to logits: [V, H]; the embedding if the head is tied.
  const at::Tensor& head() const;

  /// Logits of a few rows (head_logits). For sampling; training and log-prob passes use token_statistics.
  LogitRows logit_rows(const at::Tensor& hidden_TH, std::span<const float> inverse_temperature_T) const;
  /// [T, V], at temperature 1.
  at::Tensor logits(const at::Tensor& hidden_TH) const;

  /// Every weight once, in a fixed order; a tied head is not listed twice.
  std::vector<NamedTensor> parameters() const;

  /// Adds adapters to the projections that `lora` names; from then on, only they are trained. A is drawn as in PEFT,
  /// uniform within 1 / sqrt(K); B is 0, so that a fresh adapter changes nothing. There is no dropout. REQUIRES: rank >
  /// 0.
  void add_adapters(const LoraOptions& lora, std::uint64_t seed);
  const LoraOptions& lora() const { return lora_; }
  bool has_adapters() const { return lora_.rank > 0; }

  /// Every adapter's matrices: "model.layers.0.self_attn.q_proj.lora_A.weight".
  std::vector<NamedTensor> adapters() const;

  /// What training changes: the adapters if there are any, else every weight.
  std::vector<NamedTensor> trained() const { return has_adapters() ? adapters() : parameters(); }

  /// Marks those tensors as trained or frozen.
  void requires_grad(bool on);

  /// An independent copy with the same weights and adapters (for tests).
  Model clone() const;

  /// A copy that training does not change (a reference model): with adapters, it shares the weights and copies the
  /// adapters.
  Model frozen() const;

  /// An independent copy whose weights are W + scale B A, summed in float64; without adapters, a clone.
  Model merged() const;

  /// When gradients are computed, each layer saves only its input and runs again in the backward pass: about a third
  /// more time for a small part of the memory. The gradients' bits do not change.
  void checkpoint_activations(bool on) { checkpoint_activations_ = on; }

  /// For a model that is only used for inference from now on: its linear layers keep their weights only in the layout
  /// of Carnot's kernels, and release the memory of the rows. No bit changes. The model cannot be listed, copied or
  /// trained afterwards. No effect if LibTorch's operators compute.
  void keep_packed_weights_alone();

  /// Its weights in the layout of Carnot's kernels; each set is packed on first use and again after changes.
  PackedWeights& packed_weights() const;

  void choose_kernels(KernelChoice choice) { kernels_ = choice; }
  KernelChoice kernels() const { return kernels_; }

 private:
  struct Layer {
    Mixer mixer = Mixer::Attention;
    at::Tensor query{}, key{}, value{}, query_bias{}, key_bias{}, value_bias{}, query_norm{}, key_norm{}, output{};
    at::Tensor input{}, convolution{};  // in place of query, key, value and their norms
    at::Tensor input_z{}, input_b{}, input_a{}, log_rate{}, step_bias{}, delta_norm{};  // with them, of the delta rule
    at::Tensor gate{}, up{}, down{};  // undefined where the MLP is a mixture of experts
    at::Tensor router{};              // else undefined
    std::vector<ExpertWeights> experts{};
    at::Tensor before_attention{}, after_attention{}, before_mlp{}, after_mlp{};  // norms
    std::array<Adapter, kProjectionNames.size()> adapters{};

    const at::Tensor& weight(Projection projection) const;
    at::Tensor bias(Projection projection) const;  ///< undefined if there is none
    const Adapter& adapter(Projection projection) const { return adapters[static_cast<std::size_t>(projection)]; }
  };

  explicit Model(const ModelConfig& config) : config_(config), plan_(model_plan(config)) {}
  Layer make_layer(const LayerPlan& plan, const at::TensorOptions& options) const;
  void make_mixer(const LayerPlan& plan, const at::TensorOptions& options, Layer& layer) const;
  void make_delta(const LayerPlan& plan, const at::TensorOptions& options, Layer& layer) const;
  at::Tensor embedded(const at::Tensor& tokens_T) const;
  at::Tensor layer_output(int index, const at::Tensor& x_TH, const at::Tensor& positions_T, const AttentionPlan& plan,
                          ExpertBalance* balance) const;
  /// The layer's weights of projections that share their input.
  LinearWeights weights_of(const Layer& layer, std::initializer_list<Projection> projections) const;
  ExpertProducts products_of(const ExpertWeights& expert) const;
  /// Of attention or what takes its place.
  at::Tensor mixer_output(int index, const at::Tensor& x_TH, const at::Tensor& positions_T,
                          const AttentionPlan& plan) const;
  at::Tensor attention_output(int index, const at::Tensor& x_TH, const at::Tensor& positions_T,
                              const AttentionPlan& plan) const;
  at::Tensor convolution_output(int index, const at::Tensor& x_TH, const AttentionPlan& plan) const;
  at::Tensor delta_output(int index, const at::Tensor& x_TH, const AttentionPlan& plan) const;
  at::Tensor mlp_output(int index, const at::Tensor& x_TH, ExpertBalance* balance) const;
  /// A product of what gated_product() makes of its argument.
  at::Tensor gated_linear(const at::Tensor& gate_up, Activation activation, const LinearWeights& weights) const;
  /// Calls use(name, projection, weight, adapter) for every matrix that can have an adapter. Defined where it is used.
  template <class Layers, class Use>
  static void for_each_projection(Layers& layers, const Use& use);
  /// Without a norm, x itself: undefined norms are those that the plan does not have.
  at::Tensor normed(const at::Tensor& x_TH, const at::Tensor& norm) const;
  at::Tensor norm_and_linear(const at::Tensor& x_TH, const at::Tensor& norm, const LinearWeights& weights) const;
  void copy_adapters(const Model& from);
  double adapter_scale() const { return has_adapters() ? lora_.scale() : 0; }

  ModelConfig config_;
  ModelPlan plan_;
  at::Tensor embedding_, final_norm_, head_;
  std::vector<Layer> layers_;
  LoraOptions lora_;
  KernelChoice kernels_ = KernelChoice::Own;
  bool checkpoint_activations_ = false;
  bool packed_alone_ = false;
  std::shared_ptr<ModelWorkspace> workspace_;
};

}  // namespace carnot
