// testing/gated_delta_problem.h -- random rows for the gated delta rule, and what its kernel and its reference make of
// them. Header only, because this library does not link the kernels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/recurrent/gated_delta.h"
#include "reference/gated_delta.h"

namespace carnot::testing {

struct DeltaShape {
  int key_heads, value_heads, key_dim, value_dim;
};
/// Whole panels, parts of one, several, and rows that end within a vector.
inline constexpr DeltaShape kDeltaShapes[] = {
    {1, 2, 16, 32}, {2, 2, 8, 20}, {1, 3, 19, 37}, {2, 4, 5, 3}, {1, 1, 1, 65}};

/// Gradients in double, one array behind the other: of qkv, a, b, log_rate, step_bias.
using DeltaGradientRow = std::vector<double>;

template <class S>
struct GatedDeltaProblem {
  using T = kernel::Computed<S>;

  GatedDeltaProblem(const DeltaShape& shape, const std::vector<int>& lengths) : shape(shape) {
    RandomStream stream(23);
    for (int h = 0; h < shape.value_heads; ++h) {
      log_rate.push_back(static_cast<T>(0.5 * stream.normal() - 1));
      step_bias.push_back(static_cast<T>(stream.normal()));
    }
    for (const int length : lengths) {
      sequences.push_back({.begin = rows, .rows = length});
      rows += length;
    }
    const auto normals = [&](std::int64_t count) {
      std::vector<S> numbers;
      for (std::int64_t i = 0; i < count; ++i) numbers.push_back(kernel::stored<S>(static_cast<T>(stream.normal())));
      return numbers;
    };
    qkv = normals(rows * layer().width());
    a = normals(rows * shape.value_heads);
    b = normals(rows * shape.value_heads);
    dout = normals(rows * out_width());
  }

  kernel::GatedDeltaLayer<T> layer() const {
    return {.key_heads = shape.key_heads,
            .value_heads = shape.value_heads,
            .key_dim = shape.key_dim,
            .value_dim = shape.value_dim,
            .log_rate = log_rate.data(),
            .step_bias = step_bias.data()};
  }
  std::int64_t out_width() const { return std::int64_t{shape.value_heads} * shape.value_dim; }
  /// From row `first` on.
  kernel::GatedDeltaInput<S> input(std::int64_t first = 0) const {
    return {.qkv = qkv.data() + first * layer().width(),
            .a = a.data() + first * shape.value_heads,
            .b = b.data() + first * shape.value_heads};
  }

  std::vector<S> forward() const {
    std::vector<S> out(static_cast<std::size_t>(rows * out_width()));
    kernel::gated_delta_forward<S>(layer(), input(), sequences, {}, out.data());
    return out;
  }
  DeltaGradientRow backward() const {
    std::vector<S> dqkv(qkv.size()), da(a.size()), db(b.size());
    std::vector<T> drate(log_rate.size(), T(0)), dbias(log_rate.size(), T(0));
    kernel::gated_delta_backward<S>(
        layer(), input(), sequences, dout.data(),
        {.qkv = dqkv.data(), .a = da.data(), .b = db.data(), .log_rate = drate.data(), .step_bias = dbias.data()});
    DeltaGradientRow all;
    for (const auto* numbers : {&dqkv, &da, &db}) append(*numbers, all);
    for (const auto* numbers : {&drate, &dbias}) append(*numbers, all);
    return all;
  }

  /// These rows as the only sequence of another problem. `own`: from there on they count for the gradient.
  GatedDeltaProblem path(const std::vector<std::int64_t>& path, std::size_t own = 0) const {
    GatedDeltaProblem alone(shape, {static_cast<int>(path.size())});
    alone.qkv = rows_of(qkv, layer().width(), path);
    alone.a = rows_of(a, shape.value_heads, path);
    alone.b = rows_of(b, shape.value_heads, path);
    alone.dout = rows_of(dout, out_width(), path);
    std::fill_n(alone.dout.begin(), static_cast<std::int64_t>(own) * out_width(), S{});
    return alone;
  }
  /// The rows of one sequence without a parent.
  GatedDeltaProblem alone(std::size_t number) const {
    std::vector<std::int64_t> path;
    for (int r = 0; r < sequences[number].rows; ++r) path.push_back(sequences[number].begin + r);
    return this->path(path);
  }

  /// REQUIRES: one sequence.
  reference::DeltaRuleInput slow() const {
    reference::DeltaRuleInput slow{.key_heads = shape.key_heads,
                                   .value_heads = shape.value_heads,
                                   .key_dim = shape.key_dim,
                                   .value_dim = shape.value_dim,
                                   .length = static_cast<int>(rows)};
    append(qkv, slow.qkv);
    append(a, slow.a);
    append(b, slow.b);
    append(log_rate, slow.log_rate);
    append(step_bias, slow.step_bias);
    return slow;
  }
  DeltaGradientRow slow_gradients() const {
    std::vector<double> wide_dout;
    append(dout, wide_dout);
    const reference::DeltaRuleGradients g = reference::gated_delta_gradients(slow(), wide_dout);
    DeltaGradientRow all;
    for (const auto* numbers : {&g.qkv, &g.a, &g.b, &g.log_rate, &g.step_bias}) append(*numbers, all);
    return all;
  }

  template <class Number>
  static void append(const std::vector<Number>& numbers, std::vector<double>& to) {
    for (const Number x : numbers) {
      if constexpr (std::is_same_v<Number, kernel::BFloat16>) {
        to.push_back(static_cast<double>(kernel::widened(x)));
      } else {
        to.push_back(static_cast<double>(x));
      }
    }
  }
  static std::vector<S> rows_of(const std::vector<S>& all, std::int64_t width, const std::vector<std::int64_t>& path) {
    std::vector<S> numbers;
    for (const std::int64_t row : path)
      numbers.insert(numbers.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
    return numbers;
  }

  DeltaShape shape;
  std::vector<T> log_rate{}, step_bias{};
  std::vector<S> qkv{}, a{}, b{}, dout{};
  std::vector<kernel::RecurrentRows> sequences{};
  std::int64_t rows = 0;
};

/// The largest difference, over the largest number expected.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    size = std::max(size, std::abs(expected[i]));
    error = std::max(error, std::isnan(got[i]) ? HUGE_VAL : std::abs(got[i] - expected[i]));
  }
  return error / size;
}

template <class S>
class GatedDelta : public ::testing::Test {
 protected:
  static constexpr double kTolerance = std::is_same_v<S, double> ? 1e-12 : std::is_same_v<S, float> ? 1e-5 : 0.01;
};
using DeltaTypes = ::testing::Types<float, double, kernel::BFloat16>;

}  // namespace carnot::testing
