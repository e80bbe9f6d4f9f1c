#include "carnot/tools/sandbox/python_sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "carnot/core/base/file.h"
#include "testing/missing.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Short limits, and the interpreter that every Debian has.
SandboxOptions short_limits() {
  SandboxOptions options;
  options.seconds = 10;
  options.memory_mb = 256;
  options.warm = 1;
  options.interpreter = "/usr/bin/python3";
  return options;
}

class PythonSandboxTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
    SandboxOptions options = short_limits();
    options.least = SandboxLevel::Limited;
    sandbox_ = PythonSandbox::open(options).value();
  }
  static void TearDownTestSuite() { sandbox_.reset(); }

  static CodeResult run(const std::string& code, bool show_last = false) {
    return sandbox_->run({.code = code, .show_last = show_last});
  }

  static std::shared_ptr<PythonSandbox> sandbox_;
};

std::shared_ptr<PythonSandbox> PythonSandboxTest::sandbox_;

TEST_F(PythonSandboxTest, CodeRunsAsTheInterpreterRunsIt) {
  const CodeResult result = run("import sys\nprint(6 * 7)\nprint('careful', file=sys.stderr)\nsys.exit(3)");
  EXPECT_EQ(result.standard_output, "42\n");
  EXPECT_EQ(result.standard_error, "careful\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.status, CodeStatus::Error);
  EXPECT_FALSE(result.truncated);
  EXPECT_GT(result.seconds, 0);
  EXPECT_EQ(run("").status, CodeStatus::Ok);
}

TEST_F(PythonSandboxTest, AnExceptionIsShownWithItsLineAndWithoutTheWorkersOwnFrames) {
  const CodeResult result = run("def half(x):\n    return x / 0\nprint('before')\nhalf(1)");
  EXPECT_EQ(result.standard_output, "before\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.standard_error,
            "Traceback (most recent call last):\n"
            "  File \"<code>\", line 4, in <module>\n    half(1)\n"
            "  File \"<code>\", line 2, in half\n    return x / 0\n           ~~^~~\n"
            "ZeroDivisionError: division by zero\n");
  EXPECT_THAT(run("x = (").standard_error, AllOf(StartsWith("  File \"<code>\", line 1"), HasSubstr("SyntaxError")));
}

TEST_F(PythonSandboxTest, EveryCallStartsFresh) {
  EXPECT_EQ(run("x = 5\nopen('left', 'w').write('x')\nimport math\nmath.pi = 3").status, CodeStatus::Ok);
  EXPECT_EQ(run("import math, os\nprint('x' in globals(), os.listdir('.'), math.pi)").standard_output,
            "False [] 3.141592653589793\n");
}

TEST_F(PythonSandboxTest, TheSameCodeGivesTheSameOutput) {
  const std::string code = "print(list({'one', 'two', 'three', 'four', 'five'}), hash('x'))";
  EXPECT_EQ(run(code).standard_output, run(code).standard_output);
}

TEST_F(PythonSandboxTest, AValueOnTheLastLineIsShownOnRequest) {
  EXPECT_EQ(run("x = 6\nx * 7", true).standard_output, "42\n");
  EXPECT_EQ(run("x = 6\nx * 7").standard_output, "");
  EXPECT_EQ(run("print(1)", true).standard_output, "1\n");
  EXPECT_EQ(run("[].append(1)", true).standard_output, "");
  EXPECT_EQ(run("x = 6", true).standard_output, "");
  EXPECT_THAT(run("y", true).standard_error, HasSubstr("NameError"));
}

TEST_F(PythonSandboxTest, InputAndFilesReachTheCode) {
  const CodeResult result = sandbox_->run({.code = "print(input(), open('a/b.txt').read(), len(open('big').read()))",
                                           .input = "typed\nmore\n",
                                           .files = {{"a/b.txt", "text"}, {"big", std::string(1 << 20, 'x')}}});
  EXPECT_EQ(result.standard_output, "typed text 1048576\n") << result.standard_error;
}

TEST_F(PythonSandboxTest, LongOutputIsCutAndSaysSo) {
  const CodeResult result = run("print('\\u00e4' * 100000)");
  EXPECT_EQ(result.status, CodeStatus::Ok);
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.standard_output.size(), 64u << 10);
  EXPECT_TRUE(run("import sys\nsys.stdout.buffer.write(b'\\xff')").standard_output == "\xef\xbf\xbd");
}

