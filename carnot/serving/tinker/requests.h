// serving/tinker/requests.h -- the requests that Tinker's client sends as JSON, as plain structs.
//
// All problems of a request are reported at once. What would change the result and is not supported is refused; other
// fields are ignored, as the client's next version may send more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"

namespace carnot {

/// `create_model`: a LoRA adapter to train.
struct CreateModelRequest {
  std::string session_id{};
  std::int64_t model_seq_id = 0;  ///< of the session's models
  std::string base_model{};
  int rank = 0;
  std::optional<std::uint64_t> seed{};
  bool train_attention = true;
  bool train_mlp = true;
};
Result<CreateModelRequest> parse_create_model(std::string_view body);

/// `optim_step`: AdamW. Weight decay is decoupled.
struct AdamParams {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-12;
  double weight_decay = 0;
  double max_grad_norm = 0;  ///< 0: gradients are not clipped
};
struct OptimStepRequest {
  std::string model_id{};
  std::int64_t seq_id = 0;
  AdamParams adam{};
};
Result<OptimStepRequest> parse_optim_step(std::string_view body);

/// `save_weights` and `save_weights_for_sampler`; not the kind `inflight`, whose weights change under a sampler.
struct SaveWeightsRequest {
  std::string model_id{};
  std::int64_t seq_id = 0;
  std::string name{};  ///< empty: none is given
  bool overwrite = false;
  std::int64_t sampling_session_seq_id = -1;
};
Result<SaveWeightsRequest> parse_save_weights(std::string_view body);

/// `load_weights`: onto a model, or as a new model of a session.
struct LoadWeightsRequest {
  std::string model_id{};    ///< empty: a new model
  std::string session_id{};  ///< of the new model
  std::int64_t model_seq_id = 0;
  std::int64_t seq_id = 0;
  std::string path{};
  std::string base_model{};  ///< that it must have been trained on; empty: as the weights say
  bool optimizer = false;
};
Result<LoadWeightsRequest> parse_load_weights(std::string_view body);

/// `create_sampling_session`.
struct SamplingSessionRequest {
  std::string session_id{};
  std::int64_t seq_id = 0;
  std::string base_model{};
  std::string model_path{};  ///< empty: the base model itself
};
Result<SamplingSessionRequest> parse_sampling_session(std::string_view body);

/// `asample`.
struct TextRequest {
  std::string sampling_session_id{};
  std::int64_t seq_id = 0;
  std::vector<TokenId> prompt{};
  int samples = 1;
  std::optional<int> max_tokens{};
  std::optional<std::uint64_t> seed{};
  double temperature = 1;
  double top_p = 1;
  int top_k = 0;                                      ///< 0: off
  std::optional<std::vector<TokenId>> stop_tokens{};  ///< absent: the model's own
  std::vector<std::string> stop_strings{};
  int likeliest = 0;  ///< tokens that are reported with every sampled one
  bool prompt_log_probs = false;
  std::optional<int> prompt_log_probs_last{};  ///< of the prompt's last tokens alone
};
Result<TextRequest> parse_sample(std::string_view body);

/// A request's only field of interest, a string: {"model_id": ...}.
Result<std::string> parse_text_field(std::string_view body, const char* field);

}  // namespace carnot
