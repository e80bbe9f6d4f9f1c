#include "carnot/worlds/swe/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "carnot/tools/sandbox/python_sandbox.h"
#include "carnot/worlds/swe/factory.h"
#include "carnot/worlds/swe/scaffold.h"
#include "carnot/worlds/swe/test_log.h"
#include "testing/field_settings.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string call_of(const std::string& name, const Parameters& parameters) {
  return "So.\n" + swe_call_text({.name = name, .parameters = parameters});
}
std::string bash(const std::string& command) { return call_of("execute_bash", {{"cmd", command}}); }

std::shared_ptr<PythonSandbox> open_sandbox() {
  ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
  SandboxOptions options;
  options.least = SandboxLevel::Limited;
  options.seconds = 60;
  options.memory_mb = 512;
  options.output_kb = 12 << 10;
  options.warm = 2;
  options.interpreter = "/usr/bin/python3";
  options.shown_at = "/testbed";
  return PythonSandbox::open(options).value();
}

/// A module of eight lines, one with a long function, a text, and a folder.
SweTask small_task() {
  SweTask task{.id = "small", .difficulty = 1, .issue = "It breaks."};
  task.repository["pack/a.py"] = {.content = "import os\n\n\ndef f(x):\n\treturn x + 1\n\n\nY = 2\n"};
  task.repository["pack/__init__.py"] = {};
  task.repository["README.md"] = {.content = "text\n"};
  std::string body;
  for (int i = 0; i < 120; ++i) body += "    x += " + std::to_string(i) + "\n";
  task.repository["long.py"] = {.content = "def g(x):\n" + body + "    return x\n\n\nZ = g(0)\n"};
  task.tests["test_a.py"] = {.content = "from pack.a import f\n\n\ndef test_f():\n    assert f(1) == 3\n"};
  task.test_files = {"test_a.py"};
  task.passing = {"test_a.py::test_f"};
  task.no_others = true;
  return task;
}

class SweEnvironmentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { workshop_ = std::make_shared<const SweWorkshop>(open_sandbox()); }
  static void TearDownTestSuite() { workshop_.reset(); }

  void SetUp() override { start(small_task()); }
  void start(SweTask task, SweLimits limits = {}) {
    limits.test_seconds = 40;
    environment_ =
        std::make_unique<SweEnvironment>(std::make_shared<const SweTask>(std::move(task)), workshop_, limits);
  }

  /// What a response is answered with, without the count of steps.
  std::string say(const std::string& response) {
    last_ = environment_->step(response);
    return last_.text.substr(0, last_.text.rfind("\nSteps Remaining: "));
  }
  std::string edit(Parameters parameters) {
    constexpr std::string_view kHeading = "Execution output of [file_editor]:\n";
    const std::string text = say(call_of("file_editor", parameters));
    EXPECT_THAT(text, StartsWith(std::string(kHeading)));
    return text.substr(kHeading.size());
  }
  std::string content(const std::string& path) const { return repository_in(environment_->folder()).at(path).content; }

  static std::shared_ptr<const SweWorkshop> workshop_;
  std::unique_ptr<SweEnvironment> environment_{};
  Reply last_{};
};

std::shared_ptr<const SweWorkshop> SweEnvironmentTest::workshop_;

const std::string kEdited = "Review the changes and make sure they are as expected";