TEST_F(PythonSandboxTest, OrdinaryProgramsFindWhatTheyNeed) {
  const CodeResult result = run(R"(
import asyncio, concurrent.futures, decimal, fractions, hashlib, itertools, json, os, pathlib, pickle, random, re
import shutil, sqlite3, statistics, subprocess, tempfile, threading, time
async def nothing():
    await asyncio.sleep(0.001)
    return 'asyncio'
print(asyncio.run(nothing()))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda x: x * x, range(10))))
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'a.txt'
    path.write_text('text')
    shutil.copyfile(path, path.with_name('b.txt'))
    os.rename(path.with_name('b.txt'), path.with_name('c.txt'))
    print(sorted(p.name for p in pathlib.Path(folder).iterdir()))
print(sqlite3.connect(':memory:').execute('select 6 * 7').fetchone())
class Point:
    pass
print(type(pickle.loads(pickle.dumps(Point()))).__name__, os.path.expanduser('~') == os.getcwd())
)");
  EXPECT_EQ(result.standard_error, "");
  EXPECT_EQ(result.standard_output, "asyncio\n285\nchild\n['a.txt', 'c.txt']\n(42,)\nPoint True\n");
}

TEST_F(PythonSandboxTest, AProgramMayKillWhatItHasStarted) {
  if (!sandbox_->layers().namespaces)
    CARNOT_SKIP(Namespaces, "this machine grants " + sandbox_->description() + " only");
  const CodeResult result = run(R"(
import subprocess
for group in (False, True):
    child = subprocess.Popen(['sleep', '60'], start_new_session=group)
    child.kill()
    print(child.wait())
try:
    subprocess.run(['sleep', '60'], timeout=0.01)
except subprocess.TimeoutExpired:
    print('expired')
)");
  EXPECT_EQ(result.standard_output, "-9\n-9\nexpired\n") << result.standard_error;
}

TEST_F(PythonSandboxTest, CodeThatIsTooLongIsRefusedUnread) {
  const CodeResult result = run(std::string((256 << 10) + 1, '#'));
  EXPECT_EQ(result.status, CodeStatus::Refused);
  EXPECT_THAT(result.standard_error, HasSubstr("262145 bytes"));
  EXPECT_EQ(run(std::string(256 << 10, '#')).status, CodeStatus::Ok);
}

TEST_F(PythonSandboxTest, ManyCallsAtOnceEachGetTheirOwnOutput) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    threads.emplace_back([&, i] { outputs[i] = run("print(" + std::to_string(i) + ")").standard_output; });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], std::to_string(i) + "\n");
}

TEST_F(PythonSandboxTest, TheLayersInForceAreNamed) {
  EXPECT_EQ(shown({.namespaces = true, .landlock = 7, .system_calls = true}),
            "isolated (namespaces, Landlock 7, system calls, limits)");
  EXPECT_EQ(shown({.landlock = 3, .system_calls = true}), "confined (Landlock 3, system calls, limits)");
  EXPECT_EQ(shown({.namespaces = true, .landlock = 3}), "limited (namespaces, Landlock 3, limits)");
  EXPECT_EQ(sandbox_->description(), shown(sandbox_->layers()));
}

TEST(PythonSandboxErrors, BelowTheLeastLevelNothingStarts) {
  SandboxOptions options = short_limits();
  options.least = SandboxLevel::Confined;
  const auto opened = PythonSandbox::open(options, {.namespaces = false, .landlock = false});
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message,
              HasSubstr("level confined is the least that is accepted, but this machine grants limited ("));
  options.least = SandboxLevel::Isolated;
  EXPECT_THAT(PythonSandbox::open(options, {.namespaces = false}).error().message,
              HasSubstr("level isolated is the least that is accepted"));
}

