#include "carnot/worlds/swe/workshop.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <set>

#include "carnot/core/base/json.h"
#include "carnot/worlds/swe/texts.h"

namespace carnot {
namespace {

constexpr std::size_t kMostFolders = 4096;

std::optional<std::string> from_hexadecimal(std::string_view text) {
  const auto digit = [](char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = digit(text[at]), low = digit(text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// Reads an answer member by member; the first that does not fit is the problem.
class ToolAnswer {
 public:
  explicit ToolAnswer(const Json& answer) : answer_(answer) {}

  std::string text(const char* name) {
    const auto member = answer_.find(name);
    if (member != answer_.end() && member->is_string()) return member->get<std::string>();
    fail(name);
    return "";
  }

  std::vector<std::string> paths(const char* name) {
    std::vector<std::string> found;
    const auto member = answer_.find(name);
    if (member == answer_.end() || !member->is_array()) {
      fail(name);
      return found;
    }
    for (const Json& one : *member) {
      if (!one.is_string() || !is_path_beneath(one.get_ref<const std::string&>())) {
        fail(name);
        return {};
      }
      found.push_back(one.get<std::string>());
    }
    return found;
  }

  std::map<std::string, std::string> contents(const char* name) {
    std::map<std::string, std::string> found;
    const auto member = answer_.find(name);
    if (member == answer_.end() || !member->is_object()) {
      fail(name);
      return found;
    }
    for (const auto& [path, content] : member->items()) {
      if (!is_path_beneath(path) || !content.is_string()) {
        fail(name);
        return {};
      }
      found[path] = content.get<std::string>();
    }
    return found;
  }

  void fail(const std::string& name) {
    if (problem_.empty()) problem_ = "the tool's answer has no good \"" + name + "\"";
  }
  const std::string& problem() const { return problem_; }

 private:
  const Json& answer_;
  std::string problem_{};
};

std::vector<std::string> executables(const SweFolder& folder) {
  std::vector<std::string> paths;
  for (const auto& [path, file] : folder.files)
    if (file.executable) paths.push_back(path);
  return paths;
}

/// Of a call that did not come to its end: what it changed is lost.
SweToolOutput cut_short(const CodeResult& result, double seconds) {
  std::string text;
  switch (result.status) {
    case CodeStatus::Timeout: {
      std::array<char, 32> number{};
      std::snprintf(number.data(), number.size(), "%g", seconds);
      text = std::string("The command took too long to execute (>") + number.data() + "s)";
      break;
    }
    case CodeStatus::Memory: text = "Error: the command needed more memory than is allowed"; break;
    case CodeStatus::Refused: text = "Error: the command was ended, for it did what is not allowed here"; break;
    default: text = "Error: the command ended the shell that it ran in"; break;
  }
  return {.text = text, .exit_code = "-1"};
}

}  // namespace

SweFolder folder_with(const SweFiles& repository) {
  SweFolder folder{.folders = {"testbed"}};
  std::set<std::string> folders;
  for (const auto& [path, file] : repository) {
    folder.files["testbed/" + path] = file;
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
      folders.insert("testbed/" + path.substr(0, slash));
  }
  folder.folders.insert(folder.folders.end(), folders.begin(), folders.end());
  return folder;
}

Result<SweToolOutput> take_tool_answer(std::string_view text, SweFolder& folder) {
  CARNOT_ASSIGN_OR_RETURN(const auto answer, parse_json_object(text, "the tool's answer"));
  ToolAnswer read(answer);
  SweToolOutput output{.text = read.text("output"), .exit_code = read.text("exit_code")};
  if (answer.contains("excess") && read.problem().empty())
    return SweToolOutput{.text = "Error: the command changed more than " + std::to_string(kMostChangedBytes >> 20) +
                                 " MB of files; all of its changes are taken back",
                         .exit_code = "-1"};
  SweFolder changed = folder;
  for (const std::string& path : read.paths("gone")) changed.files.erase(path);
  for (auto& [path, content] : read.contents("texts")) changed.files[path].content = std::move(content);
  for (const auto& [path, digits] : read.contents("bytes")) {
    auto bytes = from_hexadecimal(digits);
    if (!bytes) read.fail("bytes");
    changed.files[path].content = std::move(bytes).value_or("");
  }
  changed.folders = read.paths("folders");
  if (changed.folders.size() > kMostFolders) read.fail("folders");
  const auto executable = read.paths("executable");
  if (!read.problem().empty()) return Error{read.problem()};
  for (auto& [path, file] : changed.files)
    file.executable = std::find(executable.begin(), executable.end(), path) != executable.end();
  folder = std::move(changed);
  return output;
}

CodeResult SweWorkshop::run(const std::string& request, double seconds, const SweFolder& folder) const {
  CodeCall call{.code = std::string(kSweTools), .seconds = seconds + kSecondsAround};
  for (const auto& [path, file] : folder.files) call.files[path] = file.content;
  call.files["request.json"] = request;
  return runner_->run(call);
}

SweToolOutput SweWorkshop::call(const std::vector<std::string>& words, double seconds, SweFolder& folder) const {
  static const std::set<std::string> kTools{"file_editor", "search", "execute_bash"};
  if (words.empty() || kTools.count(words.front()) == 0) return {.text = "", .exit_code = "-1"};
  const Json request{{"words", words},
                     {"seconds", seconds},
                     {"folders", folder.folders},
                     {"executable", executables(folder)},
                     {"most", kMostChangedBytes}};
  const CodeResult result = run(request.dump(-1, ' ', false, Json::error_handler_t::replace), seconds, folder);
  if (result.status != CodeStatus::Ok || result.truncated) return cut_short(result, seconds);
  auto output = take_tool_answer(result.standard_output, folder);
  return output ? *output : SweToolOutput{.text = "Error: " + output.error().message, .exit_code = "-1"};
}

std::string SweWorkshop::shell(const std::string& command, double seconds, const SweFolder& folder) const {
  const Json request{
      {"shell", command}, {"seconds", seconds}, {"folders", folder.folders}, {"executable", executables(folder)}};
  const CodeResult result = run(request.dump(-1, ' ', false, Json::error_handler_t::replace), seconds, folder);
  if (result.status != CodeStatus::Ok || result.truncated) return "";
  const auto answer = parse_json_object(result.standard_output, "the shell's answer");
  if (!answer) return "";
  return ToolAnswer(*answer).text("output");
}

Status SweWorkshop::check_pytest() const {
  const std::string output = shell("python3 -m pytest --version", 60, folder_with({}));
  if (output.find("pytest ") != std::string::npos && output.find("No module") == std::string::npos) return Done{};
  return Error{"the interpreter has no pytest (Debian: python3-pytest)"};
}

}  // namespace carnot
