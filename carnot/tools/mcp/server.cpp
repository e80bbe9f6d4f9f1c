#include "carnot/tools/mcp/server.h"

#include <cstdlib>
#include <functional>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/subprocess/line_program.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {
namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;

class StdioTransport final : public McpTransport {
 public:
  explicit StdioTransport(std::unique_ptr<LineProgram> program) : program_(std::move(program)) {}

  void open(McpHandlers handlers, Deadline) override {
    program_->listen({.on_line =
                          [handlers](std::string_view line, bool whole, const std::string& where) {
                            if (whole)
                              (void)handlers.on_message(line, where);
                            else
                              handlers.on_end(where + ": " + std::to_string(kLongestLine) + " bytes without an end");
                          },
                      .on_end = handlers.on_end});
  }

  void send(const std::string& message, std::string_view, std::string_view, Deadline deadline) override {
    if (!program_->write(message, deadline)) throw PeerFailure(label() + " takes no more requests");
  }

  void close() override { program_->close(); }
  void kill() override { program_->kill(); }
  std::string label() const override { return program_->label(); }
  std::string last_words() const override { return program_->last_words(); }

 private:
  std::unique_ptr<LineProgram> program_;
};

/// A server that is a child process, a message a line over its pipes. What it writes to standard error goes to the log
/// under `name`. Throws PeerFailure.
std::unique_ptr<McpTransport> start_stdio_transport(const std::string& name, const ProgramCall& call) {
  auto program = LineProgram::start(name, call, kLongestLine);
  if (!program) throw PeerFailure(program.error().message);
  return std::make_unique<StdioTransport>(std::move(program).value());
}

using SessionSource = std::function<std::shared_ptr<McpSession>()>;

/// A session that is started at the first call and never again.
class OwnSession {
 public:
  explicit OwnSession(std::shared_ptr<McpServer> server) : server_(std::move(server)) {}

  std::shared_ptr<McpSession> get() {
    const std::lock_guard lock(mutex_);
    if (!session_) session_ = server_->connect();
    return session_;
  }

 private:
  std::shared_ptr<McpServer> server_;
  std::mutex mutex_{};
  std::shared_ptr<McpSession> session_{};
};

class McpTool final : public Tool {
 public:
  McpTool(ToolDescription description, std::string name, SessionSource session)
      : description_(std::move(description)), name_(std::move(name)), session_(std::move(session)) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object<OrderedJson>(arguments, "arguments");
    if (!given) return {.text = "Error: " + given.error().message, .status = "bad_arguments"};
    return session_()->call(name_, *given, deadline);
  }

 private:
  ToolDescription description_;
  std::string name_;
  SessionSource session_;
};

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
    if (!found->is_array()) return problem(key, "a list of strings"), all;
    for (const OrderedJson& one : *found) all.push_back(text_of(one, key));
    return all;
  }

  std::vector<std::pair<std::string, std::string>> pairs(const char* key) {
    std::vector<std::pair<std::string, std::string>> all;
    const auto found = server_.find(key);
    if (found == server_.end()) return all;
    if (!found->is_object()) return problem(key, "an object of strings"), all;
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

std::unique_ptr<McpSession> McpServer::connect() const {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(options_.start_seconds));
  if (options_.url.empty())
    return std::make_unique<McpSession>(start_stdio_transport(options_.name, options_.program), deadline);
  const auto url = parse_url(options_.url);
  if (!url) throw PeerFailure(options_.name + ": " + url.error().message);
  HttpHeaders headers;
  for (const auto& [name, value] : options_.headers) headers.push_back({name, value});
  return std::make_unique<McpSession>(make_http_transport(options_.name, *url, std::move(headers)), deadline);
}

std::shared_ptr<McpSession> McpServer::session() {
  const std::lock_guard lock(mutex_);
  if (session_ && session_->is_alive()) return session_;
  pause_.check();
  if (session_) log_warning(options_.name + " is started again");
  try {
    session_ = connect();
    pause_.succeeded();
    return session_;
  } catch (const PeerFailure& failure) {
    pause_.failed(failure.what());
    throw;
  }
}

std::vector<std::shared_ptr<Tool>> mcp_tools(const std::shared_ptr<McpServer>& server, const McpTools& tools,
                                             McpSessions sessions) {
  SessionSource source = [server] { return server->session(); };
  if (sessions == McpSessions::Own) source = [own = std::make_shared<OwnSession>(server)] { return own->get(); };
  std::vector<std::shared_ptr<Tool>> made;
  for (std::size_t i = 0; i < tools.tools.size(); ++i)
    made.push_back(std::make_shared<McpTool>(tools.tools[i], tools.names[i], source));
  return made;
}

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
