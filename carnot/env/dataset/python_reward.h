// env/dataset/python_reward.h -- the score that a Python function of the user's gives, by python/carnot_reward.py.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/env/dataset/rows.h"
#include "carnot/process/peer_pool.h"

namespace carnot {

struct PythonRewardOptions {
  std::string function{};  ///< FILE:FUNCTION
  std::string python = "python3";
  double timeout = 60;  ///< seconds that an answer may take
};

/// What the function says of one response.
struct PythonScore {
  std::optional<double> value{};  ///< finite; none where it gave no such number
  std::string problem{};          ///< why there is none
};

class PythonReward {
 public:
  /// Starts the process; the error says why the function cannot be called: also where it asks for a column that `row`,
  /// the first of the data set, lacks.
  static Result<std::unique_ptr<PythonReward>> start(const PythonRewardOptions& options, const DatasetRow& row);

  /// The function's scores of a group's responses to `row`, in their order. One call of it has all of them, and the
  /// groups that gathered while it was at work. Throws PeerFailure where the call fails. Any thread.
  std::vector<PythonScore> scores(const DatasetRow& row, const std::vector<std::string>& responses);

 private:
  explicit PythonReward(std::unique_ptr<PeerPool> pool) : pool_(std::move(pool)) {}
  std::unique_ptr<PeerPool> pool_;
};

}  // namespace carnot
