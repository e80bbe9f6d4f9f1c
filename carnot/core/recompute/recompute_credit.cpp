#include "carnot/core/recompute/recompute_credit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/reader.h"
#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

struct PartFields {
  MethodRecipe& recipe;
  std::size_t part;
  void fields(FieldVisitor& visit) { recipe.part_fields(part, visit); }
};

/// Shows a visitor the presets alone.
class PresetsOnly final : public FieldVisitor {
 public:
  explicit PresetsOnly(FieldVisitor& to) : to_(to) {}

  void field(std::string_view name, std::string& value, std::string_view help, const Limits& limits) override {
    if (name == "preset") to_.field(name, value, help, limits);
  }
  void field(std::string_view, bool&, std::string_view) override {}
  void field(std::string_view, std::int64_t&, std::string_view, const Limits&) override {}
  void field(std::string_view, double&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<double>&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<std::string>&, std::string_view, const Limits&) override {}
  void begin_section(std::string_view name, std::string_view help) override { to_.begin_section(name, help); }
  void end_section() override { to_.end_section(); }

 private:
  FieldVisitor& to_;
};

template <class Options>
struct AllFields {
  Options& options;
  void fields(FieldVisitor& visit) { options.fields(visit); }
};

template <class Options>
struct PresetFields {
  Options& options;
  void fields(FieldVisitor& visit) {
    PresetsOnly presets(visit);
    options.fields(presets);
  }
};

/// Reads the options under each name by which they may be given: `method.grpo.epsilon`, `grpo.epsilon`, `epsilon`.
template <template <class> class Shown>
void read_options(ConfigReader& reader, MethodRecipe& recipe) {
  Shown<MethodRecipe> all{recipe};
  reader.read("method", all);
  reader.read("", all);
  for (std::size_t i = 0; i < recipe.parts.size(); ++i) {
    PartFields part{recipe, i};
    Shown<PartFields> shown{part};
    reader.read("", shown);
  }
}

/// An option under each name by which it may be given; without the method's name only where no part reads it.
void refuse_unread(ConfigReader& reader, MethodRecipe& recipe, const UnreadKey& unread) {
  reader.unread("method." + unread.key, unread.why);
  reader.unread(unread.key, unread.why);
  const std::string option = unread.key.substr(unread.key.find('.') + 1);
  if (!recipe.reads(option)) reader.unread(option, unread.why);
}

/// The first sampled token on which `column` was not measured; -1 if there is none.
int first_unmeasured(const Trajectory& trajectory, Column column) {
  const std::vector<bool> sampled = trajectory.sampled();
  const bool has = trajectory.tree->columns.has(column);
  const std::vector<double> values = has ? trajectory.column(column) : std::vector<double>();
  for (std::size_t t = 0; t < sampled.size(); ++t)
    if (sampled[t] && (!has || std::isnan(values[t]))) return static_cast<int>(t);
  return -1;
}

bool has_measured_token(Column column, std::span<const Trajectory> all) {
  return std::ranges::any_of(all, [column](const Trajectory& one) {
    if (!one.leaf().is_included() || !one.tree->columns.has(column)) return false;
    return !std::ranges::all_of(one.column(column), [](double value) { return std::isnan(value); });
  });
}

/// Empty, or which row lacks what `need` names.
std::string missing_column(const ColumnNeed& need, std::span<const Trajectory> all, const RolloutFile& file,
                           const std::string& name) {
  if (need.any_token && has_measured_token(need.column, all)) return "";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int token = all[i].leaf().is_included() ? first_unmeasured(all[i], need.column) : -1;
    if (token < 0) continue;
    const std::string what = all[i].tree->columns.has(need.column)
                                 ? "expected a number on the sampled token " + std::to_string(token) + ", found null"
                                 : "this field is missing";
    return name + ":" + std::to_string(file.line_of_row[i]) + ": " + std::string(name_of(need.column)) + ": " + what +
           "; " + need.reader + " reads it";
  }
  return "";
}

bool has_info_gain(const Trajectory& trajectory) {
  for (int k = 0; k < trajectory.num_turns(); ++k)
    if (trajectory.turn(k).info_gain) return true;
  return false;
}

/// The last turn has no gain, nor has the first without the answer's probability after the prompt alone.
bool has_turn_with_gain(const Trajectory& trajectory, const InfoGainOptions& gain) {
  return trajectory.num_turns() > (gain.query_baseline ? 1 : 2);
}

/// Empty, or the first row with a turn that should have a gain, where no row has any.
std::string missing_gain(const CreditedRows& rows, const std::string& reader, const std::string& name) {
  int first = -1;
  for (std::size_t i = 0; i < rows.all.size(); ++i) {
    if (!rows.all[i].leaf().is_included()) continue;
    if (has_info_gain(rows.all[i])) return "";
    if (first < 0 && has_turn_with_gain(rows.all[i], rows.method.info_gain)) first = rows.file.line_of_row[i];
  }
  if (first < 0) return "";
  return name + ":" + std::to_string(first) +
         ": turns[].info_gain: this field is missing, here and on every other line; " + reader + " reads it";
}