TEST(PythonSandboxErrors, AnInterpreterOrModuleThatIsNotThereIsNamed) {
  SandboxOptions options = short_limits();
  options.least = SandboxLevel::Limited;
  options.imports = {"math", "no_such_module"};
  EXPECT_THAT(PythonSandbox::open(options).error().message, HasSubstr("No module named 'no_such_module'"));
  options.interpreter = "/nowhere/python3";
  EXPECT_THAT(PythonSandbox::open(options).error().message, HasSubstr("\"/nowhere/python3\" is not an interpreter"));
}

struct RunningProcess {
  pid_t parent = 0;
  std::string name{};
};

std::map<pid_t, RunningProcess> running_processes() {
  std::map<pid_t, RunningProcess> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "stat");
    std::string stat;
    if (!std::getline(in, stat)) continue;
    const std::size_t name = stat.find('(') + 1, name_end = stat.rfind(')');
    pid_t parent = 0;
    if (std::sscanf(stat.c_str() + name_end + 1, " %*c %d", &parent) == 1)
      processes[std::atoi(stat.c_str())] = {.parent = parent, .name = stat.substr(name, name_end - name)};
  }
  return processes;
}

/// A process of that name that this one has started, and those between, up from it; waits for it.
std::vector<pid_t> line_of(const std::string& name) {
  for (int tries = 0; tries < 2000; ++tries, ::usleep(10'000)) {
    const auto processes = running_processes();
    for (const auto& [id, process] : processes) {
      if (process.name != name) continue;
      std::vector<pid_t> line;
      for (auto at = processes.find(id); at != processes.end() && at->first != ::getpid();
           at = processes.find(at->second.parent))
        line.push_back(at->first);
      if (processes.contains(line.back()) && processes.at(line.back()).parent == ::getpid()) return line;
    }
  }
  return {};
}

/// What a call's failure says; empty if it has a result.
std::string failure_of(PythonSandbox& sandbox, const std::string& code) {
  try {
    (void)sandbox.run({.code = code});
    return "";
  } catch (const SandboxFailure& failure) {
    return failure.what();
  }
}

struct Killed {
  std::string name{};
  SandboxTrial trial{};
  std::size_t processes = 0;  ///< one below the other: the launcher, the namespaces' first, the interpreter
};

std::ostream& operator<<(std::ostream& out, const Killed& killed) { return out << killed.name; }

class KilledSandbox : public ::testing::TestWithParam<Killed> {};

INSTANTIATE_TEST_SUITE_P(Kinds, KilledSandbox,
                         ::testing::Values(Killed{.name = "Isolated", .processes = 3},
                                           Killed{.name = "Confined", .trial = {.namespaces = false}, .processes = 2}),
                         [](const auto& info) { return info.param.name; });

TEST_P(KilledSandbox, IsAFailureOfTheMachineryAndTheNextCallWorks) {
  ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
  SandboxOptions options = short_limits();
  options.least = SandboxLevel::Limited;
  const auto sandbox = PythonSandbox::open(options, GetParam().trial).value();
  const SandboxLayers& layers = sandbox->layers();
  if (layers.namespaces != GetParam().trial.namespaces || !layers.system_calls)
    CARNOT_SKIP(Namespaces, "this machine grants " + sandbox->description() + " only");
  for (std::size_t victim = 0; victim < GetParam().processes; ++victim) {
    const std::string name = "called" + std::to_string(victim);
    const std::string code =
        "import ctypes, time\nctypes.CDLL(None).prctl(15, b'" + name + "', 0, 0, 0)\ntime.sleep(60)";
    auto failure = std::async(std::launch::async, [&] { return failure_of(*sandbox, code); });
    const std::vector<pid_t> line = line_of(name);
    ASSERT_EQ(line.size(), GetParam().processes);
    ::kill(line[victim], SIGKILL);
    EXPECT_EQ(failure.get(), "sandbox: was ended from outside") << victim;
    EXPECT_EQ(sandbox->run({.code = "print('again')"}).standard_output, "again\n") << victim;
  }
}

TEST(PythonSandboxFolders, AFolderOfThePrivateOneIsSeenInTheRoot) {
  ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
  SandboxOptions options = short_limits();
  options.least = SandboxLevel::Limited;
  options.shown_at = "/testbed";
  const auto sandbox = PythonSandbox::open(options).value();
  if (!sandbox->layers().namespaces) return;
  const CodeResult result = sandbox->run({.code = R"(
import os
print(open('/testbed/a').read())
open('/testbed/b', 'w').close()
print(sorted(os.listdir('testbed')))
)",
                                          .files = {{"testbed/a", "text"}}});
  EXPECT_EQ(result.standard_output, "text\n['a', 'b']\n") << sandbox->description() << result.standard_error;
}

