#include "carnot/tools/mcp/server_list.h"

#include <cstdlib>
#include <functional>
#include <utility>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

class ServerReader {
 public:
  ServerReader(const OrderedJson& server, std::string where, std::vector<std::string>& problems)
      : server_(server), where_(std::move(where)), problems_(problems) {}

  std::string text(const char* key) {
    const auto found = server_.find(key);
    return found == server_.end() ? "" : text_of(*found, key);
  }

  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> all;
    const auto found = server_.find(key);
    if (found == server_.end()) return all;
    if (!found->is_array()) return problem(key, "a list of texts"), all;
    for (const OrderedJson& one : *found) all.push_back(text_of(one, key));
    return all;
  }

  std::vector<std::pair<std::string, std::string>> pairs(const char* key) {
    std::vector<std::pair<std::string, std::string>> all;
    const auto found = server_.find(key);
    if (found == server_.end()) return all;
    if (!found->is_object()) return problem(key, "an object of texts"), all;
    for (const auto& [name, value] : found->items()) all.emplace_back(name, text_of(value, key));
    return all;
  }

  bool flag(const char* key) {
    const auto found = server_.find(key);
    return found != server_.end() && *found == true;
  }

  void problem(const std::string& key, const std::string& expected) {
    problems_.push_back(where_ + "." + key + ": expected " + expected);
  }

 private:
  std::string text_of(const OrderedJson& value, const char* key) {
    if (!value.is_string()) return problem(key, "a string"), "";
    return with_variables(value.get<std::string>(), key);
  }

  std::string with_variables(const std::string& text, const char* key) {
    std::string out;
    std::size_t at = 0;
    for (std::size_t begin; (begin = text.find("${", at)) != std::string::npos;) {
      const std::size_t end = text.find('}', begin);
      if (end == std::string::npos) break;
      const std::string name = text.substr(begin + 2, end - begin - 2);
      const char* value = std::getenv(name.c_str());
      if (value == nullptr) problem(key, "the environment to have a variable " + name);
      out += text.substr(at, begin - at) + (value == nullptr ? "" : value);
      at = end + 1;
    }
    return out + text.substr(at);
  }

  const OrderedJson& server_;
  std::string where_;
  std::vector<std::string>& problems_;
};

}  // namespace

Result<std::vector<std::string>> command_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
      in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return Error{std::string("a quote ") + quote + " does not end"};
  if (in_word) words.push_back(std::move(word));
  return words;
}

Result<std::vector<McpServerOptions>> parse_mcp_servers(std::string_view text, const std::string& file) {
  CARNOT_ASSIGN_OR_RETURN(const auto parsed, parse_json_object<OrderedJson>(text, file));
  const auto servers = parsed.find("mcpServers");
  if (servers == parsed.end() || !servers->is_object() || servers->empty())
    return Error{file + ": expected servers under mcpServers"};
  std::vector<McpServerOptions> all;
  std::vector<std::string> problems;
  for (const auto& [name, server] : servers->items()) {
    const std::string where = file + ": " + name;
    if (!server.is_object()) {
      problems.push_back(where + ": expected an object");
      continue;
    }
    ServerReader reader(server, where, problems);
    if (reader.flag("disabled")) continue;
    McpServerOptions options{.name = "mcp " + name, .url = reader.text("url"), .headers = reader.pairs("headers")};
    options.program.folder = reader.text("cwd");
    for (const auto& [key, value] : reader.pairs("env")) options.program.environment.push_back(key + "=" + value);
    std::vector<std::string> command = reader.texts("args");
    if (server.contains("command")) {
      command.insert(command.begin(), reader.text("command"));
      options.program.command = std::move(command);
    }
    if (options.program.command.empty() == options.url.empty()) reader.problem("command", "either a command or a url");
    all.push_back(std::move(options));
  }
  if (!problems.empty()) return join_errors(problems);
  return all;
}

}  // namespace carnot
