#include <chrono>
#include <ostream>
#include <span>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/stop_signals.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/config/reader.h"
#include "carnot/http/server.h"
#include "carnot/retrieval/retriever/messages.h"
#include "carnot/retrieval/retriever/retriever.h"
#include "carnot/tools/code/code_tool.h"
#include "carnot/tools/code/sandbox_fusion.h"

namespace carnot {
namespace {

OrderedJson shown_result(const CodeResult& result) {
  return {{"stdout", result.standard_output}, {"stderr", result.standard_error}, {"exit_code", result.exit_code},
          {"status", word_of(result.status)}, {"seconds", result.seconds},       {"truncated", result.truncated}};
}

struct Bm25Query {
  std::string text{};
  int count = 3;
};

Result<Bm25Query> parse_bm25_query(std::string_view line, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto given, parse_json_object(line, where));
  Bm25Query query;
  const auto text = given.find("query"), count = given.find("topk");
  if (text == given.end() || !text->is_string()) return Error{where + ": query: expected a string"};
  query.text = text->get<std::string>();
  if (count == given.end() || count->is_null()) return query;
  if (!count->is_number_integer() || *count < 1 || *count > kMostPassages)
    return Error{where + ": topk: expected an integer from 1 to " + std::to_string(kMostPassages)};
  query.count = count->get<int>();
  return query;
}

/// A built-in tool without a policy: a line in, a line out; code also behind SandboxFusion's API.
class ToolCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("NAME", name_, {"python", "bm25"}, "the tool");
    take.operand("FILE|KEY=VALUE", words_,
                 "bm25: the file of passages; python: settings, as in a recipe's `env.sandbox` section: memory_mb=512");
    take.flag("--json", json_, "a line in is JSON, and so is a line out");
    take.count("--port", "N", port_, 0, "python: answer SandboxFusion's API, POST /run_code, on this port; 0: any");
    take.text("--host", "ADDRESS", host_, "to listen on; default: 127.0.0.1");
  }

  Exit run(const Console& console) override {
    if (name_ == "python") return ended(run_python(console), console);
    if (name_ == "bm25") return ended(run_bm25(console), console);
    return report(console, Error{"expected the name of a tool: python or bm25"}, Exit::Usage);
  }

  Exit print_keys(const Console& console) override {
    if (name_ != "python") return Exit::Success;
    CodeToolOptions options;
    FieldTable table;
    table.add("", options);
    console.out << "\nKeys of python:\n" << help_text(table) << std::flush;
    return Exit::Success;
  }

 private:
  Result<CodeToolOptions> code_options() const {
    CodeToolOptions options;
    CARNOT_ASSIGN_OR_RETURN(const auto document,
                            Document::parse("", "command line", {.overrides = words_, .aliases = {}}));
    ConfigReader reader(document);
    reader.read("", options);
    CARNOT_RETURN_IF_ERROR(reader.finish());
    return options;
  }

  Status run_python(const Console& console) const {
    if (port_ > 65535) return Error{"--port: expected a number from 0 to 65535, found " + std::to_string(port_)};
    CARNOT_ASSIGN_OR_RETURN(const auto options, code_options());
    auto runner = open_code_runner(options);
    if (!runner) return Error{"sandbox: " + runner.error().message};
    console.err << "carnot: code runs " << (*runner)->description() << std::endl;
    try {
      if (port_ >= 0) return serve(std::move(runner).value(), options.sandbox.seconds, console);
      return json_ ? answer_lines(**runner, options, console) : run_input(**runner, options, console);
    } catch (const SandboxFailure& failure) {
      return Error{failure.what()};
    }
  }

  Status answer_lines(CodeRunner& runner, const CodeToolOptions& options, const Console& console) const {
    std::string line;
    for (int number = 1;; ++number) {
      CARNOT_ASSIGN_OR_RETURN(const auto more, read_line(console.in, line));
      if (!more) return Done{};
      const std::string where = "line " + std::to_string(number);
      const auto code = parse_json(line, where);
      CodeResult result{.exit_code = 1, .status = CodeStatus::Refused};
      if (code && code->is_string())
        result = runner.run(
            {.code = code->get<std::string>(), .show_last = options.show_last, .seconds = options.sandbox.seconds});
      else
        result.standard_error = (code ? where + ": expected a JSON string" : code.error().message) + "\n";
      console.out << json_line(shown_result(result)) << std::endl;
    }
  }

  Status run_input(CodeRunner& runner, const CodeToolOptions& options, const Console& console) const {
    auto code = read_stream(console.in, "standard input");
    if (!code) return code.error();
    const CodeResult result = runner.run(
        {.code = std::move(code).value(), .show_last = options.show_last, .seconds = options.sandbox.seconds});
    console.out << result.standard_output << std::flush;
    console.err << result.standard_error << std::flush;
    if (result.status == CodeStatus::Ok) return Done{};
    return Error{"the program ended with status " + std::string(word_of(result.status)) + ", exit code " +
                 std::to_string(result.exit_code)};
  }

  Status serve(std::shared_ptr<CodeRunner> runner, double usual_seconds, const Console& console) const {
    if (!is_loopback(host_))
      return Error{"--host " + host_ +
                   ": anyone who reaches it could run code here; expected an address of this machine"};
    const auto server =
        HttpServer::start({.host = host_, .port = port_}, sandbox_fusion_handler(std::move(runner), usual_seconds));
    if (!server) return server.error();
    catch_stop_signals(StopLeaves::Nothing);
    console.out << "http://" << host_ << ":" << (*server)->port() << "/run_code" << std::endl;
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (*server)->stop();
    return Done{};
  }

  Status run_bm25(const Console& console) const {
    if (words_.size() != 1) return Error{"bm25: expected one file of passages (docs/open_qa.md)"};
    const auto retriever = open_retriever(words_.front());
    if (!retriever) return retriever.error();
    try {
      return answer_queries(**retriever, console);
    } catch (const RetrieverFailure& failure) {
      return Error{failure.what()};
    }
  }

  Status answer_queries(const Retriever& retriever, const Console& console) const {
    constexpr std::chrono::minutes kLongestSearch{10};
    std::string line;
    for (int number = 1;; ++number) {
      CARNOT_ASSIGN_OR_RETURN(const auto more, read_line(console.in, line));
      if (!more) return Done{};
      const auto query =
          json_ ? parse_bm25_query(line, "line " + std::to_string(number)) : Result<Bm25Query>(Bm25Query{.text = line});
      if (!query) {
        console.out << json_line(OrderedJson{{"error", query.error().message}}) << std::endl;
        continue;
      }
      const auto found = retriever.retrieve(std::span(&query->text, 1), query->count,
                                            std::chrono::steady_clock::now() + kLongestSearch);
      OrderedJson result = OrderedJson::array();
      for (const auto& [id, contents, score] : found.front()) {
        if (!json_) console.out << score << "\t" << contents << "\n";
        result.push_back({{"document", {{"id", id}, {"contents", contents}}}, {"score", score}});
      }
      if (json_) console.out << json_line(OrderedJson{{"result", result}}) << "\n";
      console.out << std::flush;
    }
  }

  std::string name_{};
  std::vector<std::string> words_{};
  bool json_ = false;
  int port_ = -1;
  std::string host_ = "127.0.0.1";
};

}  // namespace

CommandEntry tool_entry() {
  return {.name = "tool",
          .arguments = "NAME [FILE] [key=value ...]",
          .summary = "run a built-in tool by hand: code in the sandbox, a search",
          .example = "python seconds=5",
          .settings = Settings::OfItsOwn,
          .make = make_command<ToolCommand>};
}

}  // namespace carnot
