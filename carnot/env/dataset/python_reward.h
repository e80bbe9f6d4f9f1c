// env/dataset/python_reward.h -- the score that a Python function of the user's gives, by python/carnot_reward.py.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "carnot/env/dataset/rows.h"
#include "carnot/process/peer_pool.h"

namespace carnot {

struct PythonRewardOptions {
  std::string function{};  ///< FILE:FUNCTION
  std::string python = "python3";
  double timeout = 60;  ///< seconds that an answer may take
};

class PythonReward {
 public:
  /// Starts the process; the error says why the function cannot be called: also where it asks for a column that `row`,
  /// the first of the data set, lacks.
  static Result<std::unique_ptr<PythonReward>> start(const PythonRewardOptions& options, const DatasetRow& row);

  /// The function's score of a response to `row`. Responses that gather while it is at work are scored together. Throws
  /// PeerFailure where there is none, or none that is a finite number. Any thread.
  double score(const DatasetRow& row, std::string_view response);

 private:
  explicit PythonReward(std::unique_ptr<PeerPool> pool) : pool_(std::move(pool)) {}
  std::unique_ptr<PeerPool> pool_;
};

}  // namespace carnot
