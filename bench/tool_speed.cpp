// What a tool call costs beyond the tool's own work, and how many calls a core makes per second.
//
//   tool_bench [CALLS]
//
// Makes CALLS (5,000) calls of a tool that adds two numbers, by 1, 4 and 16 episodes at a time: the calculator, a
// Python function, an MCP server that is started. Prints microseconds per call of wall time and of processor time, all
// processes together, and calls per second of one core.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "carnot/tools/toolbox/toolbox.h"
#include "carnot/tools/tools.h"
#include "processor_time.h"
#include "testing/field_settings.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kTests = std::string(CARNOT_SOURCE_DIR) + "/tests/process/";

struct Measured {
  const char* name;
  std::string entry;  ///< of env.tools
  const char* tool;
  const char* arguments;
  const char* result;
};

void call_many(const Toolbox& tools, const Measured& what, int calls) {
  const ToolSet set = tools.for_an_episode();
  for (int i = 0; i < calls; ++i) {
    const ToolResult result = set.call(what.tool, what.arguments, Clock::now() + std::chrono::seconds(60));
    if (result.text == what.result) continue;
    std::fprintf(stderr, "%s: %s\n", what.name, result.text.c_str());
    std::exit(1);
  }
}

struct Times {
  double wall = 0;  ///< seconds of the calls
  double cpu = 0;   ///< seconds from the start of what the tool needs to its end
};

Times times_of(const Measured& what, int episodes, int calls) {
  Times times;
  const double before = processor_seconds();
  {
    ToolboxOptions options{.tools = {what.entry}};
    testing::FieldSettings one_session(std::map<std::string, std::string>{{"tool_sessions", "all"}});
    for (const auto& kind : options.kinds) kind->fields(one_session);
    const auto tools = Toolbox::open(options);
    if (!tools) {
      std::fprintf(stderr, "%s\n", tools.error().message.c_str());
      std::exit(1);
    }
    call_many(**tools, what, 1);
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    for (int e = 0; e < episodes; ++e) threads.emplace_back([&] { call_many(**tools, what, calls / episodes); });
    for (std::thread& thread : threads) thread.join();
    times.wall = std::chrono::duration<double>(Clock::now() - start).count();
  }
  times.cpu = processor_seconds() - before;
  return times;
}

void measure(const Measured& what, int episodes, int calls) {
  const Times start = times_of(what, episodes, 0), all = times_of(what, episodes, calls);
  const int made = calls / episodes * episodes;
  const double cpu = all.cpu - start.cpu;
  std::printf("%-20s %8d %12.1f %12.1f %14.0f\n", what.name, episodes, 1e6 * all.wall / made, 1e6 * cpu / made,
              made / cpu);
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) {
  using carnot::kTests;
  carnot::offer_tools();
  ::setenv("CARNOT_PYTHON", CARNOT_SOURCE_DIR "/python", 0);
  const int calls = argc > 1 ? std::atoi(argv[1]) : 5000;
  std::printf("%-20s %8s %12s %12s %14s\n", "", "episodes", "wall, us", "cpu, us", "calls/s, core");
  for (const int episodes : {1, 4, 16}) {
    carnot::measure({"calculator", "calculator", "calculator", R"({"expression": "2+3"})", "5"}, episodes, calls);
    carnot::measure(
        {"Python function", kTests + "tool_functions.py:multiply", "multiply", R"({"a": 2, "b": 3})", "6.0"}, episodes,
        calls);
    carnot::measure(
        {"MCP server, started", "mcp python3 " + kTests + "mcp_server.py", "add", R"({"a": 2, "b": 3})", "5"}, episodes,
        calls);
  }
}
