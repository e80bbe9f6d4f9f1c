#include "carnot/worlds/command/grade.h"

#include <algorithm>
#include <optional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/worlds/command/grade_report.h"
#include "carnot/worlds/dataset/scoring.h"

namespace carnot {
namespace {

/// With its beginning in the prompt and without the control tokens at its end: as the environment got it.
std::string response_of(const Trajectory& trajectory, const std::string& prefix, const Tokenizer& tokenizer) {
  const Turn& last = trajectory.turn(trajectory.num_turns() - 1);
  int end = last.sampled_end;
  while (end > last.sampled_begin && tokenizer.is_control(last.tokens[end - 1])) --end;
  return prefix + tokenizer.decode(std::span(last.tokens).subspan(last.sampled_begin, end - last.sampled_begin));
}

std::string prompt_of(const Group& group, const Tokenizer& tokenizer) {
  const Turn& first = group.trees.front().turns.front();
  return tokenizer.decode(std::span(first.tokens).first(first.sampled_begin));
}

/// The task, as far as rollouts know it.
DatasetRow task_of(const Group& group, const Tokenizer& tokenizer) {
  DatasetRow row{.user = prompt_of(group, tokenizer), .answers = group.ground_truth, .info = group.info};
  const auto question = group.info.find("question");
  row.question = question == group.info.end() ? row.user : question->second;
  OrderedJson columns{{"question", row.question}, {"answer", group.ground_truth}};
  if (group.ground_truth.size() == 1) columns["answer"] = group.ground_truth.front();
  for (const auto& [name, value] : group.info) columns[name] = value;
  row.json = columns.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return row;
}

/// Without a response there is nothing to score.
bool is_scored(const Trajectory& trajectory) {
  return trajectory.leaf().valid() && trajectory.turn(trajectory.num_turns() - 1).num_sampled() > 0;
}

/// A reply for each trajectory that is scored, in the order of trajectories(groups).
Result<std::vector<std::optional<Reply>>> replies_to(const std::vector<Trajectory>& all, const GradeRequest& request,
                                                     const Tokenizer& tokenizer) {
  std::vector<std::optional<Reply>> replies(all.size());
  CARNOT_ASSIGN_OR_RETURN(const auto scoring, Scoring::open(request.scoring));
  CARNOT_RETURN_IF_ERROR(scoring->start_python(task_of(*all.front().group, tokenizer)));
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const Group& group = *all[begin].group;
    const DatasetRow row = task_of(group, tokenizer);
    if (scoring->needs_answer() && row.answers.empty())
      return Error{request.name + ": group " + group.uid +
                   " has no right answer (gts), which the scorers compare with"};
    std::vector<Reply> graded;
    for (end = begin; end < all.size() && all[end].group == &group; ++end)
      if (is_scored(all[end]))
        graded.push_back(scoring->grade(row, response_of(all[end], request.scoring.assistant_prefix, tokenizer)));
    if (!graded.empty() && graded.front().unscored) scoring->score_group(row, graded);
    auto next = graded.begin();
    for (std::size_t i = begin; i < end; ++i)
      if (is_scored(all[i])) replies[i] = std::move(*next++);
  }
  return replies;
}

/// The line with the reply's score. What was computed from the old one goes.
std::string graded_line(std::string_view line, const Reply& reply) {
  OrderedJson row = parse_json<OrderedJson>(line, "row").value();  // it was read as a rollout before
  for (const char* computed : {"advantage", "weight", "clip_scale", "value_target", "reward", "dropped", "answer",
                               "ratio", "clip_state", "gradient", "scaled_advantage", "value_loss", "value_gradient"})
    row.erase(computed);
  row["score"] = reply.reward;
  row["success"] = reply.success;
  row["measures"] = reply.measures;
  if (reply.answer) row["answer"] = *reply.answer;
  if (const auto turns = row.find("turns"); turns != row.end() && !turns->empty()) {
    for (OrderedJson& turn : *turns) turn["reward"] = 0.0;
    turns->back()["reward"] = reply.reward;
  }
  // As in a run: a response that was cut and is right nevertheless counts as finished.
  if (reply.success && row.value("outcome", "") == name_of(Outcome::OutOfTokens))
    row["outcome"] = name_of(Outcome::Finished);
  if (reply.outcome == Outcome::InfraFailed) {
    row["outcome"] = name_of(Outcome::InfraFailed);
    row["valid"] = false;
  }
  return row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

Result<GradedRows> grade_rows(const GradeRequest& request, const Tokenizer& tokenizer) {
  CARNOT_ASSIGN_OR_RETURN(const auto old, parse_rollout_rows(request.rows, request.name));
  const std::vector<Trajectory> all = trajectories(old.groups);
  if (all.empty()) return Error{request.name + ": holds no rollouts"};
  for (const Trajectory& trajectory : all)
    for (const TokenId token : trajectory.tokens())
      if (!tokenizer.has(token))
        return Error{request.name + ": token " + std::to_string(token) + " is not in the tokenizer's vocabulary"};
  CARNOT_ASSIGN_OR_RETURN(const auto replies, replies_to(all, request, tokenizer));
  std::vector<std::string> lines;
  for (const std::string_view line : split_lines(request.rows)) lines.emplace_back(line);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string& line = lines[static_cast<std::size_t>(old.line_of_row[i]) - 1];
    if (replies[i]) line = graded_line(line, *replies[i]);
  }
  GradedRows graded;
  for (const std::string& line : lines) graded.rows += line + "\n";
  CARNOT_ASSIGN_OR_RETURN(const auto now, parse_rollout_rows(graded.rows, request.name + ", graded"));
  std::vector<std::string> responses;
  for (const Trajectory& trajectory : all)
    responses.push_back(response_of(trajectory, request.scoring.assistant_prefix, tokenizer));
  graded.report = grade_report(old.groups, now.groups, responses);
  return graded;
}

}  // namespace carnot
