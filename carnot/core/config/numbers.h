// config/numbers.h -- numbers and switches as recipes write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carnot {

/// "0.1", "1e-6", ".inf", "-.inf"; nothing else, and never NaN.
std::optional<double> parse_number(std::string_view text);

/// "12", "-3", also "1e4" where it is whole.
std::optional<std::int64_t> parse_whole_number(std::string_view text);

/// "true", "false", and YAML's yes/no, on/off.
std::optional<bool> parse_switch(std::string_view text);

/// The shortest text that parse_number reads back to the same bits.
std::string write_number(double value);

}  // namespace carnot
