#include "carnot/core/kernel/recurrent/gated_delta.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "reference/gated_delta.h"
#include "testing/gated_delta_problem.h"

namespace carnot::kernel {
namespace {

using testing::DeltaShape;
using testing::GatedDelta;
using testing::GatedDeltaProblem;
using testing::kDeltaShapes;
using testing::relative_error;

TYPED_TEST_SUITE(GatedDelta, testing::DeltaTypes);

template <class S>
std::vector<double> wide(const std::vector<S>& numbers) {
  std::vector<double> all;
  GatedDeltaProblem<S>::append(numbers, all);
  return all;
}

TYPED_TEST(GatedDelta, EqualsTheDefinition) {
  for (const DeltaShape& shape : kDeltaShapes) {
    const GatedDeltaProblem<TypeParam> problem(shape, {1, 64, 37, 130});
    const std::vector<TypeParam> out = problem.forward();
    for (std::size_t s = 0; s < problem.sequences.size(); ++s) {
      const auto begin = out.begin() + problem.sequences[s].begin * problem.out_width();
      const std::vector<TypeParam> got(begin, begin + problem.sequences[s].rows * problem.out_width());
      EXPECT_LT(relative_error(wide(got), reference::gated_delta(problem.alone(s).slow()).out), this->kTolerance)
          << shape.key_dim << " x " << shape.value_dim;
    }
  }
}

TYPED_TEST(GatedDelta, LeavesTheStateOfTheDefinition) {
  for (const DeltaShape& shape : kDeltaShapes) {
    const GatedDeltaProblem<TypeParam> problem(shape, {70});
    const auto layer = problem.layer();
    std::vector<Computed<TypeParam>> state(layer.state_size(), 0);
    Computed<TypeParam>* const states[] = {state.data()};
    std::vector<TypeParam> out(problem.rows * problem.out_width());
    gated_delta_forward<TypeParam>(layer, problem.input(), problem.sequences, states, out.data());
    EXPECT_EQ(out, problem.forward());
    constexpr int kColumns = kDeltaColumns<Computed<TypeParam>>;
    std::vector<double> by_definition;
    for (int h = 0; h < shape.value_heads; ++h)
      for (int d = 0; d < shape.key_dim; ++d)
        for (int v = 0; v < shape.value_dim; ++v)
          by_definition.push_back(
              state[h * layer.head_state() + (v / kColumns * shape.key_dim + d) * kColumns + v % kColumns]);
    EXPECT_LT(relative_error(by_definition, reference::gated_delta(problem.slow()).state),
              sizeof(Computed<TypeParam>) == 8 ? 1e-12 : 1e-5);
  }
}

TYPED_TEST(GatedDelta, GradientEqualsTheDefinitions) {
  for (const DeltaShape& shape : kDeltaShapes)
    for (const int length : {1, 64, 65, 150}) {
      const GatedDeltaProblem<TypeParam> problem(shape, {length});
      EXPECT_LT(relative_error(problem.backward(), problem.slow_gradients()), 2 * this->kTolerance)
          << shape.key_dim << " x " << shape.value_dim << ", " << length;
    }
}

TEST(GatedDeltaGradient, MatchesFiniteDifferences) {
  GatedDeltaProblem<double> problem({1, 2, 6, 5}, {9, 70});
  const std::vector<double> gradient = problem.backward();
  std::vector<double*> numbers;
  for (auto* all : {&problem.qkv, &problem.a, &problem.b, &problem.log_rate, &problem.step_bias})
    for (double& number : *all) numbers.push_back(&number);
  ASSERT_EQ(numbers.size(), gradient.size());
  const auto loss = [&] {
    const std::vector<double> out = problem.forward();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * problem.dout[i];
    return sum;
  };
  for (std::size_t i = 0; i < numbers.size(); i += i + 20 < numbers.size() ? 5 : 1) {
    const double kept = *numbers[i], h = 1e-6;
    *numbers[i] = kept + h;
    const double up = loss();
    *numbers[i] = kept - h;
    const double down = loss();
    *numbers[i] = kept;
    ASSERT_NEAR(gradient[i], (up - down) / (2 * h), 1e-6) << i;
  }
}

TYPED_TEST(GatedDelta, InPiecesEqualsAtOnceBitForBit) {
  for (const DeltaShape& shape : kDeltaShapes) {
    const GatedDeltaProblem<TypeParam> problem(shape, {150});
    const auto layer = problem.layer();
    std::vector<Computed<TypeParam>> state(layer.state_size(), 0);
    Computed<TypeParam>* const states[] = {state.data()};
    std::vector<TypeParam> out(problem.rows * problem.out_width());
    std::int64_t past = 0;
    for (const int rows : {5, 1, 1, 64, 1, 70, 8}) {
      const RecurrentRows piece{.begin = 0, .rows = rows};
      gated_delta_forward<TypeParam>(layer, problem.input(past), {&piece, 1}, states,
                                     out.data() + past * problem.out_width());
      past += rows;
    }
    EXPECT_EQ(out, problem.forward());
  }
}

TYPED_TEST(GatedDelta, PackedEqualsOneByOneAndOneThreadEqualsThreeBitForBit) {
  for (const DeltaShape& shape : kDeltaShapes) {
    const GatedDeltaProblem<TypeParam> problem(shape, {9, 0, 150, 33, 1});
    const std::vector<TypeParam> out = problem.forward();
    const std::vector<double> gradient = problem.backward();
    set_num_threads(3);
    EXPECT_EQ(out, problem.forward());
    EXPECT_EQ(gradient, problem.backward());
    set_num_threads(1);
    for (std::size_t s = 0; s < problem.sequences.size(); ++s) {
      const auto begin = out.begin() + problem.sequences[s].begin * problem.out_width();
      EXPECT_EQ(std::vector<TypeParam>(begin, begin + problem.sequences[s].rows * problem.out_width()),
                problem.alone(s).forward());
    }
  }
}

TYPED_TEST(GatedDelta, SequencesWithAndWithoutAStateShareACall) {
  const GatedDeltaProblem<TypeParam> problem({1, 2, 16, 37}, {9, 70, 2});
  const auto layer = problem.layer();
  std::vector<Computed<TypeParam>> state(layer.state_size(), 0);
  Computed<TypeParam>* const states[] = {nullptr, state.data(), nullptr};
  std::vector<TypeParam> out(problem.rows * problem.out_width());
  gated_delta_forward<TypeParam>(layer, problem.input(), problem.sequences, states, out.data());
  EXPECT_EQ(out, problem.forward());
}

TYPED_TEST(GatedDelta, StaysFiniteWhereGatesSaturate) {
  GatedDeltaProblem<TypeParam> problem({1, 1, 16, 32}, {80});
  using T = Computed<TypeParam>;
  for (std::size_t i = 0; i < problem.a.size(); ++i) {
    problem.a[i] = stored<TypeParam>(static_cast<T>(i % 3 == 0 ? 1000 : i % 3 == 1 ? -1000 : 0));
    problem.b[i] = stored<TypeParam>(static_cast<T>(i % 2 == 0 ? 1000 : -1000));
  }
  std::fill_n(problem.qkv.begin(), problem.layer().width(), TypeParam{});
  for (const double x : wide(problem.forward())) EXPECT_TRUE(std::isfinite(x));
  for (const double x : problem.backward()) EXPECT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace carnot::kernel
