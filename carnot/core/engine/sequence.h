// engine/sequence.h -- the engine's token sequences: what each holds, what it waits for, which are alive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/cache/block_table.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/engine/sampling.h"

namespace carnot {

/// Names a live sequence; used again after release().
using SequenceId = int;

struct SampleRequest {
  SamplingOptions sampling{};
  DrawKey key{};  ///< position is that of the first token; it counts up
  int max_tokens = 1;
  std::vector<TokenId> stop_tokens{};  ///< any of them ends the request; it stays in the sequence
  int candidates = 0;                  ///< of TokenDraw::candidate_entropy; 0: not measured
  int candidate_tokens = 0;            ///< how many of the request's first tokens are measured
  int likeliest = 0;                   ///< of SampledToken::likeliest
};

/// What is scored on a fork of a sequence.
struct AnswerRequest {
  std::vector<TokenId> lead{};    ///< tokens between the sequence and the answer
  std::vector<TokenId> answer{};  ///< whose log-probabilities are wanted
  double temperature = 1;         ///< of the softmax; 0 is 1
};

struct Sequence {
  bool live = false;
  bool sampling = false;
  bool prefilling = false;
  bool scheduled = false;  ///< has rows in the present step; its blocks and state may not be given to another
  int sampled = 0;         ///< by the present request
  SampleRequest request{};
  std::vector<TokenId> tokens{};
  BlockTable table{};              ///< over the computed tokens; never the last token, until it samples
  int scored_begin = -1;           ///< tokens from here on are scored as they are computed; -1: none
  double score_temperature = 1;    ///< of their softmax
  std::vector<float> log_probs{};  ///< of those that have been scored

  bool runnable() const { return sampling || prefilling; }
  bool scores() const { return scored_begin >= 0; }
  bool scored() const { return scored_begin + static_cast<int>(log_probs.size()) == num_tokens(); }
  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int due() const { return num_tokens() - table.num_tokens - (sampling ? 0 : 1); }
};

/// The live sequences. Ids of removed ones are used again.
class SequenceSet {
 public:
  SequenceId add(Sequence sequence);
  /// REQUIRES: its blocks have been given back.
  void remove(SequenceId id);

  /// REQUIRES: live.
  Sequence& at(SequenceId id);
  const Sequence& at(SequenceId id) const;

  std::span<const SequenceId> oldest_first() const { return order_; }

 private:
  std::vector<Sequence> slots_;
  std::vector<SequenceId> unused_;
  std::vector<SequenceId> order_;
};

}  // namespace carnot
