#include "carnot/worlds/swe/scaffold.h"

#include <algorithm>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/swe/texts.h"

namespace carnot {
namespace {

constexpr std::string_view kFunction = "<function", kParameter = "<parameter";
constexpr std::size_t kShownLines = 40;  ///< of each end of a long output

/// The name in `<TAG = NAME>` at `at`, and where the tag ends; npos where there is no such tag.
std::pair<std::string, std::size_t> read_tag(std::string_view text, std::string_view tag, std::size_t at) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  std::size_t next = text.find_first_not_of(kBlanks, at + tag.size());
  if (next == std::string_view::npos || text[next] != '=') return {"", std::string_view::npos};
  next = text.find_first_not_of(kBlanks, next + 1);
  const std::size_t end = next == std::string_view::npos ? next : text.find('>', next);
  // The name begins with the first blank where there is nothing else.
  if (end == std::string_view::npos || (end == next && text[next - 1] == '=')) return {"", std::string_view::npos};
  return {std::string(stripped(text.substr(next, end - next))), end + 1};
}

std::vector<std::string_view> output_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string without_middle(const std::string& output) {
  const auto lines = output_lines(output);
  if (lines.size() <= 2 * kShownLines) return output;
  std::string text;
  for (std::size_t i = 0; i < kShownLines; ++i) text.append(lines[i]).append("\n");
  const std::string line(50, '-');
  text += line + "\n<Observation truncated in middle for saving context>\n" + line;
  for (std::size_t i = lines.size() - kShownLines; i < lines.size(); ++i) text.append("\n").append(lines[i]);
  return text;
}

}  // namespace

SweCall read_swe_call(std::string_view response) {
  constexpr std::string_view kEnd = "</function>", kParameterEnd = "</parameter>";
  SweCall call;
  const std::size_t begin = response.find("<function=");
  const std::size_t end = begin == std::string_view::npos ? begin : response.find(kEnd, begin);
  if (end == std::string_view::npos) return call;
  const std::string_view block = response.substr(begin, end - begin);
  auto [name, at] = read_tag(block, kFunction, 0);
  if (name.empty()) return call;
  call.name = std::move(name);
  for (at = block.find(kParameter); at != std::string_view::npos; at = block.find(kParameter, at)) {
    auto [key, value_begin] = read_tag(block, kParameter, at);
    const std::size_t value_end =
        value_begin == std::string_view::npos ? value_begin : block.find(kParameterEnd, value_begin);
    if (value_end == std::string_view::npos) {
      at += kParameter.size();
      continue;
    }
    const std::string value(stripped(block.substr(value_begin, value_end - value_begin)));
    const auto known = std::find_if(call.parameters.begin(), call.parameters.end(),
                                    [&, &wanted = key](const auto& one) { return one.first == wanted; });
    if (known == call.parameters.end())
      call.parameters.emplace_back(std::move(key), value);
    else
      known->second = value;
    at = value_end + kParameterEnd.size();
  }
  return call;
}

std::string swe_call_text(const SweCall& call) {
  std::string text = "<function=" + call.name + ">\n";
  for (const auto& [key, value] : call.parameters) text += "<parameter=" + key + ">" + value + "</parameter>\n";
  return text + "</function>";
}

std::vector<std::string> swe_command(const SweCall& call) {
  std::vector<std::string> words{call.name};
  for (const auto& [key, value] : call.parameters)
    if (key == "command") words.push_back(value);
  for (const auto& [key, value] : call.parameters) {
    if (key == "command") continue;
    words.push_back("--" + key);
    words.push_back(value);
  }
  return words;
}

bool ends_episode(const SweCall& call) {
  const std::string name = lower_case(call.name);
  return name.find("finish") != std::string::npos || name.find("submit") != std::string::npos;
}

std::string swe_observation(const SweCall& call, const std::string& output, const std::string& exit_code) {
  if (call.name != "execute_bash") return "Execution output of [" + call.name + "]:\n" + output;
  return "Exit code: " + exit_code + "\nExecution output of [execute_bash]:\n" + without_middle(output);
}

std::string missing_call_text() {
  return "\nYou forgot to use a function call in your response. \nYOU MUST USE A FUNCTION CALL IN EACH "
         "RESPONSE.\n\nIMPORTANT: YOU SHOULD NEVER ASK FOR HUMAN HELP.\n";
}

std::string steps_remaining_text(int steps) {
  if (steps > 0) return "\nSteps Remaining: " + std::to_string(steps);
  return "\nYou have reached the maximum number of steps. Please submit your answer NOW.";
}

std::string swe_user_text(std::string_view issue) {
  constexpr std::string_view kPlace = "{problem_statement}";
  std::string text(kSweUserPrompt);
  return text.replace(text.find(kPlace), kPlace.size(), issue);
}

}  // namespace carnot
