// serving/result_lines.h -- JSON lines out: generated texts, and the log-probabilities of given ones.
//
// Numbers read back to the same bits. Text that is not UTF-8 has U+FFFD in its place.
#pragma once

#include <span>
#include <string>

#include "carnot/serving/generator.h"
#include "carnot/serving/input_lines.h"

namespace carnot {

/// {"prompt": N, "sample": N, "id": ..., "text": ..., "finish_reason": "stop" | "length", "stop": STRING or null,
///  "prompt_ids": [...], "ids": [...], "logp": [...], "entropy": [...]}, in nats, of softmax(logits / temperature); one
/// entry for each id, the one that ended the text included.
std::string generated_line(const GeneratedText& text, const InputLine& prompt);

/// Per token after the first.
struct SequenceStatistics {
  std::span<const double> log_prob{}, entropy{}, logsumexp{};
};

/// {"index": N, "id": ..., "ids": [...], "logp": [null, ...], "entropy": [null, ...], "logsumexp": [null, ...],
///  "mean_logp": ..., "mean_entropy": ..., "mean_logsumexp": ...}; means over the tokens after the first, null if
/// there is none.
std::string statistics_line(std::size_t index, const InputLine& line, const SequenceStatistics& statistics);

}  // namespace carnot
