#include "carnot/core/rank/launcher.h"

#include <unistd.h>

#include <charconv>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace carnot {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxPort = 65535;
constexpr int kUsualPort = 29500;  // of PyTorch's launchers

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Reads variables and collects what is wrong with them.
class VariableReader {
 public:
  explicit VariableReader(const Variables& variables) : variables_(variables) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }

  std::string text(const std::string& name) const {
    const std::string* value = find(name);
    return value ? *value : std::string();
  }

  /// `otherwise` where the variable is not set.
  int number(const std::string& name, int least, int most, int otherwise) {
    const std::string* value = find(name);
    if (!value) return otherwise;
    const auto number = whole_number(*value);
    if (number && *number >= least && *number <= most) return static_cast<int>(*number);
    problem(name + ": " + *value + "; expected an integer from " + std::to_string(least) + " to " +
            std::to_string(most));
    return otherwise;
  }

  int required_number(const std::string& name, int least, int most, const std::string& other) {
    if (!has(name)) problem(name + ": is not set, though " + other + " is; expected both or neither");
    return number(name, least, most, least);
  }

  void problem(const std::string& text) { problems_.push_back(text); }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  /// A variable that is set to nothing counts as not set.
  const std::string* find(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() || found->second.empty() ? nullptr : &found->second;
  }

  const Variables& variables_;
  std::vector<std::string> problems_{};
};

RankSetting of_torchrun(VariableReader& reader) {
  RankSetting setting;
  setting.size = reader.required_number("WORLD_SIZE", 1, kMaxRanks, "RANK");
  setting.rank = reader.required_number("RANK", 0, kMaxRanks - 1, "WORLD_SIZE");
  setting.local_size = reader.number("LOCAL_WORLD_SIZE", 1, kMaxRanks, 1);
  setting.local_rank = reader.number("LOCAL_RANK", 0, kMaxRanks - 1, 0);
  setting.launcher_has_store = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  setting.group_name = reader.text("TORCHELASTIC_RUN_ID") + "/" + reader.text("TORCHELASTIC_RESTART_COUNT");
  if (reader.has("LOCAL_RANK") && !reader.has("LOCAL_WORLD_SIZE")) setting.local_size = setting.local_rank + 1;
  return setting;
}

RankSetting of_slurm(VariableReader& reader) {
  RankSetting setting;
  setting.size = reader.number("SLURM_STEP_NUM_TASKS", 1, kMaxRanks, 1);
  setting.rank = reader.required_number("SLURM_PROCID", 0, kMaxRanks - 1, "SLURM_STEP_NUM_TASKS");
  setting.local_rank = reader.number("SLURM_LOCALID", 0, kMaxRanks - 1, 0);
  setting.local_size = setting.local_rank + 1;
  if (reader.has("SLURM_STEP_TASKS_PER_NODE")) {
    const int node = reader.number("SLURM_NODEID", 0, kMaxRanks - 1, 0);
    const auto count = count_of_node(reader.text("SLURM_STEP_TASKS_PER_NODE"), node);
    if (count)
      setting.local_size = *count;
    else
      reader.problem("SLURM_STEP_TASKS_PER_NODE: " + count.error().message);
  }
  const int job = reader.number("SLURM_JOB_ID", 0, std::numeric_limits<int>::max(), 0);
  const int step = reader.number("SLURM_STEP_ID", 0, std::numeric_limits<int>::max(), 0);
  setting.group_name = std::to_string(job) + "." + std::to_string(step) + "/" + reader.text("SLURM_RESTART_COUNT");
  // Steps of one machine meet at different ports.
  setting.port = static_cast<int>(20000 + (job + std::int64_t{31} * step) % 20000);
  if (setting.size == 1 || reader.has("MASTER_ADDR")) return setting;
  const auto first = first_of_node_list(reader.text("SLURM_STEP_NODELIST"));
  if (first)
    setting.address = *first;
  else
    reader.problem("SLURM_STEP_NODELIST: " + first.error().message + ". MASTER_ADDR can name rank 0's host instead");
  return setting;
}

RankSetting of_leader_worker_set(VariableReader& reader) {
  RankSetting setting;
  setting.size = reader.number("LWS_GROUP_SIZE", 1, kMaxRanks, 1);
  setting.rank = reader.required_number("LWS_WORKER_INDEX", 0, kMaxRanks - 1, "LWS_GROUP_SIZE");
  setting.address = reader.text("LWS_LEADER_ADDRESS");
  return setting;
}