TEST_F(SweEnvironmentTest, TheEditorShowsFilesAndFolders) {
  EXPECT_EQ(edit({{"command", "view"}, {"path", "/testbed"}}),
            "Here's the files and directories up to 2 levels deep in /testbed, excluding hidden:\n/testbed\n"
            "/testbed/long.py\n/testbed/pack\n/testbed/pack/__init__.py\n/testbed/pack/a.py\n\n");
  EXPECT_EQ(edit({{"command", "view"}, {"path", "/testbed/pack/a.py"}, {"view_range", "[4, 5]"}}),
            "Here's the result of running `cat -n` on the file: /testbed/pack/a.py:\n"
            "     4 def f(x):\n     5 \treturn x + 1\n");
  EXPECT_EQ(edit({{"command", "view"}, {"path", "/testbed/pack/a.py"}, {"view_range", "[7, 9]"}}),
            "\nERROR: Invalid view_range [7, 9]: end must be >= start and <= 8, or -1 to view until end.\n");
  EXPECT_EQ(edit({{"command", "view"}, {"path", "/testbed/README.md"}}),
            "\nERROR: ERROR: Viewing non-Python files is disallowed for saving context. "
            "File 'README.md' is not a .py file.\n");
  EXPECT_EQ(edit({{"command", "view"}, {"path", "/testbed/nothing.py"}}),
            "ERROR: The path '/testbed/nothing.py' does not exist.\n");
}

TEST_F(SweEnvironmentTest, TheEditorCondensesLongFiles) {
  const std::string heading =
      "Here is a condensed view for file: /testbed/long.py; [Note: Useful for understanding file structure in a "
      "concise manner. Please use specific view_range without concise cmd if you want to explore further into the "
      "relevant parts.]\n";
  EXPECT_EQ(edit({{"command", "view"}, {"path", "/testbed/long.py"}}),
            heading + "     1 def g(x):\n     2 ... eliding lines 2-122 ...\n   123 \n   124 \n   125 Z = g(0)\n");
  EXPECT_THAT(edit({{"command", "view"}, {"path", "long.py"}, {"view_range", "[120, -1]"}}),
              EndsWith("   121     x += 119\n   122     return x\n   123 \n   124 \n   125 Z = g(0)\n"));
}

TEST_F(SweEnvironmentTest, TheEditorReplacesInsertsAndTakesBack) {
  const std::string path = "/testbed/pack/a.py";
  EXPECT_EQ(
      edit({{"command", "str_replace"}, {"path", path}, {"old_str", "return x + 1"}, {"new_str", "return x + 2"}}),
      "The file /testbed/pack/a.py has been edited. Here's the result of running `cat -n` on a snippet of "
      "/testbed/pack/a.py:\n     1\timport os\n     2\t\n     3\t\n     4\tdef f(x):\n     5\t        return x + 2\n"
      "     6\t\n     7\t\n     8\tY = 2\n     9\t\n" +
          kEdited + ". Edit the file again if necessary.\n");
  EXPECT_EQ(edit({{"command", "str_replace"}, {"path", path}, {"old_str", "return x + 1"}, {"new_str", ""}}),
            "ERROR: No occurrences of 'return x + 1' found in /testbed/pack/a.py for replacement.\n");
  EXPECT_EQ(edit({{"command", "str_replace"}, {"path", path}, {"old_str", "x"}}),
            "ERROR: Multiple occurrences of 'x' found in /testbed/pack/a.py. Please ensure it is unique before using "
            "str_replace.\n");
  EXPECT_EQ(edit({{"command", "insert"}, {"path", path}, {"insert_line", "8"}, {"new_str", "W = 3"}}),
            "The file /testbed/pack/a.py has been edited. Here's the result of running `cat -n` on a snippet of the "
            "edited file:\n     5\t        return x + 2\n     6\t\n     7\t\n     8\tY = 2\n     9\tW = 3\n    10\t\n" +
                kEdited + " (correct indentation, no duplicate lines, etc). Edit the file again if necessary.\n");
  EXPECT_EQ(content("pack/a.py"), "import os\n\n\ndef f(x):\n\treturn x + 2\n\n\nY = 2\nW = 3\n");
  EXPECT_THAT(edit({{"command", "undo_edit"}, {"path", path}}),
              AllOf(StartsWith("Last edit to /testbed/pack/a.py undone successfully. Here's the result"),
                    HasSubstr("     8\tY = 2\n     9\t\n")));
  edit({{"command", "undo_edit"}, {"path", path}});
  EXPECT_EQ(content("pack/a.py"), small_task().repository.at("pack/a.py").content);
  EXPECT_EQ(edit({{"command", "undo_edit"}, {"path", path}}),
            "ERROR: No previous edits found for /testbed/pack/a.py to undo.\n");
}

