#include "carnot/worlds/sudoku/placement.h"

#include <array>
#include <optional>

#include "carnot/core/base/strings.h"
#include "carnot/worlds/ragen/action_table.h"

namespace carnot {
namespace {

// '#' is a number, ' ' any blanks or none; tried in this order.
constexpr std::array<std::string_view, 6> kPatterns = {
    "place # at row # col #", "place # at ( # , # )", "place # at # , #", "# at # , #", "( # , # , # )", "# , # , #",
};

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

using Numbers = std::array<std::string_view, 3>;

std::optional<Numbers> match_at(std::string_view text, std::string_view pattern) {
  Numbers numbers;
  std::size_t at = 0, count = 0;
  for (const char wanted : pattern) {
    if (wanted == ' ') {
      while (at < text.size() && is_blank(text[at])) ++at;
    } else if (wanted == '#') {
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      if (at == begin) return std::nullopt;
      numbers[count++] = text.substr(begin, at - begin);
    } else if (at < text.size() && text[at] == wanted) {
      ++at;
    } else {
      return std::nullopt;
    }
  }
  return numbers;
}

std::optional<Numbers> find_numbers(std::string_view text) {
  for (const auto pattern : kPatterns)
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
      // What fails from the first digit of a number fails from its later ones.
      if (pattern[0] == '#' && begin > 0 && is_digit(text[begin - 1])) continue;
      if (const auto numbers = match_at(text.substr(begin), pattern)) return numbers;
    }
  return std::nullopt;
}

// Without leading zeros, as a number prints.
std::string_view plain(std::string_view number) {
  const auto begin = number.find_first_not_of('0');
  return begin == std::string_view::npos ? "0" : number.substr(begin);
}

// 1..size, or 0.
int in_range(std::string_view number, int size) {
  const auto digits = plain(number);
  const int value = digits.size() > 1 ? 0 : digits[0] - '0';
  return value <= size ? value : 0;
}

}  // namespace

Result<SudokuPlacement> parse_placement(std::string_view text, int size) {
  const std::string lower = lower_case(text);
  const auto numbers = find_numbers(lower);
  if (!numbers)
    return Error{"Could not parse action: '" + std::string(text) +
                 "'. Expected format: 'place 5 at row 2 col 3' or '2,3,5'"};
  const auto holds = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  const bool number_first = holds("place") || holds("at");
  const auto& [first, second, third] = *numbers;
  const std::string_view row = number_first ? second : first, column = number_first ? third : second,
                         digit = number_first ? first : third;

  const SudokuPlacement placement{in_range(row, size), in_range(column, size), in_range(digit, size)};
  const auto outside = [&](std::string_view what, std::string_view number) {
    return Error{std::string(what) + " " + std::string(plain(number)) + " is out of range (1-" + std::to_string(size) +
                 ")"};
  };
  if (placement.row == 0) return outside("Row", row);
  if (placement.column == 0) return outside("Column", column);
  if (placement.digit == 0) return outside("Number", digit);
  return placement;
}

}  // namespace carnot
