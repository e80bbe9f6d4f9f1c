// worlds/dataset/judge.h -- the scorer `judge`: a language model says how good a response is.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/serving/openai/chat_endpoint.h"
#include "carnot/worlds/dataset/judge_cache.h"
#include "carnot/worlds/reward/pattern.h"
#include "carnot/worlds/task_rows/rows.h"

namespace carnot {

struct JudgeOptions {
  ChatEndpointOptions endpoint{};
  std::string system{};
  std::string prompt{};  ///< empty: that of prompt_file, or default_judge_prompt()
  std::string prompt_file{};
  std::string score_pattern = R"((?i)\bscore[^\w-]*(-?\d+(?:\.\d+)?))";
  std::string score_field{};
  double lowest = 0;
  double highest = 10;
  double temperature = 0;
  int max_tokens = 1024;
  std::string extra{};
  std::string cache{};

  void fields(FieldVisitor& visit);
};

/// Asks for a score from 0 to 10 at the end, after a reason; {question}, {answer} and {response} are in it.
const std::string& default_judge_prompt();

class Judge {
 public:
  /// Asks no one yet. Every error names its key.
  static Result<std::unique_ptr<Judge>> open(const JudgeOptions& options);

  /// Whether the prompt shows a right answer, which every row then has to have.
  bool needs_answer() const;

  /// From 0 (options.lowest) to 1 (options.highest): what the judge says of a response to `row`. Throws ChatFailure
  /// where it says nothing, or no score within the range: that is no reward. Any thread.
  double score(const DatasetRow& row, std::string_view response);

 private:
  Judge(const JudgeOptions& options, std::unique_ptr<ChatEndpoint> endpoint);
  std::string request_for(const DatasetRow& row, std::string_view response) const;
  double score_of(const std::string& answer) const;
  double stated_score(const std::string& answer) const;

  JudgeOptions options_;
  std::unique_ptr<ChatEndpoint> endpoint_;
  std::optional<Pattern> pattern_{};
  std::optional<JudgeCache> cache_{};
  std::atomic<bool> warned_{false};  ///< that answers cannot be kept
};

}  // namespace carnot