RankSetting of_launcher(VariableReader& reader) {
  // torchrun is often started by srun, or in a pod: its variables stand for the inner group.
  if (reader.has("RANK") || reader.has("WORLD_SIZE")) return of_torchrun(reader);
  if (reader.has("SLURM_STEP_NUM_TASKS")) return of_slurm(reader);
  if (reader.has("LWS_GROUP_SIZE")) return of_leader_worker_set(reader);
  return {};
}

void check_contradictions(const RankSetting& setting, VariableReader& reader) {
  const auto below = [&](const std::string& name, int number, const std::string& of, int size) {
    if (number >= size)
      reader.problem(name + " " + std::to_string(number) + " is not in a group of " + std::to_string(size) + " " + of +
                     "; expected 0 to " + std::to_string(size - 1));
  };
  below("rank", setting.rank, "ranks", setting.size);
  below("local rank", setting.local_rank, "ranks on this machine", setting.local_size);
  if (setting.local_size > setting.size)
    reader.problem(std::to_string(setting.local_size) + " ranks on this machine, of " + std::to_string(setting.size) +
                   " in all; expected no more than in all");
  if (setting.size > 1 && setting.address.empty())
    reader.problem("MASTER_ADDR: is not set; expected the host of rank 0, since the group has " +
                   std::to_string(setting.size) + " ranks");
}

}  // namespace

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Result<RankSetting> rank_setting(const Variables& variables) {
  VariableReader reader(variables);
  RankSetting setting = of_launcher(reader);
  if (reader.problems().empty() && setting.size == 1 && setting.rank == 0) return RankSetting{};
  if (reader.has("MASTER_ADDR")) setting.address = reader.text("MASTER_ADDR");
  setting.port = reader.number("MASTER_PORT", 1, kMaxPort, setting.port > 0 ? setting.port : kUsualPort);
  if (reader.problems().empty()) check_contradictions(setting, reader);
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return setting;
}

Result<std::string> gpu_of_rank(const RankSetting& setting, const Variables& variables) {
  const auto found = variables.find("CUDA_VISIBLE_DEVICES");
  if (found == variables.end() || found->second.empty()) return std::to_string(setting.local_rank);
  std::vector<std::string> names;
  std::istringstream list(found->second);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  if (names.size() == 1) return names.front();
  if (static_cast<std::size_t>(setting.local_rank) < names.size()) return names[setting.local_rank];
  return Error{"CUDA_VISIBLE_DEVICES=" + found->second + ": no GPU for local rank " +
               std::to_string(setting.local_rank) + "; expected one for each rank of the machine"};
}

Result<std::string> first_of_node_list(const std::string& list) {
  const Error unreadable{list + ": cannot be read; expected a list of hosts, such as gpu[003-007,9],cpu1"};
  std::string name;
  bool in_brackets = false, skips = false;
  for (const char c : list) {
    if (c == '[') {
      if (in_brackets) return unreadable;
      in_brackets = true;
    } else if (c == ']') {
      if (!in_brackets) return unreadable;
      in_brackets = skips = false;
    } else if (c == ',' && !in_brackets) {
      break;
    } else if (in_brackets && (c == ',' || c == '-')) {
      skips = true;
    } else if (!skips) {
      name += c;
    }
  }
  if (in_brackets || name.empty()) return unreadable;
  return name;
}

Result<int> count_of_node(const std::string& counts, int node) {
  const Error unreadable{counts + ": cannot be read; expected counts of tasks, such as 2(x3),1"};
  std::string_view rest = counts;
  std::int64_t nodes = 0;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t bracket = entry.find('(');
    const auto tasks = whole_number(entry.substr(0, bracket));
    std::optional<std::int64_t> times = 1;
    if (bracket != entry.npos) {
      const std::string_view repeated = entry.substr(bracket);
      if (!repeated.starts_with("(x") || !repeated.ends_with(')')) return unreadable;
      times = whole_number(repeated.substr(2, repeated.size() - 3));
    }
    if (!tasks || *tasks < 1 || *tasks > kMaxRanks || !times || *times < 1 || *times > kMaxRanks) return unreadable;
    nodes += *times;
    if (node < nodes) return static_cast<int>(*tasks);
  }
  return Error{counts + ": has " + std::to_string(nodes) + " machines; expected more than " + std::to_string(node)};
}

}  // namespace carnot