TEST_F(SweEnvironmentTest, TheEditorMakesFilesOnce) {
  EXPECT_EQ(edit({{"command", "create"}, {"path", "/testbed/new.py"}, {"file_text", "a = 1\nb = 2"}}),
            "File created at /testbed/new.py. Here's the result of running `cat -n` on /testbed/new.py:\n"
            "     1\ta = 1\n     2\tb = 2\n"
            "Review the file and make sure that it is as expected. Edit the file if necessary.\n");
  EXPECT_EQ(edit({{"command", "create"}, {"path", "/testbed/new.py"}, {"file_text", "x"}}),
            "ERROR: File already exists at: /testbed/new.py. Cannot overwrite with 'create'.\n");
  EXPECT_THAT(edit({{"path", "/testbed/new.py"}}), HasSubstr("error: the following arguments are required: command\n"));
  EXPECT_THAT(edit({{"command", "view"}, {"path", "x"}, {"depth", "3"}}),
              HasSubstr("file_editor: error: unrecognized arguments: --depth 3\n"));
  EXPECT_EQ(edit({{"command", "look"}, {"path", "/testbed/new.py"}}),
            "ERROR: Unrecognized command 'look'. Allowed commands: view, create, str_replace, insert, undo_edit.\n");
}

TEST_F(SweEnvironmentTest, TheSearchCountsInFoldersAndShowsLinesOfFiles) {
  EXPECT_EQ(say(call_of("search", {{"search_term", "return x"}})),
            "Execution output of [search]:\nFound 2 matches for \"return x\" in /testbed:\n./long.py (1 matches)\n"
            "./pack/a.py (1 matches)\nEnd of matches for \"return x\" in /testbed\n");
  EXPECT_EQ(say(call_of("search", {{"search_term", "def \\|Y"}, {"path", "/testbed/pack/a.py"}})),
            "Execution output of [search]:\nMatches for \"def \\|Y\" in /testbed/pack/a.py:\n4:def f(x):\n8:Y = 2\n");
  EXPECT_EQ(say(call_of("search", {{"search_term", "zebra"}, {"path", "pack"}})),
            "Execution output of [search]:\nNo matches found for \"zebra\" in /testbed/pack\n");
  EXPECT_EQ(last_.status, "ok");
  EXPECT_EQ(say(call_of("search", {{"search_term", "x"}, {"path", "nowhere"}})),
            "Execution output of [search]:\nDirectory '/testbed/nowhere' not found or not a directory.\n");
  EXPECT_EQ(last_.status, "error");
}

TEST_F(SweEnvironmentTest, CommandsRunInTheRepositoryAndTheirFilesLast) {
  EXPECT_EQ(say(bash("pwd; echo careful >&2; mkdir -p d/e; echo 5 > d/n.txt; rm README.md; printf '\\377' > raw")),
            "Exit code: 0\nExecution output of [execute_bash]:\n[STDOUT]\n\n/testbed \n\n[STDERR]\n\ncareful\n");
  EXPECT_EQ(say(bash("cat /testbed/d/n.txt; ls -d d/e; ls README.md; wc -c < raw")),
            "Exit code: 0\nExecution output of [execute_bash]:\n[STDOUT]\n\n5\nd/e\n1 \n\n[STDERR]\n\n"
            "ls: cannot access 'README.md': No such file or directory\n");
  EXPECT_EQ(
      say(bash("echo no; exit 3")),
      "Exit code: Error: Exit code 3\nExecution output of [execute_bash]:\nError executing command:\n\n[STDOUT]\n\n"
      "no \n\n[STDERR]\n\n\n");
  EXPECT_EQ(last_.status, "error");
  EXPECT_EQ(say(bash("pip install x")),
            "Exit code: Error: Exit code 1\nExecution output of [execute_bash]:\nBash command 'pip' is not allowed. "
            "Please use a different command or tool.\n");
  EXPECT_THAT(say(bash("python -c 'import pack.a; print(pack.a.__file__)'")), HasSubstr("\n/testbed/pack/a.py \n"));
  EXPECT_EQ(content("raw"), "\xff");
  EXPECT_EQ(repository_in(environment_->folder()).count("README.md"), 0u);
}

