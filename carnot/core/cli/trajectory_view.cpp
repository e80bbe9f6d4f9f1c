#include "carnot/core/cli/trajectory_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "carnot/core/base/json.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/cli/terminal_text.h"

namespace carnot {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// By SpanKind: grey, blue, yellow, green, cyan.
constexpr std::array<std::string_view, 5> kColours = {"\x1b[90m", "\x1b[34m", "\x1b[33m", "\x1b[32m", "\x1b[36m"};
constexpr std::string_view kNoColour = "\x1b[0m";
constexpr std::array<std::string_view, 4> kCreditColumns = {"advantage", "weight", "clip_scale", "value_target"};
constexpr std::array<std::string_view, 6> kExplainedColumns = {
    "ratio", "clip_state", "gradient", "scaled_advantage", "value_loss", "value_gradient"};

std::string number(double value) {
  if (std::isnan(value)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

std::string ending(const Leaf& leaf) {
  std::string text(name_of(leaf.outcome));
  if (leaf.success) text += ", success";
  if (leaf.dropped) text += ", dropped";
  return text;
}

double penalties(const Trajectory& trajectory) {
  double sum = 0;
  for (int k = 0; k < trajectory.num_turns(); ++k) sum += trajectory.turn(k).penalty;
  return sum;
}

std::string turn_table(const Trajectory& trajectory) {
  Rows rows{{"turn", "tokens", "sampled", "reward", "penalty", "valid", "gain", "tool", "status"}};
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const Turn& turn = trajectory.turn(k);
    const auto at = static_cast<std::size_t>(k);
    rows.push_back({std::to_string(k),
                    std::to_string(trajectory.turn_offsets[at]) + "-" + std::to_string(trajectory.turn_offsets[at + 1]),
                    std::to_string(turn.num_sampled()), number(turn.reward), number(turn.penalty),
                    yes_or_no(turn.valid_action), turn.info_gain ? number(*turn.info_gain) : "-",
                    printable_line(turn.tool), printable_line(turn.status)});
  }
  return text_table(rows);
}

/// Runs of tokens of one kind, turn by turn.
struct Stretch {
  SpanKind kind = SpanKind::Template;
  std::string text{};
};

std::vector<Stretch> stretches_of(const Trajectory& trajectory, const Tokenizer& tokenizer) {
  std::vector<Stretch> stretches;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const std::span<const TokenId> tokens(trajectory.turn(k).tokens);
    for (const Span& span : trajectory.turn(k).spans) {
      const auto begin = static_cast<std::size_t>(span.begin);
      const std::string text = tokenizer.decode(tokens.subspan(begin, static_cast<std::size_t>(span.end) - begin));
      if (stretches.empty() || stretches.back().kind != span.kind) stretches.push_back({.kind = span.kind});
      stretches.back().text += text;
    }
  }
  return stretches;
}

std::string coloured(SpanKind kind, std::string_view text) {
  return std::string(kColours[static_cast<std::size_t>(kind)]) + std::string(text) + std::string(kNoColour);
}

std::string in_colour(const std::vector<Stretch>& stretches) {
  std::string out;
  for (std::size_t kind = 0; kind < kColours.size(); ++kind)
    out +=
        (kind == 0 ? "" : "  ") + coloured(static_cast<SpanKind>(kind), kSpanKindNames[static_cast<std::size_t>(kind)]);
  out += "\n\n";
  for (const Stretch& stretch : stretches) out += coloured(stretch.kind, printable(stretch.text));
  return out + "\n";
}

std::string behind_kinds(const std::vector<Stretch>& stretches) {
  constexpr std::size_t kMargin = 11;  // of the longest kind
  std::string out;
  for (const Stretch& stretch : stretches) {
    std::string kind(name_of(stretch.kind));
    kind.resize(kMargin, ' ');
    std::string_view rest = stretch.text;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const bool breaks = end != std::string_view::npos;
      out += kind + " | " + printable(rest.substr(0, end)) + (breaks ? "\\n" : "") + "\n";
      rest.remove_prefix(breaks ? end + 1 : rest.size());
    }
  }
  return out;
}

const std::vector<double>* credit_column(const Credit* credit, std::string_view name) {
  if (credit == nullptr) return nullptr;
  const std::array columns = {&credit->advantage, &credit->weight, &credit->clip_scale, &credit->value_target};
  const auto found = std::find(kCreditColumns.begin(), kCreditColumns.end(), name);
  return found == kCreditColumns.end() ? nullptr : columns[found - kCreditColumns.begin()];
}

using Cells = std::vector<std::string>;

Cells cells_of(const std::vector<double>& values) {
  Cells cells;
  for (const double value : values) cells.push_back(number(value));
  return cells;
}

/// A list of the row that is neither signal nor credit, as it is there.
std::optional<Cells> listed_cells(const Json& row, std::string_view name, std::size_t tokens) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_array() || found->size() != tokens) return std::nullopt;
  Cells cells;
  for (const auto& entry : *found)
    cells.push_back(entry.is_number()   ? number(entry.get<double>())
                    : entry.is_string() ? printable_line(entry.get<std::string>())
                                        : "-");
  return cells;
}

