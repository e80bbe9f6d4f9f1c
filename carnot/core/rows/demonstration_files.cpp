#include "carnot/core/rows/demonstration_files.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/rows/row_file.h"
#include "carnot/core/subprocess/python_folder.h"

namespace carnot {
namespace {

/// Leaves out and counts what is too long.
class LengthLimit {
 public:
  explicit LengthLimit(int max_tokens) : max_tokens_(max_tokens) {}

  bool admits(const Demonstration& one, const std::string& where) {
    ++seen_;
    if (std::ssize(one.tokens) <= max_tokens_) return true;
    if (++left_out_ == 1) first_ = where + " has " + std::to_string(one.tokens.size());
    return false;
  }

  void report(const std::string& name) const {
    if (left_out_ > 0)
      log_warning("sft.source: " + name + ": " + std::to_string(left_out_) + " of " + std::to_string(seen_) +
                  " demonstrations are longer than " + std::to_string(max_tokens_) +
                  " tokens (rollout.max_context_tokens) and left out; " + first_);
  }

 private:
  std::int64_t max_tokens_, seen_ = 0, left_out_ = 0;
  std::string first_{};
};

Result<std::vector<DemonstratedTask>> parse_conversations(std::string_view text, const std::string& name,
                                                          const ChatFamily& chat, int max_tokens) {
  std::vector<DemonstratedTask> tasks;
  LengthLimit limit(max_tokens);
  CARNOT_RETURN_IF_ERROR(
      read_rows(text, name, [&](const OrderedJson& row, const std::string& where, std::vector<std::string>& problems) {
        const auto conversation = read_conversation(row, where, problems);
        if (!conversation) return;
        auto rendered = render_demonstration(chat, *conversation);
        if (!rendered)
          problems.push_back(where + rendered.error().message);
        else if (limit.admits(*rendered, where.substr(0, where.size() - 2)))
          tasks.push_back({std::move(rendered).value()});
      }));
  limit.report(name);
  return tasks;
}

/// A row's own text against the text of its tokens here.
Status check_tokenizer(const Json& row, const Trajectory& trajectory, const Tokenizer& tokenizer) {
  const std::vector<TokenId> tokens = trajectory.tokens();
  for (const TokenId token : tokens)
    if (!tokenizer.has(token)) return Error{"the tokenizer has no token " + std::to_string(token)};
  const auto input = row.find("input"), count = row.find("prompt_tokens");
  if (input == row.end() || !input->is_string() || count == row.end() || !count->is_number_unsigned()) return Done{};
  const auto text = input->get<std::string>();
  const std::size_t prompt = std::min(count->get<std::size_t>(), tokens.size());
  const std::string here = tokenizer.decode(std::span(tokens).first(prompt));
  const bool was_changed = text.find("\xEF\xBF\xBD") != std::string::npos;  // U+FFFD: bytes that are no UTF-8
  if (was_changed || here == text) return Done{};
  return Error{"input is '" + text.substr(0, 60) + "', and its token ids are '" + here.substr(0, 60) + "'"};
}

Result<std::vector<DemonstratedTask>> parse_trajectories(std::string_view text, const std::string& name,
                                                         const Tokenizer& tokenizer, int max_tokens) {
  CARNOT_ASSIGN_OR_RETURN(const auto file, parse_rollout_rows(text, name));
  const std::vector<std::string_view> lines = split_lines(text);
  const std::vector<Trajectory> all = trajectories(file.groups);
  std::vector<DemonstratedTask> tasks(file.groups.size());
  std::vector<std::string> problems;
  LengthLimit limit(max_tokens);
  std::int64_t succeeded = 0;
  for (std::size_t i = 0; i < all.size() && problems.size() < kMaxProblems; ++i) {
    const Leaf& leaf = all[i].leaf();
    if (!leaf.valid() || !leaf.success) continue;
    ++succeeded;
    const int line = file.line_of_row[i];
    const std::string where = name + ":" + std::to_string(line);
    const Json row = parse_json_object(lines[static_cast<std::size_t>(line) - 1], where).value();
    if (const Status same = check_tokenizer(row, all[i], tokenizer); !same)
      problems.push_back(where + ": " + same.error().message +
                         "; expected a trajectory of a model with this tokenizer");
    for (Demonstration& one : demonstrations_of(all[i]))
      if (limit.admits(one, where)) tasks[static_cast<std::size_t>(all[i].group_index)].push_back(std::move(one));
  }
  if (!problems.empty()) return join_errors(problems);
  log_info("sft.source: " + name + ": " + std::to_string(succeeded) + " of " + std::to_string(all.size()) +
           " trajectories succeeded; those are the demonstrations");
  limit.report(name);
  std::erase_if(tasks, [](const DemonstratedTask& task) { return task.empty(); });
  return tasks;
}

bool holds_trajectories(std::string_view text) {
  text = trim(text);
  const auto row = parse_json(text.substr(0, text.find('\n')), "");
  return row && row->is_object() && row->contains("token_ids");
}

Result<std::vector<DemonstratedTask>> read_file_of_demonstrations(const std::string& path, const ChatFamily& chat,
                                                                  int max_tokens) {
  const auto folder = python_folder();
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_row_text(path, folder ? own_python(*folder) : "python3"));
  return parse_demonstrations(text, path, chat, max_tokens);
}

}  // namespace

Result<std::vector<DemonstratedTask>> parse_demonstrations(std::string_view text, const std::string& name,
                                                           const ChatFamily& chat, int max_tokens) {
  return holds_trajectories(text) ? parse_trajectories(text, name, chat.tokenizer(), max_tokens)
                                  : parse_conversations(text, name, chat, max_tokens);
}

Result<SplitDemonstrations> read_demonstrations(const DemonstrationFiles& files, const ChatFamily& chat) {
  std::vector<DemonstratedTask> tasks;
  std::vector<std::string> problems;
  for (const std::string& path : files.paths) {
    auto some = read_file_of_demonstrations(path, chat, files.max_tokens);
    if (!some)
      problems.push_back("sft.source: " + some.error().message);
    else
      std::ranges::move(*some, std::back_inserter(tasks));
  }
  if (!problems.empty()) return join_errors(problems);
  if (tasks.empty())
    return Error{"sft.source: " + join(files.paths) + ": no demonstration is left; expected one of at most " +
                 std::to_string(files.max_tokens) + " tokens (rollout.max_context_tokens), of trajectories one that " +
                 "succeeded"};
  std::vector<std::size_t> order(tasks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  RandomStream(derive_seed(files.seed, "held_out_demonstrations", 0)).shuffle(order);
  const auto share = static_cast<std::size_t>(std::ceil(files.held_out_share * static_cast<double>(tasks.size())));
  std::vector<bool> is_held_out(tasks.size());
  for (std::size_t i = 0; i < std::min(share, tasks.size() - 1); ++i) is_held_out[order[i]] = true;
  SplitDemonstrations split;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    std::ranges::move(tasks[i], std::back_inserter(is_held_out[i] ? split.held_out : split.train));
  return split;
}

}  // namespace carnot