std::string code_with_children(int count) {
  return "import os, time\nfor i in range(" + std::to_string(count) +
         "):\n    if os.fork() == 0:\n        time.sleep(3)\n        os._exit(0)\ntime.sleep(1)";
}

TEST(CallsAtOneTime, HaveTheirNumberOfProcessesEach) {
  SandboxOptions options = short_limits();
  options.least = SandboxLevel::Limited;
  options.processes = 8;
  for (const bool namespaces : {true, false}) {
    const auto sandbox = PythonSandbox::open(options, {.namespaces = namespaces}).value();
    std::vector<std::future<CodeResult>> calls;
    for (int i = 0; i < 4; ++i)
      calls.push_back(std::async(std::launch::async, [&] { return sandbox->run({.code = code_with_children(6)}); }));
    for (std::future<CodeResult>& call : calls) {
      const CodeResult result = call.get();
      EXPECT_EQ(result.status, CodeStatus::Ok) << sandbox->description() << "\n" << result.standard_error;
    }
    EXPECT_EQ(sandbox->run({.code = code_with_children(9)}).status, CodeStatus::Refused) << sandbox->description();
  }
}

TEST(AbandonedSandbox, LeavesNoFolderBehind) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("carnot_abandoned_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
  const auto leave = [&] {
    ::setenv("TMPDIR", folder.c_str(), 1);
    SandboxOptions options = short_limits();
    options.least = SandboxLevel::Limited;
    const auto sandbox = PythonSandbox::open(options, {.namespaces = false});
    ::_exit(sandbox.ok() && !std::filesystem::is_empty(folder) ? 7 : 1);
  };
  EXPECT_EXIT(leave(), ::testing::ExitedWithCode(7), "");
  for (int tries = 0; tries < 500 && !std::filesystem::is_empty(folder); ++tries) ::usleep(20'000);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(PythonSandboxErrors, ALauncherThatIsGoneIsAFailureUntilItIsBack) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("carnot_launcher_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto launcher = folder / "carnot-sandbox", elsewhere = folder / "elsewhere";
  std::filesystem::copy_file(build_path("carnot-sandbox"), launcher);
  ::setenv("CARNOT_SANDBOX", launcher.c_str(), 1);
  SandboxOptions options = short_limits();
  options.least = SandboxLevel::Limited;
  options.warm = 0;
  const auto sandbox = PythonSandbox::open(options).value();
  EXPECT_EQ(failure_of(*sandbox, "1"), "");
  std::filesystem::rename(launcher, elsewhere);
  EXPECT_THAT(failure_of(*sandbox, "1"), HasSubstr("cannot start \"" + launcher.string() + "\": No such file"));
  EXPECT_THAT(PythonSandbox::open(options).error().message, HasSubstr("there is no " + launcher.string()));
  std::filesystem::rename(elsewhere, launcher);
  EXPECT_EQ(failure_of(*sandbox, "1"), "");
  std::filesystem::remove_all(folder);
  ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
}

}  // namespace
}  // namespace carnot
