// serving/tinker/wire.h -- the messages that Tinker's client sends and takes as protocol buffers, as plain structs.
//
// Field numbers are those of the package `tinker` 0.38 (tinker_public.proto). Numbers travel as little-endian bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"

namespace carnot {

/// A dense tensor of a datum: float32 or int64.
struct TinkerTensor {
  std::vector<std::int64_t> shape{};
  std::vector<double> values{};
};

/// One sequence and what a loss reads of it, by name.
struct TinkerDatum {
  std::vector<TokenId> tokens{};
  std::map<std::string, TinkerTensor> inputs{};
};

using TinkerSetting = std::variant<double, std::string>;

struct ForwardBackwardRequest {
  std::string model_id{};
  std::int64_t seq_id = 0;  ///< of the model's requests
  std::string loss{};
  std::map<std::string, TinkerSetting> settings{};  ///< of the loss
  std::vector<TinkerDatum> data{};
  bool forward_only = false;
};

/// The error names the datum: truncated messages, images, sparse tensors, shapes that do not fit their bytes.
Result<ForwardBackwardRequest> parse_forward_backward(std::string_view bytes);

struct ForwardBackwardOutput {
  std::map<std::string, std::vector<std::vector<float>>> columns{};  ///< by name and datum
  std::int64_t num_data = 0;
  std::map<std::string, double> metrics{};  ///< their names say how chunks are reduced: "loss:sum"
};

std::string forward_backward_bytes(const ForwardBackwardOutput& output);

/// The `k` likeliest tokens of every position, position by position.
struct LikeliestTokens {
  int k = 0;
  std::vector<std::int32_t> tokens{};
  std::vector<float> log_probs{};
};

struct SampledText {
  bool stopped = false;  ///< by a stop token or string; otherwise by its length
  std::vector<TokenId> tokens{};
  std::vector<float> log_probs{};
  LikeliestTokens likeliest{};  ///< k is 0 if not requested
};

struct SampleOutput {
  std::vector<SampledText> texts{};
  std::optional<std::vector<float>> prompt_log_probs{};  ///< NaN where not requested
};

std::string sample_bytes(const SampleOutput& output);

}  // namespace carnot
