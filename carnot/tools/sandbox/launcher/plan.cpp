#include "plan.h"

#include <charconv>
#include <string_view>

namespace carnot::launcher {
namespace {

bool read_number(std::string_view text, std::uint64_t& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

bool read_layer(std::string_view name, Plan& plan) {
  for (auto& [known, layer] : {std::pair<std::string_view, bool*>{"namespaces", &plan.namespaces},
                               {"landlock", &plan.landlock},
                               {"system_calls", &plan.system_calls}})
    if (name == known) return *layer = true;
  return false;
}

bool read_setting(std::string_view key, std::string_view value, Plan& plan) {
  if (key == "layer") return read_layer(value, plan);
  if (key == "folder") return !(plan.folder = value).empty();
  if (key == "shown_at") {
    plan.shown_at = value;
    return value.size() > 1 && value.front() == '/' && value.find('/', 1) == std::string_view::npos;
  }
  if (key == "read") {
    plan.read.emplace_back(value);
    return value.starts_with('/');
  }
  if (key == "as_user") {
    std::uint64_t user = 0;
    if (!read_number(value, user)) return false;
    plan.as_user = static_cast<uid_t>(user);
    return true;
  }
  for (auto& [known, number] : {std::pair<std::string_view, std::uint64_t*>{"memory", &plan.memory},
                                {"cpu", &plan.cpu},
                                {"processes", &plan.processes},
                                {"open_files", &plan.open_files},
                                {"disk", &plan.disk}})
    if (key == known) return read_number(value, *number);
  return false;
}

}  // namespace

bool read_plan(int count, char** arguments, Plan& plan, std::string& problem) {
  int at = 1;
  for (; at < count && std::string_view(arguments[at]) != "--"; ++at) {
    const std::string_view argument(arguments[at]);
    const std::size_t equals = argument.find('=');
    if (equals != std::string_view::npos && read_setting(argument.substr(0, equals), argument.substr(equals + 1), plan))
      continue;
    problem = "\"" + std::string(argument) + "\" is not a setting";
    return false;
  }
  for (++at; at < count; ++at) plan.command.emplace_back(arguments[at]);
  const bool is_whole = !plan.command.empty() && plan.memory > 0 && plan.cpu > 0 && plan.processes > 0 &&
                        plan.open_files > 0 && plan.disk > 0 && (plan.namespaces || !plan.folder.empty());
  if (!is_whole)
    problem = "expected KEY=VALUE ... -- PROGRAM with every limit, and folder= unless there are namespaces";
  return is_whole;
}

}  // namespace carnot::launcher
