// serving/text_batch.h -- texts in work together: jobs join and leave between two steps of the engine.
//
// A text is a function of its prompt, its job's options and its draw key. What else is in work changes no bit of it
// (with Carnot's kernels on the CPU). Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/serving/text_stream.h"

namespace carnot {

/// Positions of the KV cache where nothing else is requested, at most.
inline constexpr std::int64_t kMostCacheTokens = 65536;

enum class Finish : std::uint8_t { StopToken, StopString, Length };

/// One prompt and how it is continued.
struct TextJob {
  std::vector<TokenId> prompt{};
  int samples = 1;  ///< texts of it
  SamplingOptions sampling{};
  DrawKey key{};  ///< of the first sample; the others are its next siblings
  int max_tokens = 1;
  std::vector<TokenId> stop_tokens{};
  std::vector<std::string> stop_strings{};
  int likeliest = 0;  ///< tokens that are reported with every draw
};

/// Names a job; the caller chooses.
using TextJobId = std::int64_t;

/// One more token of a text.
struct TextStep {
  TextJobId job = 0;
  int sample = 0;
  TokenDraw draw{};  ///< one that ends the text included
  std::vector<TokenLogProb> likeliest{};
  std::string piece{};             ///< text that is certain now (serving/text_stream.h)
  std::optional<Finish> finish{};  ///< the text ends here
  std::string stop_string{};       ///< that ended it
};

struct TextBatchOptions {
  int texts = 32;        ///< in work at a time
  int cache_tokens = 1;  ///< positions of the KV cache
};

class TextBatch {
 public:
  /// Both must outlive the batch.
  TextBatch(const Model& model, const Tokenizer& tokenizer, const TextBatchOptions& options);

  /// The job's texts begin as soon as there is room, in the order of the calls. A prompt is computed once; its samples
  /// are forks of it. REQUIRES: another name than those of all unfinished jobs; a prompt of at least one token; prompt
  /// and max_tokens together within the cache and the model's positions.
  void add(TextJobId id, TextJob job);

  /// Ends the job's texts and gives their memory back. No effect where it is finished.
  void cancel(TextJobId id);

  /// Some text has not begun yet.
  bool has_waiting() const { return !waiting_.empty(); }
  bool has_work() const { return has_waiting() || !running_.empty(); }

  /// One forward pass. Valid until the next call. REQUIRES: has_work().
  const std::vector<TextStep>& step();

 private:
  struct Waiting {
    TextJobId id = 0;
    TextJob job{};
    int next_sample = 0;
    std::optional<SequenceId> root{};  ///< the prompt, whose forks the samples are
  };
  struct Running {
    TextJobId id = 0;
    int sample = 0;
    TextStream stream;
  };

  void admit();
  /// False if the prompt has to be computed first.
  bool begin_next(Waiting& waiting);
  void take(const SampledToken& token);

  const Tokenizer& tokenizer_;
  TextBatchOptions options_;
  DecoderRunner runner_;
  Engine engine_;

  std::deque<Waiting> waiting_;
  std::map<SequenceId, Running> running_;
  std::vector<TextStep> steps_;
};

}  // namespace carnot
