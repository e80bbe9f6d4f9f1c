// worlds/dataset/python_reward.h -- the scores that Python functions of the user's give, by python/carnot_reward.py.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/subprocess/answer_reader.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/worlds/task_rows/rows.h"

namespace carnot {

struct PythonRewardOptions {
  std::vector<std::string> functions{};  ///< FILE:FUNCTION each
  std::vector<double> weights{};         ///< one a function; empty: all are 1
  std::string python = "python3";
  double timeout = 60;  ///< seconds that an answer may take
};

/// What the functions say of one response.
struct PythonScore {
  std::optional<double> value{};          ///< the weighted sum; empty if a function gave no finite number
  std::map<std::string, double> parts{};  ///< of several functions: each one's score, by its name
  std::string problem{};                  ///< why there is no value
};

class PythonReward {
 public:
  /// Starts the process; the error says why a function cannot be called: also where it asks for a column that `row`,
  /// the first of the data set, lacks.
  static Result<std::unique_ptr<PythonReward>> start(const PythonRewardOptions& options, const DatasetRow& row);

  /// The scores of a group's responses to `row`, in their order. One call of each function has all of them, and the
  /// groups that gathered meanwhile. Of several functions one may have no score (None) for a response; it then adds
  /// nothing. Throws PeerFailure where a call fails. Any thread.
  std::vector<PythonScore> scores(const DatasetRow& row, const std::vector<std::string>& responses);

 private:
  struct Part {
    std::string name{};  ///< of the function; with its file where two have one name
    double weight = 1;
  };
  PythonReward(std::vector<Part> parts, std::unique_ptr<PeerPool> pool)
      : parts_(std::move(parts)), pool_(std::move(pool)) {}
  PythonScore read_score(AnswerReader& reader) const;

  std::vector<Part> parts_;
  std::unique_ptr<PeerPool> pool_;
};

}  // namespace carnot