/// A column by name, one cell per token; empty if the file has none.
std::optional<Cells> column_cells(const Trajectory& trajectory, const Credit* credit, const Json& row,
                                  std::string_view name) {
  if (std::find(kExplainedColumns.begin(), kExplainedColumns.end(), name) != kExplainedColumns.end())
    return listed_cells(row, name, trajectory.num_tokens());
  if (const auto* values = credit_column(credit, name)) return cells_of(*values);
  const auto found = std::find(kColumnFields.begin(), kColumnFields.end(), name);
  if (found == kColumnFields.end()) return std::nullopt;
  const auto column = static_cast<Column>(found - kColumnFields.begin());
  if (!trajectory.tree->columns.has(column)) return std::nullopt;
  return cells_of(trajectory.column(column));
}

}  // namespace

std::string trajectory_list(const RolloutFile& file) {
  Rows rows{{"row", "uid", "trajectory", "outcome", "score", "penalty", "turns", "tokens", "sampled"}};
  const std::vector<Trajectory> all = trajectories(file.groups);
  for (std::size_t i = 0; i < all.size(); ++i)
    rows.push_back({std::to_string(file.line_of_row[i]), printable_line(all[i].group->uid),
                    printable_line(all[i].leaf().trajectory_id), ending(all[i].leaf()), number(all[i].leaf().score),
                    number(penalties(all[i])), std::to_string(all[i].num_turns()), std::to_string(all[i].num_tokens()),
                    std::to_string(all[i].num_sampled())});
  return text_table(rows);
}

std::string trajectory_facts(const Trajectory& trajectory) {
  const Group& group = *trajectory.group;
  const Leaf& leaf = trajectory.leaf();
  Rows rows{{"uid", printable_line(group.uid)},
            {"trajectory", printable_line(leaf.trajectory_id)},
            {"step", std::to_string(group.step)},
            {"outcome", ending(leaf)},
            {"score", number(leaf.score)}};
  if (const double penalty = penalties(trajectory); penalty != 0) rows.push_back({"penalties", number(penalty)});
  if (leaf.parent >= 0) {
    const Leaf& parent = trajectory.tree->leaves[leaf.parent];
    rows.push_back(
        {"branched off", printable_line(parent.trajectory_id) + " after turn " + std::to_string(leaf.branch_turn - 1)});
  }
  if (leaf.answer) rows.push_back({"answer", printable_line(*leaf.answer)});
  for (const auto& [name, value] : leaf.measures) rows.push_back({printable_line(name), number(value)});
  for (const auto& [name, value] : group.info) rows.push_back({printable_line(name), printable_line(value)});
  for (const std::string& answer : group.ground_truth) rows.push_back({"ground truth", printable_line(answer)});
  return text_table(rows) + "\n" + turn_table(trajectory);
}

std::string span_text(const Trajectory& trajectory, const Tokenizer& tokenizer, bool colour) {
  const std::vector<Stretch> stretches = stretches_of(trajectory, tokenizer);
  return colour ? in_colour(stretches) : behind_kinds(stretches);
}

std::vector<std::string> token_columns() {
  std::vector<std::string> names(kColumnFields.begin(), kColumnFields.end());
  names.insert(names.end(), kCreditColumns.begin(), kCreditColumns.end());
  names.insert(names.end(), kExplainedColumns.begin(), kExplainedColumns.end());
  return names;
}

std::string token_table(const Trajectory& trajectory, const Credit* credit, std::string_view line,
                        const Tokenizer* tokenizer, const std::vector<std::string>& columns) {
  std::vector<std::string> header{"token", "turn", "kind", "id"};
  if (tokenizer != nullptr) header.emplace_back("text");
  std::vector<Cells> chosen;
  const Cells nothing(trajectory.num_tokens(), "-");
  const auto listed = parse_json(line, "row").value();  // it was read as a rollout before
  for (const std::string& name : columns.empty() ? token_columns() : columns) {
    const auto column = column_cells(trajectory, credit, listed, name);
    if (!column && columns.empty()) continue;
    header.push_back(name);
    chosen.push_back(column.value_or(nothing));
  }
  Rows rows{header};
  const std::vector<TokenId> tokens = trajectory.tokens();
  const std::vector<SpanKind> kinds = trajectory.kinds();
  for (int k = 0; k < trajectory.num_turns(); ++k)
    for (int at = trajectory.sampled_begin(k); at < trajectory.sampled_end(k); ++at) {
      const auto t = static_cast<std::size_t>(at);
      std::vector<std::string> row{std::to_string(t), std::to_string(k), std::string(name_of(kinds[t])),
                                   std::to_string(tokens[t])};
      if (tokenizer != nullptr) row.push_back("'" + printable_line(tokenizer->bytes_of(tokens[t])) + "'");
      for (const Cells& column : chosen) row.push_back(column[t]);
      rows.push_back(std::move(row));
    }
  return text_table(rows);
}

}  // namespace carnot
