#include "carnot/view/command/viewed_step.h"

#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/train/explanation.h"

namespace carnot {
namespace {

bool is_measured(const Trajectory& trajectory, Column column) {
  if (!trajectory.tree->columns.has(column)) return false;
  const std::vector<double> values = trajectory.column(column);
  const std::vector<bool> sampled = trajectory.sampled();
  for (std::size_t t = 0; t < values.size(); ++t)
    if (sampled[t] && std::isnan(values[t])) return false;
  return true;
}

TokenStates states_of(const TokenExplanation& tokens, const ObjectiveOptions& objective) {
  TokenStates states{.ratio = tokens.ratio,
                     .gradient = tokens.gradient,
                     .unit_share = tokens.unit_share,
                     .scaled_advantage = tokens.scaled_advantage};
  if (objective.kl_coefficient > 0)
    for (std::size_t t = 0; t < tokens.gradient.size(); ++t)
      states.kl_gradient.push_back(tokens.gradient[t] - tokens.policy_gradient[t]);
  for (std::size_t t = 0; t < tokens.ratio.size(); ++t)
    states.clip_state.emplace_back(std::isnan(tokens.ratio[t]) ? "" : name_of(tokens.clip_state[t]));
  return states;
}

/// What the objective did to each token; nothing if rows lack what it reads.
std::vector<TokenStates> states_by(const ObjectiveOptions& objective, const CreditedRows& rows) {
  if (rows.credit.empty()) return {};
  for (const Column column : explained_columns(objective))
    for (const Trajectory& trajectory : rows.all)
      if (trajectory.leaf().is_included() && !is_measured(trajectory, column)) return {};
  const auto explanation = explain_steps(objective, rows.all, rows.credit);
  if (!explanation) return {};
  std::vector<TokenStates> states;
  for (const TokenExplanation& tokens : explanation->trajectories) states.push_back(states_of(tokens, objective));
  return states;
}

/// The states that rows of `carnot credit --explain` hold; empty if none does.
std::vector<TokenStates> states_in_rows(const CreditedRows& rows) {
  const std::vector<std::string_view> lines = split_lines(rows.text);
  std::vector<TokenStates> states;
  bool any = false;
  for (std::size_t i = 0; i < rows.all.size(); ++i) {
    const auto line = static_cast<std::size_t>(rows.file.line_of_row[i]) - 1;
    states.push_back(states_in_row(lines[line], static_cast<std::size_t>(rows.all[i].num_tokens())));
    any = any || !states.back().clip_state.empty();
  }
  return any ? states : std::vector<TokenStates>();
}

/// Whether both give the sampled tokens the same credit, up to rounding.
bool agree(std::span<const Trajectory> all, const CreditTable& a, const CreditTable& b) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].leaf().is_included()) continue;
    const std::vector<bool> sampled = all[i].sampled();
    const auto differ = [](double x, double y) { return !(std::fabs(x - y) <= 1e-9 * (1 + std::fabs(y))); };
    for (std::size_t t = 0; t < sampled.size(); ++t)
      if (sampled[t] && (differ(a[i].advantage[t], b[i].advantage[t]) || differ(a[i].weight[t], b[i].weight[t])))
        return false;
  }
  return true;
}

void add_chain(ViewedStep& step, ViewedMethod& method, const std::string& name) {
  if (step.rows.credit.empty()) return;
  auto chain = record_rows(step.rows, name);
  if (!chain) {
    step.notes.push_back("How credit came about is not shown: " + chain.error().message);
  } else if (!agree(step.rows.all, chain->back().after, step.rows.credit)) {
    step.notes.push_back("How credit came about is not shown: the recipe gives other credit than " + name +
                         " holds, as with a coefficient that adapts");
  } else {
    method.chain = std::move(chain).value();
  }
}

/// The credit that the rows hold.
ViewedMethod recorded(ViewedStep& step, const PageMethod& wanted, const std::string& name) {
  ViewedMethod method{.credit = step.rows.credit, .states = states_in_rows(step.rows)};
  if (!wanted.method) return method;
  step.rows.method = *wanted.method;
  if (method.states.empty()) method.states = states_by(step.rows.method.objective, step.rows);
  add_chain(step, method, name);
  return method;
}

/// What `carnot credit --explain` computes from the rows. Its error names the fields that they lack.
Result<ViewedMethod> computed(const ViewedStep& step, const PageMethod& wanted, const std::filesystem::path& path) {
  const CreditRequest request{.file = path, .method = wanted.composition, .overrides = wanted.settings};
  CARNOT_ASSIGN_OR_RETURN(const auto rows, credit_rows_of(request, step.rows.text));
  ViewedMethod method{.credit = rows.credit, .states = states_by(rows.method.objective, rows)};
  CARNOT_ASSIGN_OR_RETURN(method.chain, record_rows(rows, path.string()));
  for (const Trajectory& trajectory : rows.all) method.included.push_back(trajectory.leaf().is_included());
  return method;
}

}  // namespace

Result<ViewedStep> view_step(const std::filesystem::path& path, const std::vector<PageMethod>& methods) {
  ViewedStep step;
  CARNOT_ASSIGN_OR_RETURN(step.rows.text, read_maybe_compressed(path));
  CARNOT_ASSIGN_OR_RETURN(step.rows.file, parse_rollout_rows(step.rows.text, path.string()));
  step.rows.all = trajectories(step.rows.file.groups);
  step.rows.credit = step.rows.file.credit;
  for (const PageMethod& wanted : methods) {
    step.missing.emplace_back();
    if (wanted.composition.empty()) {
      step.methods.push_back(recorded(step, wanted, path.string()));
      continue;
    }
    auto method = computed(step, wanted, path);
    if (!method) step.missing.back() = method.error().message;
    step.methods.push_back(method ? std::move(method).value() : ViewedMethod());
  }
  return step;
}

}  // namespace carnot
