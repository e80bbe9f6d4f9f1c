#include "carnot/core/commands/explain.h"

#include <cmath>

#include "carnot/core/train/explanation.h"

namespace carnot {
namespace {

std::vector<ColumnNeed> explanation_needs(const Method& method) {
  std::vector<ColumnNeed> needs;
  for (const Column column : explained_columns(method.objective))
    needs.push_back({.column = column, .reader = "--explain"});
  return needs;
}

TokenLists token_lists(const TokenExplanation& tokens) {
  std::vector<std::string> states(tokens.clip_state.size());
  for (std::size_t t = 0; t < states.size(); ++t)
    if (!std::isnan(tokens.ratio[t])) states[t] = name_of(tokens.clip_state[t]);
  TokenLists lists{{"ratio", tokens.ratio}, {"clip_state", states}, {"gradient", tokens.gradient}};
  if (!tokens.scaled_advantage.empty()) lists["scaled_advantage"] = tokens.scaled_advantage;
  if (tokens.value_gradient.empty()) return lists;
  lists["value_loss"] = tokens.value_loss;
  lists["value_gradient"] = tokens.value_gradient;
  return lists;
}

Result<ExplainedRows> explained(const CreditedRows& rows) {
  CARNOT_ASSIGN_OR_RETURN(const auto explanation, explain_steps(rows.method.objective, rows.all, rows.credit));
  ExplainedRows out{.excluded = explanation.excluded};
  for (const TokenExplanation& tokens : explanation.trajectories) out.lists.push_back(token_lists(tokens));
  return out;
}

}  // namespace

CreditExplainer credit_explainer() { return {.needs = explanation_needs, .explain = explained}; }

}  // namespace carnot
