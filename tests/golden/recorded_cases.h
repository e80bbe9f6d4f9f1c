// tests/golden/recorded_cases.h -- what published programs computed on random cases (tests/recorded/credit).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"

namespace carnot::testing {

/// Every case of credit/NAME.jsonl.xz. REQUIRES: the file.
std::vector<Json> recorded_cases(const std::string& name);

/// Calls `check` on every case of one rule and requires that there are exactly `count` of them.
void for_recorded(const std::string& file, const std::string& rule, int count,
                  const std::function<void(const Json&)>& check);

/// A case's trajectories as groups of trees, each after a prompt of this many tokens: records begin with the response.
/// Not copyable: `all` points into `groups`.
struct RecordedGroups {
  explicit RecordedGroups(const Json& one_case, int prompt_tokens = 0);
  RecordedGroups(const RecordedGroups&) = delete;

  std::vector<Group> groups{};
  std::vector<Trajectory> all{};
  std::vector<std::size_t> number{};  ///< recorded trajectory i is all[number[i]]
  std::size_t prompt_tokens = 0;
};

/// A case's rows, each a turn of its trajectory after a separate prompt; a duplicated row is a trajectory of one turn.
struct RecordedRows {
  explicit RecordedRows(const Json& one_case, int prompt_tokens = 0);
  RecordedRows(const RecordedRows&) = delete;

  struct Place {
    std::size_t trajectory = 0;
    int turn = 0;
  };
  std::vector<Group> groups{};
  std::vector<Trajectory> all{};
  std::vector<Place> place{};  ///< of recorded row r
};

/// Compares one credit column with recorded numbers per trajectory and token; null is not compared.
void expect_tokens(const Json& expected, const RecordedGroups& built, const CreditTable& table,
                   std::vector<double> Credit::* column);

/// Compares the advantage of each row's tokens with one number per row.
void expect_rows(const Json& expected, const RecordedRows& built, const CreditTable& table);

/// |a - b| <= 1e-9 (1 + |b|).
void expect_close(double actual, double expected, const std::string& where);

}  // namespace carnot::testing
