// testing/equal_methods.h -- whether methods are the same: their credit, and their objective.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "carnot/core/data/trajectory.h"
#include "carnot/core/method/method.h"
#include "testing/random_groups.h"

namespace carnot::testing {

/// Whether two methods give the same credit, to the bit, on random groups with every signal.
inline void expect_same_credit(const Method& a, const Method& b) {
  RandomStream random(61);
  for (int trial = 0; trial < 40; ++trial) {
    const auto groups = random_groups(random, {.columns = all_columns()});
    const auto all = trajectories(groups);
    const CreditTable of_a = run_credit(a.credit, all);
    const CreditTable of_b = run_credit(b.credit, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(of_a[i].advantage, of_b[i].advantage);
      ASSERT_EQ(of_a[i].weight, of_b[i].weight);
      ASSERT_EQ(of_a[i].clip_scale, of_b[i].clip_scale);
    }
  }
}

/// Every field of an objective as a string.
class FieldTexts final : public FieldVisitor {
 public:
  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view) override { add(name, value ? "true" : "false"); }
  void field(std::string_view name, std::int64_t& value, std::string_view, const Limits&) override {
    add(name, std::to_string(value));
  }
  void field(std::string_view name, double& value, std::string_view, const Limits&) override {
    add(name, ::testing::PrintToString(value));
  }
  void field(std::string_view name, std::string& value, std::string_view, const Limits&) override { add(name, value); }
  void field(std::string_view, std::vector<double>&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<std::string>&, std::string_view, const Limits&) override {}
  void begin_section(std::string_view, std::string_view) override {}
  void end_section() override {}

  std::vector<std::string> lines{};

 private:
  void add(std::string_view name, const std::string& value) { lines.push_back(std::string(name) + " = " + value); }
};

inline std::vector<std::string> objective_of(Method method) {
  FieldTexts texts;
  method.objective.fields(texts);
  return texts.lines;
}

}  // namespace carnot::testing