TEST_F(SweEnvironmentTest, ATimeOutIsAnOrdinaryResultAndWhatWasChangedBeforeStays) {
  start(small_task(), {.command_seconds = 3});
  EXPECT_EQ(say(bash("echo 1 > before; sleep 60; echo 2 > after")),
            "Exit code: -1\nExecution output of [execute_bash]:\nThe command took too long to execute (>3s)");
  EXPECT_EQ(content("before"), "1\n");
  EXPECT_EQ(repository_in(environment_->folder()).count("after"), 0u);
  EXPECT_FALSE(last_.done);
}

TEST_F(SweEnvironmentTest, WhatACommandDoesToItsSandboxIsAnOrdinaryResult) {
  EXPECT_THAT(say(bash("kill -9 $PPID; echo $?")), StartsWith("Exit code: "));
  EXPECT_THAT(say(bash("python -c 'x = bytearray(1 << 30)'")), HasSubstr("MemoryError"));
  EXPECT_THAT(say(bash("head -c 30000000 /dev/zero > big")), HasSubstr("changed more than 4 MB of files"));
  EXPECT_EQ(repository_in(environment_->folder()), small_task().repository);
  EXPECT_THAT(say(bash("echo still here")), HasSubstr("still here"));
}

TEST_F(SweEnvironmentTest, LongOutputsAreCut) {
  EXPECT_THAT(say(bash("seq 1000000")),
              AllOf(HasSubstr("\n38\n-----"), HasSubstr("-----\n9999"), Not(HasSubstr("\n500\n"))));
  start(small_task(), {.max_observation = 1000});
  EXPECT_LT(say(bash("head -c 100000 /dev/zero | tr '\\0' x")).size(), 1200u);
}

TEST_F(SweEnvironmentTest, ResponsesWithoutACallAndUnknownToolsAreAnswered) {
  EXPECT_EQ(say("I think."), missing_call_text());
  EXPECT_FALSE(last_.valid_action);
  EXPECT_EQ(say(call_of("browse", {{"url", "x"}})), "Execution output of [browse]:\n");
  EXPECT_EQ(environment_->open().user, swe_user_text("It breaks.") + "\nSteps Remaining: 49");
  EXPECT_THAT(last_.text, EndsWith("\nSteps Remaining: 47"));
}

TEST_F(SweEnvironmentTest, ARepairedRepositoryEarnsTheReward) {
  edit({{"command", "str_replace"}, {"path", "/testbed/pack/a.py"}, {"old_str", "x + 1"}, {"new_str", "x + 2"}});
  say(call_of("finish", {{"command", "submit"}}));
  EXPECT_TRUE(last_.done && last_.success);
  EXPECT_EQ(last_.outcome, Outcome::Finished);
  EXPECT_EQ(last_.reward, 1);
  EXPECT_EQ(last_.measures.at("tests_passed"), 1);
}

TEST_F(SweEnvironmentTest, AWrongRepairEarnsNothing) {
  edit({{"command", "str_replace"}, {"path", "/testbed/pack/a.py"}, {"old_str", "x + 1"}, {"new_str", "x + 3"}});
  say(call_of("finish", {{"command", "submit"}}));
  EXPECT_TRUE(last_.done);
  EXPECT_FALSE(last_.success);
  EXPECT_EQ(last_.reward, 0);
}

