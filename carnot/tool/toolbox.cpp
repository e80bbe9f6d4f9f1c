#include "carnot/tool/toolbox.h"

#include <algorithm>
#include <map>

#include "carnot/base/file.h"
#include "carnot/base/strings.h"
#include "carnot/http/url.h"
#include "carnot/tool/calculator/calculator.h"
#include "carnot/tool/checked_tool.h"
#include "carnot/tool/mcp/server.h"
#include "carnot/tool/mcp/server_list.h"
#include "carnot/tool/python/python_tools.h"
#include "carnot/tool/retriever/search_tool.h"
#include "carnot/tool/search/passages.h"
#include "carnot/tool/web/web_tools.h"

namespace carnot {

using SharedTools = std::vector<std::shared_ptr<Tool>>;

/// What one entry of the list stands for; Python's functions are one source together.
class ToolSource {
 public:
  virtual ~ToolSource() = default;
  virtual const std::string& name() const = 0;
  virtual SharedTools for_an_episode() const = 0;
  virtual ToolMemory memory() const = 0;
};

namespace {

constexpr std::string_view kExpected =
    "expected calculator, python, code_interpreter, search web, browse, search FILE, search URL, FILE.py:FUNCTION, mcp "
    "COMMAND, mcp URL, or FILE.json "
    "(docs/tools.md)";

/// Tools that are the same for everybody.
class CommonTools final : public ToolSource {
 public:
  CommonTools(std::string name, SharedTools tools, ToolMemory memory)
      : name_(std::move(name)), tools_(std::move(tools)), memory_(memory) {}
  const std::string& name() const override { return name_; }
  SharedTools for_an_episode() const override { return tools_; }
  ToolMemory memory() const override { return memory_; }

 private:
  std::string name_;
  SharedTools tools_;
  ToolMemory memory_;
};

class McpSource final : public ToolSource {
 public:
  /// Throws PeerFailure.
  McpSource(McpServerOptions options, ToolSessions sessions)
      : server_(std::make_shared<McpServer>(std::move(options))), tools_(server_->session()->tools()) {
    const bool all = sessions == ToolSessions::All || (sessions == ToolSessions::Auto && tools_.only_read);
    sessions_ = all ? McpSessions::Common : McpSessions::Own;
  }
  const std::string& name() const override { return server_->name(); }
  SharedTools for_an_episode() const override { return mcp_tools(server_, tools_, sessions_); }
  ToolMemory memory() const override { return sessions_ == McpSessions::Own ? ToolMemory::Episode : ToolMemory::None; }

 private:
  std::shared_ptr<McpServer> server_;
  McpTools tools_;
  McpSessions sessions_ = McpSessions::Common;
};

/// Reads the list; every problem is kept.
class ToolList {
 public:
  explicit ToolList(const ToolboxOptions& options) : options_(options) {}

  void add(const std::string& entry) {
    const std::string text(trim(entry));
    const std::string word = text.substr(0, text.find(' '));
    const std::string rest(trim(std::string_view(text).substr(word.size())));
    if (word == "mcp" && !rest.empty()) return add_mcp(rest);
    if (text == "search web" || text == "browse") return add_web(text);
    if (word == "search" && !rest.empty())
      return add_tool(text, is_retriever(rest) ? make_retriever_search(rest) : make_search(rest));
    if (text == "calculator") return add_tool(text, make_calculator());
    if (text == "python" || text == "code_interpreter") return add_code_tool(text);
    if (text.ends_with(".json")) return add_servers(text);
    if (const std::size_t colon = text.rfind(':');
        colon != std::string::npos && colon > 0 && colon + 1 < text.size() && rest.empty())
      return add_function(text);
    problems_.push_back("env.tools: \"" + entry + "\": " + std::string(kExpected));
  }

  /// Python's functions share a process: they are started together and listed where they stood.
  void start_functions() {
    if (functions_.empty()) return;
    auto made = start_python_tools({.functions = functions_,
                                    .python = options_.python,
                                    .start_seconds = options_.start_seconds,
                                    .call_seconds = options_.call_seconds});
    if (!made) return problems_.push_back(made.error().message);
    if (made->tools.size() != functions_.size())
      return problems_.push_back("env.tools: the process described " + std::to_string(made->tools.size()) + " of " +
                                 std::to_string(functions_.size()) + " functions");
    for (std::size_t i = 0; i < functions_.size(); ++i)
      sources_[places_[i]] = std::make_unique<CommonTools>(functions_[i], SharedTools{made->tools[i]},
                                                           made->change_state ? ToolMemory::World : ToolMemory::None);
  }

  std::vector<std::unique_ptr<ToolSource>> sources_{};
  std::vector<std::string> problems_{};