Status check_fields(const CreditedRows& rows, std::span<const CreditRule> chain, const FurtherNeeds& further,
                    const std::string& name) {
  std::vector<ColumnNeed> needs;
  for (const CreditRule& rule : chain)
    for (const Column column : rule.columns)
      needs.push_back({.column = column, .reader = rule.name, .any_token = rule.any_token});
  if (further)
    for (ColumnNeed& need : further(rows.method)) needs.push_back(std::move(need));

  std::vector<std::string> problems;
  std::set<Column> seen;
  for (const ColumnNeed& need : needs) {
    if (!seen.insert(need.column).second) continue;
    std::string problem = missing_column(need, rows.all, rows.file, name);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  for (const CreditRule& rule : chain) {
    if (!rule.info_gain) continue;
    std::string problem = missing_gain(rows, rule.name, name);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

OrderedJson on_sampled(const std::vector<double>& values, const std::vector<bool>& sampled) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t t = 0; t < values.size(); ++t)
    list.push_back(sampled[t] && std::isfinite(values[t]) ? OrderedJson(values[t]) : OrderedJson());
  return list;
}

OrderedJson list_of(const std::vector<double>& numbers) {
  OrderedJson list = OrderedJson::array();
  for (const double number : numbers) list.push_back(std::isfinite(number) ? OrderedJson(number) : OrderedJson());
  return list;
}
OrderedJson list_of(const std::vector<std::string>& words) {
  OrderedJson list = OrderedJson::array();
  for (const std::string& word : words) list.push_back(word.empty() ? OrderedJson() : OrderedJson(word));
  return list;
}

std::string with_credit(std::string_view line, const Trajectory& trajectory, const Credit& credit,
                        const TokenLists& further) {
  OrderedJson row = parse_json<OrderedJson>(line, "row").value();  // it was read as a rollout before
  const std::vector<bool> sampled = trajectory.sampled();
  row["advantage"] = on_sampled(credit.advantage, sampled);
  row["weight"] = on_sampled(credit.weight, sampled);
  row["clip_scale"] = on_sampled(credit.clip_scale, sampled);
  row["value_target"] = on_sampled(credit.value_target, sampled);
  for (const auto& [name, values] : further)
    row[name] = std::visit([](const auto& list) { return list_of(list); }, values);
  row.erase("dropped");
  if (trajectory.leaf().dropped) row["dropped"] = true;
  return row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

/// What an earlier filter dropped takes part again, since this method's filter decides; but for what was not measured
/// because it was dropped.
void restore_dropped(std::vector<Group>& groups, std::span<const CreditRule> chain) {
  for (const Trajectory& one : trajectories(groups)) {
    Leaf& leaf = groups[static_cast<std::size_t>(one.group_index)]
                     .trees[static_cast<std::size_t>(one.tree_index)]
                     .leaves[static_cast<std::size_t>(one.leaf_index)];
    if (!leaf.dropped) continue;
    leaf.dropped = std::ranges::any_of(chain, [&](const CreditRule& rule) {
      return !rule.any_token &&
             std::ranges::any_of(rule.columns, [&](Column column) { return first_unmeasured(one, column) >= 0; });
    });
  }
}

void filter_each_step(const GroupFilter& filter, std::vector<Group>& groups) {
  std::map<std::int64_t, std::vector<std::size_t>> steps;
  for (std::size_t g = 0; g < groups.size(); ++g) steps[groups[g].step].push_back(g);
  for (const auto& [step, numbers] : steps) {
    std::vector<Group> batch;
    for (const std::size_t g : numbers) batch.push_back(std::move(groups[g]));
    apply_filter(filter, batch);
    for (std::size_t n = 0; n < numbers.size(); ++n) groups[numbers[n]] = std::move(batch[n]);
  }
}

CreditTable credit_each_step(std::span<const CreditRule> chain, std::span<const Trajectory> all) {
  CreditTable table = fresh_credit(all);
  for (const std::vector<int>& members : members_by_step(all)) {
    std::vector<Trajectory> batch;
    for (const int i : members) batch.push_back(all[i]);
    CreditTable credit = run_credit(chain, batch);
    for (std::size_t n = 0; n < members.size(); ++n) table[members[n]] = std::move(credit[n]);
  }
  return table;
}

std::vector<CreditRule> chain_of(const Method& method) { return credit_chain(method, method.objective.kl_in_reward); }

/// The methods of a request with their options, and what they compose to.
struct ReadComposition {
  MethodRecipe recipe{};
  Method method{};
};

Result<ReadComposition> read_composition(const CreditRequest& request) {
  const auto document =
      Document::parse("", "command line", {.overrides = request.overrides, .aliases = verl_aliases()});
  if (!document) return document.error();
  CARNOT_ASSIGN_OR_RETURN(auto recipe, parse_method(request.method));
  ConfigReader reader(*document);
  // A preset sets defaults, so it comes before every option, whatever their names.
  read_options<PresetFields>(reader, recipe);
  read_options<AllFields>(reader, recipe);
  Method method = build_method(recipe, [&](Method& built) {
    reader.read("filter", built.filter);
    reader.read("objective", built.objective);
  });
  for (const SettingProblem& problem : method.problems) reader.refuse(problem.key, problem.why);
  for (const UnreadKey& unread : recipe.unread_keys()) refuse_unread(reader, recipe, unread);
  for (const UnreadKey& unread : method.filter.unread_keys()) reader.unread("filter." + unread.key, unread.why);
  CARNOT_RETURN_IF_ERROR(reader.finish());
  return ReadComposition{.recipe = std::move(recipe), .method = std::move(method)};
}

/// Puts what was recorded of the trajectories `members` in its place among those of all.
void merge_record(RuleRecord& all, RuleRecord part, std::span<const int> members, std::size_t trajectories) {
  for (std::size_t n = 0; n < members.size(); ++n) all.after[members[n]] = std::move(part.after[n]);
  for (RuleReading& reading : part.readings) {
    auto found = std::ranges::find(all.readings, reading.name, &RuleReading::name);
    if (found == all.readings.end())
      found =
          all.readings.insert(found, {.name = reading.name, .values = std::vector<std::vector<double>>(trajectories)});
    for (std::size_t n = 0; n < members.size(); ++n) found->values[members[n]] = std::move(reading.values[n]);
  }
}

}  // namespace

Result<Method> read_method(const CreditRequest& request) {
  CARNOT_ASSIGN_OR_RETURN(auto read, read_composition(request));
  return std::move(read.method);
}

Result<std::vector<FieldRow>> method_settings(const CreditRequest& request) {
  CARNOT_ASSIGN_OR_RETURN(auto read, read_composition(request));
  FieldTable table;
  table.add("", read.recipe);
  table.add("objective", read.method.objective);
  return table.rows();
}

Result<CreditedRows> credit_rows(const CreditRequest& request, const FurtherNeeds& further) {
  CARNOT_ASSIGN_OR_RETURN(auto text, read_maybe_compressed(request.file));
  return credit_rows_of(request, std::move(text), further);
}

Result<CreditedRows> credit_rows_of(const CreditRequest& request, std::string text, const FurtherNeeds& further) {
  const std::string name = request.file.string();
  CARNOT_ASSIGN_OR_RETURN(auto method, read_method(request));
  CARNOT_ASSIGN_OR_RETURN(auto file, parse_rollout_rows(text, name));

  CreditedRows rows;
  rows.method = std::move(method);
  rows.text = std::move(text);
  rows.file = std::move(file);
  const std::vector<CreditRule> chain = chain_of(rows.method);
  restore_dropped(rows.file.groups, chain);
  filter_each_step(rows.method.filter, rows.file.groups);
  rows.all = trajectories(rows.file.groups);
  CARNOT_RETURN_IF_ERROR(check_fields(rows, chain, further, name));
  rows.credit = credit_each_step(chain, rows.all);
  return rows;
}

Result<std::vector<RuleRecord>> record_rows(const CreditedRows& rows, const std::string& name) {
  const std::vector<CreditRule> chain = chain_of(rows.method);
  CARNOT_RETURN_IF_ERROR(check_fields(rows, chain, {}, name));
  std::vector<RuleRecord> records;
  for (const CreditRule& rule : chain)
    records.push_back({.rule = rule.name, .kind = rule.kind, .after = fresh_credit(rows.all)});
  for (const std::vector<int>& members : members_by_step(rows.all)) {
    std::vector<Trajectory> batch;
    for (const int i : members) batch.push_back(rows.all[i]);
    std::vector<RuleRecord> of_step = record_credit(chain, batch);
    for (std::size_t r = 0; r < records.size(); ++r)
      merge_record(records[r], std::move(of_step[r]), members, rows.all.size());
  }
  return records;
}

std::string written_rows(const CreditedRows& rows, std::span<const TokenLists> further) {
  const std::vector<std::string_view> lines = split_lines(rows.text);
  std::vector<std::string> by_line(lines.size());
  for (std::size_t i = 0; i < rows.all.size(); ++i) {
    const auto line = static_cast<std::size_t>(rows.file.line_of_row[i]) - 1;
    by_line[line] = with_credit(lines[line], rows.all[i], rows.credit[i], further.empty() ? TokenLists() : further[i]);
  }
  std::string out;
  for (const std::string& row : by_line) out += row;
  return out;
}

}  // namespace carnot
