// The credit of methods, and filters of groups.
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <map>

#include "carnot/core/base/json.h"
#include "carnot/core/credit/filter.h"
#include "carnot/core/recompute/recompute_credit.h"
#include "values.h"

namespace carnot::python {
namespace {

constexpr const char* kCreditHelp =
    R"(Credit that `method` ("grpo", "grpo + aem") gives to each token of `rows`: trajectories as dicts with the fields
of docs/trajectory_format.md, of which uid, traj_id, token_ids, loss_mask and score are required; lists may be arrays.
`options` has the method's options as in a recipe's `method` section ("aem.lambda"), and objective.* and filter.* keys.
Rows of different `step` are separate batches. The result has the order of `rows` and equals that of `carnot credit`.)";

constexpr const char* kKeepHelp =
    R"(Which groups a filter keeps. `scores` has the scores of each group's trajectories. `filter` is one of filters(),
`keep_share` the share of groups that keep_most_varied and keep_least_varied keep.)";

/// NaN where the token was not sampled or the number is not finite.
std::vector<double> on_sampled(std::vector<double> values, const std::vector<bool>& sampled) {
  for (std::size_t t = 0; t < values.size(); ++t)
    if (!sampled[t] || !std::isfinite(values[t])) values[t] = std::numeric_limits<double>::quiet_NaN();
  return values;
}

struct TokenCredit {
  Credit credit{};
  bool dropped = false;
};

std::string lines_of(const nb::sequence& rows) {
  std::string text;
  std::size_t i = 0;
  for (const nb::handle row : nb::iter(rows)) text += json_line(json_of(row, "rows:" + std::to_string(++i))) + "\n";
  return text;
}

std::vector<TokenCredit> in_order_of_rows(CreditedRows& rows) {
  std::vector<TokenCredit> result(rows.all.size());
  for (std::size_t i = 0; i < rows.all.size(); ++i) {
    const std::vector<bool> sampled = rows.all[i].sampled();
    TokenCredit& one = result[static_cast<std::size_t>(rows.file.line_of_row[i]) - 1];
    one.dropped = rows.all[i].leaf().dropped;
    one.credit.advantage = on_sampled(std::move(rows.credit[i].advantage), sampled);
    one.credit.weight = on_sampled(std::move(rows.credit[i].weight), sampled);
    one.credit.clip_scale = on_sampled(std::move(rows.credit[i].clip_scale), sampled);
    one.credit.value_target = on_sampled(std::move(rows.credit[i].value_target), sampled);
  }
  return result;
}

std::vector<TokenCredit> credit(const nb::sequence& rows, const std::string& method, const nb::dict& options) {
  const CreditRequest request{.file = "rows", .method = method, .overrides = settings_of(options)};
  std::string text = lines_of(rows);
  std::vector<std::string> warnings;
  auto result = [&]() -> Result<std::vector<TokenCredit>> {
    const nb::gil_scoped_release others_may_run;
    CARNOT_ASSIGN_OR_RETURN(auto credited, credit_rows_of(request, std::move(text)));
    warnings = credited.method.warnings;
    return in_order_of_rows(credited);
  }();
  for (const std::string& warning : warnings) nb::module_::import_("warnings").attr("warn")(warning);
  return value_or_raise(std::move(result));
}

Group group_of(const std::vector<double>& scores) {
  Group group;
  for (const double score : scores) {
    Tree& tree = group.trees.emplace_back();
    tree.turns.emplace_back();
    tree.leaves.push_back({.turn = 0, .score = score});
  }
  return group;
}

std::vector<bool> keep_groups(const std::vector<NumbersIn>& scores, const std::string& filter, double keep_share) {
  std::string names;
  bool known = false;
  for (const FilterEntry& entry : filters()) {
    known = known || entry.name == filter;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  if (!known) throw nb::value_error(("filter: expected one of " + names + ", found " + filter).c_str());
  if (!(keep_share > 0 && keep_share <= 1))
    throw nb::value_error("keep_share: expected a number above 0 and at most 1");
  std::vector<Group> groups;
  for (const NumbersIn& of_group : scores) groups.push_back(group_of(vector_of(of_group)));
  return GroupFilter{.name = filter, .keep_share = keep_share}.keep(groups);
}

/// The names and summaries of a table.
template <class Table>
std::map<std::string, std::string> summaries(const Table& table) {
  std::map<std::string, std::string> result;
  for (const auto& entry : table) result.emplace(entry.name, entry.summary);
  return result;
}

template <std::vector<double> Credit::* column>
Numbers column_of(TokenCredit& credit) {
  return array_over(credit.credit.*column, nb::find(credit));
}

}  // namespace

void bind_credit(nb::module_& module) {
  nb::class_<TokenCredit>(module, "TokenCredit",
                          "Credit of one trajectory, one number per token; NaN where the policy did not sample it.")
      .def_prop_ro("advantage", column_of<&Credit::advantage>)
      .def_prop_ro("weight", column_of<&Credit::weight>,
                   "factor of the token's loss and of its share of the denominator")
      .def_prop_ro("clip_scale", column_of<&Credit::clip_scale>, "factor of the width of the clip range")
      .def_prop_ro("value_target", column_of<&Credit::value_target>, "what a critic learns; NaN without one")
      .def_ro("dropped", &TokenCredit::dropped, "a filter takes the trajectory out of the update");
  module.def("credit", credit, nb::arg("rows"), nb::arg("method"), nb::arg("options") = nb::dict(), kCreditHelp,
             nb::sig("def credit(rows: collections.abc.Sequence[dict[str, object]], method: str, "
                     "options: dict[str, object] = {}) -> list[TokenCredit]"));
  module.def("methods", [] { return summaries(methods()); }, "Every method, with what it does in one line.");
  module.def("filters", [] { return summaries(filters()); }, "Every filter of groups, with what it does in one line.");
  module.def("keep_groups", keep_groups, nb::arg("scores"), nb::arg("filter"), nb::arg("keep_share") = 0.25, kKeepHelp);
}

}  // namespace carnot::python
