#include <algorithm>
#include <cstdlib>
#include <optional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/run_files.h"
#include "carnot/core/cli/terminal_text.h"
#include "carnot/core/cli/trajectory_view.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

struct InspectRequest {
  fs::path path{};                     ///< a rollouts file, or a run folder: its latest one
  int row = 0;                         ///< line of the trajectory to show, from 1; 0: none chosen
  std::string trajectory{};            ///< its traj_id; empty: none chosen
  fs::path tokenizer{};                ///< empty: the run folder's
  bool tokens = false;                 ///< with a table of the sampled tokens
  std::vector<std::string> columns{};  ///< of that table; empty: all there are
  bool colour = true;
};

Status check_columns(const std::vector<std::string>& columns) {
  const std::vector<std::string> known = token_columns();
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  std::vector<std::string> problems;
  for (const std::string& name : columns)
    if (std::find(known.begin(), known.end(), name) == known.end())
      problems.push_back("--columns: '" + name + "' is unknown; expected some of " + list);
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

/// Number of the chosen trajectory.
Result<std::size_t> choose(const InspectRequest& request, const fs::path& path, const RolloutFile& file,
                           const std::vector<Trajectory>& all) {
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((request.row == 0 || request.row == file.line_of_row[i]) &&
        (request.trajectory.empty() || request.trajectory == all[i].leaf().trajectory_id))
      matches.push_back(i);
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    const std::string row = request.row == 0 ? "" : " on line " + std::to_string(request.row);
    const std::string name = request.trajectory.empty() ? "" : " '" + request.trajectory + "'";
    return Error{path.string() + ": there is no trajectory" + name + row + "; without --row and --traj all are listed"};
  }
  std::string lines;
  for (const std::size_t i : matches) lines += (lines.empty() ? "" : ", ") + std::to_string(file.line_of_row[i]);
  return Error{path.string() + ": the trajectory '" + request.trajectory + "' is on the lines " + lines +
               "; choose one with --row"};
}

/// What the row itself says that its text is.
std::string text_of_row(std::string_view line) {
  const auto row = parse_json(line, "row").value();  // it was read as a rollout before
  const auto field = [&](const char* name) {
    const auto found = row.find(name);
    return found != row.end() && found->is_string() ? printable(found->get<std::string>()) : std::string();
  };
  return "input:\n" + field("input") + "\n\noutput:\n" + field("output") + "\n";
}

/// A list of the trajectories where none is chosen; otherwise the chosen one. Without a tokenizer its text is the row's
/// `input` and `output`, without spans.
Result<std::string> inspect(const InspectRequest& request) {
  CARNOT_RETURN_IF_ERROR(check_columns(request.columns));
  CARNOT_ASSIGN_OR_RETURN(const auto steps, rollouts_at(request.path));
  const fs::path path = steps.back().path;
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(path));
  CARNOT_ASSIGN_OR_RETURN(const auto file, parse_rollout_rows(text, path.string()));
  if (request.row == 0 && request.trajectory.empty()) return trajectory_list(file);

  const std::vector<Trajectory> all = trajectories(file.groups);
  CARNOT_ASSIGN_OR_RETURN(const auto chosen, choose(request, path, file, all));
  const Trajectory& trajectory = all[chosen];
  const Credit* credit = file.credit.empty() ? nullptr : &file.credit[chosen];

  std::optional<Tokenizer> tokenizer;
  if (const fs::path from = request.tokenizer.empty() ? tokenizer_beside(path) : request.tokenizer; !from.empty()) {
    CARNOT_ASSIGN_OR_RETURN(auto loaded, Tokenizer::load(from));
    CARNOT_RETURN_IF_ERROR(check_tokens(trajectory, loaded, from));
    tokenizer = std::move(loaded);
  }
  const std::string_view line = split_lines(text)[static_cast<std::size_t>(file.line_of_row[chosen]) - 1];
  std::string out = trajectory_facts(trajectory) + "\n";
  out += tokenizer ? span_text(trajectory, *tokenizer, request.colour) : text_of_row(line);
  if (request.tokens || !request.columns.empty())
    out += "\n" + token_table(trajectory, credit, line, tokenizer ? &*tokenizer : nullptr, request.columns);
  return out;
}

class InspectCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("PATH", request_.path, "rollouts/step_N.jsonl, or a run folder: its latest", Presence::Required);
    take.count("--row", "N", request_.row, 1, "show the trajectory on this line");
    take.text("--traj", "ID", request_.trajectory, "show the trajectory of this traj_id");
    take.text("--tokenizer", "PATH", request_.tokenizer, "tokenizer.json or its folder; default: the run's");
    take.flag("--tokens", request_.tokens, "with a table of the sampled tokens");
    take.list("--columns", "NAMES", request_.columns, "of that table, separated by commas; default: all in the file");
    take.flag_off("--no-color", request_.colour, "brackets instead of colours, as when the output is no terminal");
  }

  Exit run(const Console& console) override {
    request_.colour = request_.colour && console.terminal && std::getenv("NO_COLOR") == nullptr;
    return print(inspect(request_), console);
  }

 private:
  InspectRequest request_;
};

}  // namespace

CommandEntry inspect_entry() {
  return {.name = "inspect",
          .arguments = "PATH",
          .summary = "show trajectories with their spans and numbers",
          .example = "runs/quickstart --row 13 --tokens",
          .make = make_command<InspectCommand>};
}

}  // namespace carnot