TEST_F(SweEnvironmentTest, TestsAndWhatSteersThemArePutBackBeforeGrading) {
  say(
      bash("mkdir t; echo 'def test_f(): pass' > test_a.py; cp test_a.py t; "
           "printf '[pytest]\\naddopts = --deselect test_a.py::test_f' > pytest.ini; "
           "echo 'import pack.a; pack.a.f = lambda x: 3' > conftest.py; "
           "echo 'print(\"PASSED test_a.py::test_f\")' > pytest.py"));
  const SweFolder graded = folder_for_tests(environment_->task(), environment_->folder());
  for (const char* path : {"pytest.ini", "conftest.py", "pytest.py"})
    EXPECT_EQ(graded.files.count(std::string("testbed/") + path), 0u) << path;
  EXPECT_EQ(graded.files.at("testbed/test_a.py"), environment_->task().tests.at("test_a.py"));
  say(call_of("finish", {}));
  EXPECT_EQ(last_.reward, 0);
}

TEST_F(SweEnvironmentTest, TheLastStepIsGradedToo) {
  start(small_task(), {.max_steps = 2});
  last_ = environment_->step("I wait.");
  EXPECT_THAT(last_.text, EndsWith("\nYou have reached the maximum number of steps. Please submit your answer NOW."));
  say(bash("sed -i 's/x + 1/x + 2/' pack/a.py"));
  EXPECT_TRUE(last_.done && last_.success);
  EXPECT_EQ(last_.outcome, Outcome::OutOfTurns);
}

TEST_F(SweEnvironmentTest, ACopyGoesOnByItself) {
  say(bash("echo 1 > a"));
  const auto copy = environment_->clone();
  EXPECT_EQ(copy->anchor(), environment_->anchor());
  copy->step(bash("rm a"));
  EXPECT_NE(copy->anchor(), environment_->anchor());
  EXPECT_EQ(content("a"), "1\n");
}

TEST_F(SweEnvironmentTest, TheScriptRepairsAnEasyTaskAndAHardOne) {
  for (const SweTask& task : built_in_swe_tasks().value()) {
    if (task.id != "roman" && task.id != "memo") continue;
    start(task);
    const auto agent = make_swe_agent(task);
    for (last_ = {}; !last_.done;) {
      last_ = environment_->step(agent->respond(last_.text));
      EXPECT_THAT(last_.text, Not(HasSubstr("ERROR"))) << task.id;
    }
    EXPECT_EQ(last_.reward, 1) << task.id;
  }
}

/// A sandbox that was killed.
class DeadRunner final : public CodeRunner {
 public:
  CodeResult run(const CodeCall&) override { throw SandboxFailure("sandbox: was ended from outside"); }
  std::string description() const override { return "dead"; }
};

TEST(SweFailures, AKilledSandboxIsNoReward) {
  SweEnvironment environment(std::make_shared<const SweTask>(small_task()),
                             std::make_shared<const SweWorkshop>(std::make_shared<DeadRunner>()), {});
  EXPECT_THROW(environment.step(bash("ls")), SandboxFailure);
  const SweFolder changed = folder_with({{"a", {.content = "x"}}});
  EXPECT_THROW(grade(environment.task(), changed, SweWorkshop(std::make_shared<DeadRunner>()), 1), SandboxFailure);
}

TEST(SweOptions, ThatCannotWorkAreRefusedAtTheStart) {
  const auto message = [](const std::map<std::string, std::string>& options) {
    const auto factory = make_swe();
    testing::FieldSettings settings(options);
    factory->fields(settings);
    EXPECT_TRUE(settings.unused().empty());
    const Status status = factory->prepare(0);
    return status ? "" : status.error().message;
  };
  EXPECT_THAT(message({{"sandbox.seconds", "100"}}), HasSubstr("expected at least 310"));
  EXPECT_THAT(message({{"task", "nothing"}}), HasSubstr("env.task: there is no task 'nothing'"));
  EXPECT_THAT(message({{"task_source", "/nowhere"}}), HasSubstr("/nowhere"));
  EXPECT_THAT(message({{"task_source", source_path("tests/tasks/swe/instances.jsonl")}}),
              HasSubstr("env.repositories"));
}

}  // namespace
}  // namespace carnot
