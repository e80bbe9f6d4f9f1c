// engine/sampling.h -- one token from one row of logits, with the statistics of the distribution it came from.
//
// The statistics come from the kernel that training uses, so that a log-probability measured here and one measured
// there have the same bits. Sums run in an order that the vocabulary's size alone fixes: neither batch nor threads can
// change a token or a digit. No LibTorch.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/kernel/dispatch.h"

namespace carnot {

struct SamplingOptions {
  double temperature = 1;  ///< 0: greedy
  double top_p = 1;        ///< 1: off
  int top_k = 0;           ///< 0: off

  void fields(FieldVisitor& visit);
};

/// Statistics are of softmax(logits / temperature) over all logits, before anything is cut, in nats. Greedy: of
/// softmax(logits).
struct TokenDraw {
  TokenId token = 0;
  float log_prob = 0;
  float entropy = 0;
  float logsumexp = 0;           ///< of logits / temperature
  double candidate_entropy = 0;  ///< see RowRequest; 0 where no one asked
};

struct RowRequest {
  int drawable = 0;    ///< only ids below are drawn (a model's vocabulary may be padded beyond the tokenizer's)
  double uniform = 0;  ///< in [0, 1)
  int candidates = 0;  ///< > 0: candidate_entropy is -sum p ln p over that many likeliest tokens and the drawn one
};

/// A token and its log-probability, as TokenDraw has it.
struct TokenLogProb {
  TokenId token = 0;
  float log_prob = 0;

  bool operator==(const TokenLogProb&) const = default;
};

/// A row of logits. Where it has segments (nn/logit_rows.h), it is divided by the temperature already.
struct LogitRow {
  std::span<float> logits{};
  std::span<const kernel::SegmentStatistics<float>> segments{};
};

/// What a row's logits are multiplied by; 1 where the temperature is 0, which is greedy.
inline float inverse_temperature(double temperature) {
  return temperature == 0 ? 1.0f : static_cast<float>(1 / temperature);
}

/// The token whose share of the cumulative distribution covers `uniform`.
///
/// Uncut, tokens are lined up by id. With top-k and top-p, by logit, ties to the smaller id: the first top_k of them,
/// and of those, renormalised, the shortest run whose mass reaches top_p. Greedy: the largest logit, ties to the
/// smaller id. The logits are left divided by the temperature. REQUIRES: finite logits; 0 < drawable <=
/// logits.size().
TokenDraw sample_token(const LogitRow& row, const SamplingOptions& options, const RowRequest& request);

/// The token's log-probability, with the bits that sample_token() gives it where it draws the token. The logits are
/// left divided by the temperature.
float log_prob_of(const LogitRow& row, TokenId token, double temperature);

/// The `count` likeliest tokens, or all where there are fewer, most likely first, ties to the smaller id. `logits`: as
/// sample_token() left them; `logsumexp`: of its draw.
std::vector<TokenLogProb> likeliest_tokens(std::span<const float> logits, float logsumexp, int count);

}  // namespace carnot
