// chart/scale.h -- from values to positions, and the round numbers to write at an axis.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace carnot {

/// An axis as its user describes it.
struct Axis {
  std::string label{};
  std::optional<double> low{};   ///< where the axis begins; none: as the data need
  std::optional<double> high{};  ///< where it ends
  bool percent = false;          ///< values are shares, written as percentages: 0.25 as "25 %"
};

/// Round numbers (1, 2 or 5 times a power of ten apart) within [low, high], about `wanted` of them.
/// REQUIRES: finite, low < high.
std::vector<double> nice_ticks(double low, double high, int wanted);

/// The numbers as text, all with as many decimals as telling them apart takes.
std::vector<std::string> tick_labels(std::span<const double> ticks, bool percent);

/// A number for people, four significant digits: "0.1234", "1234000", "1.2e-05"; "-" if it is not finite.
std::string number_text(double value);

/// The finite values' smallest and largest; none where there are no finite values.
struct Extent {
  double low = 0;
  double high = 0;
};
std::optional<Extent> extent_of(std::span<const double> values);
std::optional<Extent> joined(const std::optional<Extent>& a, const std::optional<Extent>& b);

/// A straight map from [low, high] to [from, to] on the page, which may run backwards.
class Scale {
 public:
  /// The axis' own ends where it has them, else the data's, moved out to the next tick; the longer in pixels, the more
  /// ticks. An extent of one value or none is widened. REQUIRES: low < high where the axis gives both.
  Scale(const Axis& axis, const std::optional<Extent>& data, double from, double to);

  double operator()(double value) const { return from_ + (value - low_) / (high_ - low_) * (to_ - from_); }

  double low() const { return low_; }
  double high() const { return high_; }
  double from() const { return from_; }
  double to() const { return to_; }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double low_ = 0, high_ = 1;
  double from_ = 0, to_ = 1;
  std::vector<double> ticks_{};
};

}  // namespace carnot
