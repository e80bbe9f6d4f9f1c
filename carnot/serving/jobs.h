// serving/jobs.h -- the commands `carnot generate` and `carnot score`.
//
// First everything is read and checked, then it is computed and written. Results come in the order of the input, each
// written out as soon as it and those before it are finished. Where the output cannot be written any more, the job
// ends.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/run/run.h"
#include "carnot/serving/generator.h"
#include "carnot/serving/input_lines.h"
#include "carnot/serving/loaded_model.h"

namespace carnot {

struct GenerateRequest {
  ModelRequest model{};
  std::vector<std::string> prompts{};  ///< each continued; without them and the next two, all of standard input is one
  std::string messages{};              ///< a conversation as JSON
  std::string input{};                 ///< file of JSON lines (serving/input_lines.h); "-": standard input
  std::string system{};
  bool raw = false;  ///< prompts as they are, without a chat format
  bool json = false;
  std::optional<double> temperature{}, top_p{};
  std::optional<int> top_k{};
  GenerateOptions options{};  ///< sampling and stop tokens apart
};

struct GenerateJob {
  LoadedModel model{};
  std::vector<InputLine> prompts{};
  GenerateOptions options{};
  bool json = false;
};

/// Loads the model and reads the prompts.
Result<GenerateJob> prepare_generate(const GenerateRequest& request, std::istream& in);

/// How a job talks to the program around it.
struct JobControl {
  std::ostream& out;
  std::function<std::string(std::string_view)> shown;  ///< makes a model's text fit for `out`; JSON is safe as it is
  std::function<bool()> stop_requested = [] { return false; };
};

/// One text alone is streamed; of several, each has a heading. With json, one object per line:
/// {"prompt": N, "sample": N, "id": ..., "text": ..., "finish_reason": "stop" | "length", "stop": STRING or null,
///  "prompt_ids": [...], "ids": [...], "logp": [...], "entropy": [...]}, in nats, of softmax(logits / temperature); one
/// entry for each id, the one that ended the text included. Numbers read back to the same bits. Text that is not UTF-8
/// has U+FFFD in its place.
RunEnd run_generate(const GenerateJob& job, const JobControl& control);

struct ScoreRequest {
  ModelRequest model{};
  std::string input = "-";  ///< file of JSON lines; "-": standard input
  double temperature = 1;
  int batch_tokens = 4096;  ///< of a forward pass; a longer sequence gets its own pass
};

struct ScoreJob {
  LoadedModel model{};
  std::vector<InputLine> sequences{};
  double temperature = 1;
  int batch_tokens = 4096;
};

Result<ScoreJob> prepare_score(const ScoreRequest& request, std::istream& in);

/// One object per line for each sequence:
/// {"index": N, "id": ..., "ids": [...], "logp": [null, ...], "entropy": [null, ...], "logsumexp": [null, ...],
///  "mean_logp": ..., "mean_entropy": ..., "mean_logsumexp": ...}; means over the tokens after the first, null if
/// there is no such token.
RunEnd run_score(const ScoreJob& job, const JobControl& control);

}  // namespace carnot
