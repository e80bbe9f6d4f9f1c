// study/text.h -- numbers in the words of a report.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace carnot {

/// "85.9 %"; "-" of nothing.
std::string percent_text(double share);

/// "55 of 64 (85.9 %)"
std::string share_text(std::int64_t part, std::int64_t whole);

/// "0.412 ± 0.031": mean and half of its 95 % interval; the mean alone of fewer than three (study/estimate.h).
std::string mean_text(std::span<const double> values);

}  // namespace carnot
