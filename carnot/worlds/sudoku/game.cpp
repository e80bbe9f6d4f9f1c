#include "carnot/worlds/sudoku/game.h"

#include <algorithm>
#include <array>
#include <optional>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/ragen/action_table.h"
#include "carnot/worlds/ragen/grid_text.h"

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

constexpr std::string_view kRule = "==================================================";

std::string cell_text(int row, int column) { return "(" + std::to_string(row) + "," + std::to_string(column) + ")"; }

std::string list_text(const std::vector<int>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

int blanks(const SudokuOptions& options) {
  const double share = options.difficulty == "easy" ? 0.4 : options.difficulty == "medium" ? 0.5 : 0.6;
  return static_cast<int>(share * options.grid_size * options.grid_size);
}

int filled(const SudokuGrid& grid) {
  return static_cast<int>(std::count_if(grid.digits.begin(), grid.digits.end(), [](int digit) { return digit != 0; }));
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

std::string valid_numbers_line(const SudokuGrid& grid, int cell) {
  const int row = cell / grid.size, column = cell % grid.size;
  const auto valid = valid_numbers(grid, row, column);
  return valid.empty() ? "" : "  - " + cell_text(row + 1, column + 1) + ": " + list_text(valid) + "\n";
}

void SudokuOptions::fields(FieldVisitor& visit) {
  visit.field("grid_size", grid_size, "digits, a square: 4 or 9", between(4, 9));
  visit.field("difficulty", difficulty, "share of blank cells: easy 40 %, medium 50 %, hard 60 %",
              one_of({"easy", "medium", "hard"}));
  visit.field("max_steps", max_steps, "steps after which a legal placement ends the game",
              between(1, kMaxEpisodeSteps));
  visit.field("render_format", render_format, "the whole page with feedback, or the rows alone",
              one_of({"with_feedback", "grid"}));
  visit.field("show_conflicts", show_conflicts, "list cells that clash");
  visit.field("show_valid_numbers", show_valid_numbers, "list what may go where, once at most ten cells are empty");
  visit.field("emoji", emoji, "begin feedback with a symbol");
}

Sudoku::Sudoku(const SudokuOptions& options, std::uint64_t seed)
    : options_(options), puzzle_(generate_sudoku(options.grid_size, blanks(options), seed)), grid_(puzzle_.start) {}

std::string Sudoku::board_json() const { return json_text(digits_text(puzzle_.start)); }

std::string Sudoku::mark(std::string_view symbol) const {
  return options_.emoji ? std::string(symbol) + " " : std::string();
}

GameStep Sudoku::step(std::string_view action) {
  CARNOT_CHECK(!done_, "the game is over");
  ++steps_;
  const auto placement = parse_placement(action, grid_.size);
  if (!placement) return refuse(mark("❌") + "Invalid action format: " + placement.error().message);
  const auto [row, column, digit] = *placement;
  if (puzzle_.start.at(row - 1, column - 1) != 0)
    return refuse(mark("❌") + "Cannot modify initial cell at " + cell_text(row, column));
  if (conflicts(grid_, row - 1, column - 1, digit).any()) return refuse(conflict_feedback(*placement));
  return place(*placement);
}

GameStep Sudoku::refuse(std::string feedback) {
  feedback_ = std::move(feedback);
  return {.observation = observation(), .reward = {.value = -0.1}};
}

GameStep Sudoku::place(const SudokuPlacement& placement) {
  const auto [row, column, digit] = placement;
  const bool optimal = digit == puzzle_.solution.at(row - 1, column - 1);
  grid_.at(row - 1, column - 1) = digit;
  const std::string where = "Placed " + std::to_string(digit) + " at " + cell_text(row, column);
  feedback_ = optimal ? mark("✓") + "Correct! " + where : mark("⚠") + where + " - Valid but not optimal";
  GameStep result{.reward = {.value = optimal ? 1.0 : 0.5}, .effective = true, .valid = true};
  if (is_solved(grid_)) {
    result.reward.value += 10.0;
    result.success = true;
    feedback_ += "\n" + mark("🎉") + "Congratulations! Puzzle solved!";
  }
  result.done = done_ = result.success || steps_ >= options_.max_steps;
  result.observation = observation();
  return result;
}

std::string Sudoku::conflict_feedback(const SudokuPlacement& placement) const {
  const auto [row, column, digit] = placement;
  const auto found = conflicts(grid_, row - 1, column - 1, digit);
  std::vector<std::string> places;
  if (found.row) places.push_back("row " + std::to_string(row));
  if (found.column) places.push_back("column " + std::to_string(column));
  if (found.box) places.push_back("box " + cell_text((row - 1) / grid_.box + 1, (column - 1) / grid_.box + 1));
  std::string text = mark("❌") + "Invalid placement: " + std::to_string(digit) + " conflicts with ";
  for (std::size_t i = 0; i < places.size(); ++i) text += (i > 0 ? ", " : "") + places[i];
  const auto valid = valid_numbers(grid_, row - 1, column - 1);
  if (!valid.empty()) text += "\n   Valid numbers for " + cell_text(row, column) + ": " + list_text(valid);
  return text;
}

std::string Sudoku::observation() const {
  if (options_.render_format == "grid") return picture(grid_, puzzle_.start);
  const int cells = grid_.size * grid_.size, given = filled(puzzle_.start), now = filled(grid_);

  std::string text;
  text.append(kRule).append("\nSUDOKU PUZZLE\n").append(kRule).append("\n").append(picture(grid_, puzzle_.start));
  text += "\n\nLegend: [N]=initial cell, N=user-placed, *N*=conflict, .=empty\n";
  if (!feedback_.empty()) text += "\n" + feedback_ + "\n";
  const auto clashing = options_.show_conflicts ? conflicting_cells(grid_) : std::vector<int>{};
  if (!clashing.empty()) text += "\n" + mark("⚠") + "CONFLICTS DETECTED:\n";
  for (const int cell : clashing)
    text += "  - Cell " + cell_text(cell / grid_.size + 1, cell % grid_.size + 1) + ": " +
            std::to_string(grid_.digits[cell]) + "\n";
  if (options_.show_valid_numbers && now < cells && cells - now <= 10) {
    text += "\n" + mark("💡") + "VALID NUMBERS FOR EMPTY CELLS:\n";
    for (int cell = 0; cell < cells; ++cell) text += valid_numbers_line(grid_, cell);
  }
  text += "\nProgress: " + std::to_string(now) + "/" + std::to_string(cells) + " cells filled (" +
          std::to_string(given) + " initial, " + std::to_string(now - given) + " placed)";
  text += "\nSteps: " + std::to_string(steps_) + "/" + std::to_string(options_.max_steps);
  return text;
}

}  // namespace carnot
