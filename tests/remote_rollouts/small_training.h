// remote_rollouts/small_training.h -- a training run of six small steps, and its results, for tests with workers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/remote_rollouts/background.h"

namespace carnot::testing {

class SmallTraining : public ::testing::Test {
 protected:
  static constexpr int kSteps = 6;

  SmallTraining();

  /// The words of `carnot train`.
  std::vector<std::string> train(const std::string& run, const std::vector<std::string>& overrides = {}) const;
  Background background(std::vector<std::string> words, const std::vector<std::string>& environment = {});

  std::string checkpoint(const std::string& run, int step) const;
  /// SHA-256 of the last ones.
  std::string weights(const std::string& run) const;
  /// Of a run, by step: all numbers except times and those of the machine and of asynchronous mode.
  std::vector<std::string> metrics(const std::string& run) const;
  /// Of a run, by step: one number.
  std::vector<double> metric(const std::string& run, const std::string& name) const;
  /// The SHA-256 of each row of a step's rollouts, without the times of tools.
  std::vector<std::string> rollouts(const std::string& run, int step) const;
  /// Of a step's rollouts: one column of all turns, as it is written.
  std::vector<std::string> column(const std::string& run, int step, const std::string& name) const;
  void expect_same_run(const std::string& run, const std::string& straight) const;

  const ScratchFolder scratch_;
  const std::string recipe_;
  int logs_ = 0;
};

}  // namespace carnot::testing