 private:
  void add_tool(const std::string& name, Result<std::shared_ptr<Tool>> tool) {
    if (!tool) return problems_.push_back("env.tools: " + tool.error().message);
    sources_.push_back(std::make_unique<CommonTools>(name, SharedTools{std::move(tool).value()}, ToolMemory::None));
  }

  /// Tools of both names share a sandbox.
  void add_code_tool(const std::string& name) {
    if (!code_) {
      auto runner = open_code_runner(options_.code);
      if (!runner) return problems_.push_back("env.sandbox: " + runner.error().message);
      code_ = std::move(runner).value();
    }
    add_tool(name, make_code_tool(name, code_, options_.code));
  }

  /// Both tools share a cache.
  void add_web(const std::string& name) {
    if (!web_) {
      auto web = Web::open(options_.web);
      if (!web) return problems_.push_back(web.error().message);
      web_ = std::move(web).value();
    }
    add_tool(name, name == "browse" ? make_browse(web_) : make_web_search(web_));
  }

  void add_function(const std::string& spec) {
    places_.push_back(sources_.size());
    functions_.push_back(spec);
    sources_.emplace_back();
  }

  void add_mcp(const std::string& what) {
    McpServerOptions options{.name = "mcp " + what};
    if (what.starts_with("http://") || what.starts_with("https://")) {
      options.url = what;
      if (const auto url = parse_url(what)) options.name = "mcp " + url->shown();  // without what may be a key
    } else {
      auto words = command_words(what);
      if (!words) return problems_.push_back("env.tools: mcp " + what + ": " + words.error().message);
      options.program.command = std::move(words).value();
    }
    start(std::move(options));
  }

  void add_servers(const std::string& file) {
    const auto text = read_file(file);
    if (!text) return problems_.push_back("env.tools: " + text.error().message);
    auto servers = parse_mcp_servers(*text, file);
    if (!servers) return problems_.push_back("env.tools: " + servers.error().message);
    for (McpServerOptions& server : *servers) start(std::move(server));
  }

  void start(McpServerOptions server) {
    server.start_seconds = options_.start_seconds;
    try {
      sources_.push_back(std::make_unique<McpSource>(std::move(server), options_.sessions));
    } catch (const PeerFailure& failure) {
      problems_.push_back(std::string("env.tools: ") + failure.what());
    }
  }

  const ToolboxOptions& options_;
  std::shared_ptr<CodeRunner> code_{};
  std::shared_ptr<Web> web_{};
  std::vector<std::string> functions_{};
  std::vector<std::size_t> places_{};  // of the functions in sources_
};

}  // namespace

Toolbox::Toolbox() = default;
Toolbox::~Toolbox() = default;

Result<std::shared_ptr<const Toolbox>> Toolbox::open(const ToolboxOptions& options) {
  ToolList list(options);
  for (const std::string& entry : options.tools) list.add(entry);
  list.start_functions();
  if (!list.problems_.empty()) return join_errors(list.problems_);
  std::shared_ptr<Toolbox> box(new Toolbox);
  std::map<std::string, std::string> owners;
  std::vector<std::string> problems;
  for (std::unique_ptr<ToolSource>& source : list.sources_) {
    box->memory_ = std::max(box->memory_, source->memory());
    for (const std::shared_ptr<Tool>& tool : source->for_an_episode()) {
      const ToolDescription& description = tool->description();
      box->descriptions_.push_back(description);
      const auto [owner, is_new] = owners.emplace(description.name, source->name());
      if (!is_new)
        problems.push_back("env.tools: " + owner->second + " and " + source->name() + " both have a tool " +
                           description.name);
      auto schema = arguments_schema(description);
      if (schema)
        box->schemas_.push_back(std::move(schema).value());
      else
        problems.push_back("env.tools: " + source->name() + ": " + schema.error().message);
    }
    box->sources_.push_back(std::move(source));
  }
  if (!problems.empty()) return join_errors(problems);
  const bool own = std::any_of(box->sources_.begin(), box->sources_.end(),
                               [](const auto& source) { return source->memory() == ToolMemory::Episode; });
  if (!own) box->common_ = box->make_tools();
  return std::shared_ptr<const Toolbox>(std::move(box));
}

ToolSet Toolbox::for_an_episode() const { return common_ ? *common_ : make_tools(); }

ToolSet Toolbox::make_tools() const {
  SharedTools tools;
  for (const auto& source : sources_)
    for (std::shared_ptr<Tool>& tool : source->for_an_episode()) {
      const std::size_t place = tools.size();
      tools.push_back(checked(std::move(tool), schemas_[place]));
    }
  return ToolSet(std::move(tools));
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

}  // namespace carnot
