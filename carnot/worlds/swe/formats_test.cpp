// What swe reads and writes: calls and observations of R2E-Gym, pytest's logs, patches, SWE-bench's rows, task files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/worlds/swe/scaffold.h"
#include "carnot/worlds/swe/swe_bench.h"
#include "carnot/worlds/swe/test_log.h"
#include "carnot/worlds/swe/texts.h"
#include "carnot/worlds/swe/workshop.h"
#include "testing/invented_and_published.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(SweCalls, AreTheFirstBlockOfAResponse) {
  const SweCall call = read_swe_call(
      "Let me look. <function=file_editor>\n<parameter=command>view</parameter>\n"
      "  <parameter = path > /testbed/a.py\n</parameter></function> and <function=finish></function>");
  EXPECT_EQ(call.name, "file_editor");
  EXPECT_THAT(call.parameters, ElementsAre(Pair("command", "view"), Pair("path", "/testbed/a.py")));
  EXPECT_THAT(swe_command(call), ElementsAre("file_editor", "view", "--path", "/testbed/a.py"));
}

TEST(SweCalls, KeepLinesAndWhatLooksLikeTagsInValues) {
  const SweCall call =
      read_swe_call("<function=execute_bash><parameter=cmd>\n echo '<b>'\n  ls </parameter></function>");
  EXPECT_THAT(call.parameters, ElementsAre(Pair("cmd", "echo '<b>'\n  ls")));
}

TEST(SweCalls, MayComeAnywhereInTheCommandLine) {
  const SweCall call = read_swe_call(
      "<function=file_editor><parameter=path>a</parameter><parameter=command>view</parameter>"
      "<parameter=path>b</parameter></function>");
  EXPECT_THAT(swe_command(call), ElementsAre("file_editor", "view", "--path", "b"));
}

TEST(SweCalls, AreNoneWithoutAWholeBlock) {
  for (const char* response : {"", "I would call view.", "<function=view>", "</function><function=view>",
                               "<function=></function>", "<function>view</function>"})
    EXPECT_EQ(read_swe_call(response).name, "") << response;
}

TEST(SweCalls, AreReadAsTheyAreWritten) {
  const SweCall call{.name = "search", .parameters = {{"search_term", "def f"}, {"path", "."}}};
  const SweCall read = read_swe_call("Why not.\n" + swe_call_text(call));
  EXPECT_EQ(read.name, call.name);
  EXPECT_EQ(read.parameters, call.parameters);
}

TEST(SweCalls, EndTheEpisodeByNamesWithFinishOrSubmit) {
  for (const char* name : {"finish", "submit", "Finish_now"}) EXPECT_TRUE(ends_episode({.name = name}));
  EXPECT_FALSE(ends_episode({.name = "execute_bash"}));
}

TEST(SweObservations, HaveTheExitCodeOfCommandsAlone) {
  EXPECT_EQ(swe_observation({.name = "execute_bash"}, "out\n", "0"),
            "Exit code: 0\nExecution output of [execute_bash]:\nout\n");
  EXPECT_EQ(swe_observation({.name = "search"}, "none\n", "0"), "Execution output of [search]:\nnone\n");
}

TEST(SweObservations, LoseTheMiddleOfLongOutputs) {
  std::string output;
  for (int line = 1; line <= 80; ++line) output += std::to_string(line) + "\n";
  EXPECT_THAT(swe_observation({.name = "execute_bash"}, output, "0"),
              EndsWith("\n40\n41\n" + output.substr(output.find("42\n"))));
  output += "81\n";
  EXPECT_THAT(swe_observation({.name = "execute_bash"}, output, "0"),
              AllOf(HasSubstr("\n40\n--------------------------------------------------\n"
                              "<Observation truncated in middle for saving context>\n"
                              "--------------------------------------------------\n42\n43\n"),
                    EndsWith("\n80\n81")));
  EXPECT_THAT(swe_observation({.name = "search"}, output, "0"), EndsWith(output));
}

TEST(SweTexts, AreThePublishedOnes) {
  EXPECT_THAT(std::string(kSweSystemPrompt), StartsWith("You are a programming agent who is provided a github issue"));
  const std::string user = swe_user_text("It {breaks}.");
  EXPECT_THAT(user,
              StartsWith("Consider the following github issue:\n<github_issue>\nIt {breaks}.\n</github_issue>\n"));
  EXPECT_THAT(user, EndsWith("reproduction python files. \n"));
  EXPECT_EQ(steps_remaining_text(2), "\nSteps Remaining: 2");
  EXPECT_EQ(steps_remaining_text(0), "\nYou have reached the maximum number of steps. Please submit your answer NOW.");
}

const std::string kLog =
    "=========================== test session starts ============================\n"
    "tests/test_a.py FAILED short test summary info\nPASSED tests/test_a.py::forged\n"
    "=========================== short test summary info ============================\n"
    "PASSED tests/test_a.py::TestB::test_c[a - b]\n"
    "\x1b[32mPASSED\x1b[0m tests/test_a.py::\x1b[1mtest_colour\x1b[0m\r\n"
    "SKIPPED [1] tests/test_a.py:3: not here\n"
    "XFAIL tests/test_a.py::test_later - soon\n"
    "FAILED tests/test_a.py::test_d - AssertionError: PASSED tests/test_a.py::x\n"
    "ERROR tests/test_e.py - ImportError: no\n"
    "PASSED tests/test_a.py::test_f\nERROR tests/test_a.py::test_f - at teardown\n"
    "============== 2 failed, 2 passed in 0.12s ==============\n";

TEST(PytestLog, ListsTheTestsOfTheLastSummary) {
  EXPECT_THAT(parse_pytest_log(kLog),
              UnorderedElementsAre(Pair("tests/test_a.py::TestB::test_c[a", TestStatus::Passed),
                                   Pair("tests/test_a.py::test_colour", TestStatus::Passed),
                                   Pair("tests/test_a.py::test_later", TestStatus::ExpectedFailure),
                                   Pair("tests/test_a.py::test_d", TestStatus::Failed),
                                   Pair("tests/test_e.py", TestStatus::Error),
                                   Pair("tests/test_a.py::test_f", TestStatus::Error)));
  EXPECT_TRUE(parse_pytest_log("PASSED tests/test_a.py::test_a").empty());
}

TEST(PytestLog, MustListTheExpectedTestsAndNoOthersWhereMapsAreCompared) {
  const TestStatuses two{{"t::a", TestStatus::Passed}, {"t::b", TestStatus::Passed}};
  EXPECT_TRUE(all_passed(two, {"t::a", "t::b"}, true));
  EXPECT_FALSE(all_passed(two, {"t::a"}, true));
  EXPECT_FALSE(all_passed(two, {"t::a", "t::b", "t::c"}, true));
  EXPECT_FALSE(all_passed(two, {"t::a", "t::c"}, true));
  EXPECT_FALSE(all_passed({{"t::a", TestStatus::ExpectedFailure}}, {"t::a"}, true));
  EXPECT_EQ(share_passed(two, {"t::a", "t::c"}, true), 0.5);
}

TEST(PytestLog, ComparesAsSweBenchDoesUpToTheFirstBlank) {
  const TestStatuses statuses{{"t::a[x y]", TestStatus::Passed},
                              {"t::a[x z]", TestStatus::Passed},
                              {"t::b", TestStatus::ExpectedFailure},
                              {"t::c", TestStatus::Failed}};
  EXPECT_TRUE(all_passed(statuses, {"t::a[x", "t::b"}, false));
  EXPECT_FALSE(all_passed(statuses, {"t::a[x", "t::c"}, false));
}

SweFiles files_of(std::initializer_list<std::pair<const char*, const char*>> contents) {
  SweFiles files;
  for (const auto& [path, content] : contents) files[path] = {.content = content};
  return files;
}

TEST(UnifiedDiff, ChangesMakesRemovesAndRenames) {
  const std::string patch =
      "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2,2 @@ heading\n-two\n+2\n+2.5\n"
      "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+made\n"
      "\\ No newline at end of file\n"
      "diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
      "diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n";
  SweFiles files = files_of({{"a.txt", "one\ntwo\nthree"}, {"old", "gone\n"}, {"p", "x"}});
  ASSERT_TRUE(apply_diff(parse_unified_diff(patch, "patch").value(), files, "patch").ok());
  EXPECT_EQ(files, files_of({{"a.txt", "one\n2\n2.5\nthree"}, {"new", "made"}, {"q", "x"}}));
}

TEST(UnifiedDiff, ThatDoesNotFitChangesNothing) {
  const auto patch =
      parse_unified_diff("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n--- a/c\n+++ b/c\n@@ -1 +1 @@\n-x\n+y\n", "p");
  SweFiles files = files_of({{"b", "x\n"}, {"c", "z\n"}});
  const SweFiles before = files;
  EXPECT_EQ(apply_diff(patch.value(), files, "p").error().message, "p: c: line 1 is not 'x'");
  EXPECT_EQ(files, before);
}

TEST(UnifiedDiff, NamesTheLineThatIsWrong) {
  for (const auto& [patch, message] :
       {std::pair("--- a/b\n", "p, line 2: expected '+++ ' and a path"),
        std::pair("--- a/../b\n+++ b/b\n", "p, line 1: '../b' is no path in the repository"),
        std::pair("--- a/b\n+++ b/b\n@@ -1,2 +1 @@\n-x\n", "p, line 5: the hunk ends before its last line"),
        std::pair("Binary files a/b and b/b differ\n", "p, line 1: a change of a binary file")})
    EXPECT_EQ(parse_unified_diff(patch, "p").error().message, message);
}

TEST(UnifiedDiff, AppliesWhatGitWritesForRandomFiles) {
  const std::filesystem::path folder = ::testing::TempDir() + "/unified_diff";
  std::filesystem::remove_all(folder);
  RandomStream random(3);
  SweFiles before, after;
  const auto text = [&](std::vector<std::string>& lines) {
    std::string joined;
    for (const std::string& line : lines) joined += line + "\n";
    if (!joined.empty() && random.chance(0.2)) joined.pop_back();
    return joined;
  };
  for (int number = 0; number < 40; ++number) {
    const std::string name = "f" + std::to_string(number);
    std::vector<std::string> lines(random.below(30));
    for (std::string& line : lines) line = std::string(random.below(3), ' ') + std::to_string(random.below(6));
    before[name].content = text(lines);
    for (int change = 0; change < 3; ++change) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(lines.size() + 1));
      if (random.chance(0.5) || at == std::ssize(lines))
        lines.insert(lines.begin() + at, "+" + std::to_string(change));
      else
        lines.erase(lines.begin() + at);
    }
    after[name].content = text(lines);
  }
  for (const auto& [side, files] : {std::pair("old", &before), std::pair("new", &after)}) {
    std::filesystem::create_directories(folder / side);
    for (const auto& [name, file] : *files) ASSERT_TRUE(write_file_atomically(folder / side / name, file.content).ok());
  }
  const std::string command = "cd '" + folder.string() + "' && git diff --no-index --no-color -U1 old new > patch";
  (void)!std::system(command.c_str());
  auto patch = parse_unified_diff(read_file(folder / "patch").value(), "patch").value();
  for (FileDiff& diff : patch)
    for (std::string* path : {&diff.old_path, &diff.new_path})
      if (!path->empty()) *path = path->substr(4);  // without "old/" and "new/"
  EXPECT_GT(patch.size(), 30u);
  ASSERT_TRUE(apply_diff(patch, before, "patch").ok());
  EXPECT_EQ(before, after);
}

/// Rows of invented repositories, or SWE-bench's own.
class SweBenchRows : public testing::InventedAndPublished {
 protected:
  static Result<std::vector<SweBenchRow>> rows() {
    const auto text =
        read_file(published() ? published_path("swe/instances.jsonl") : source_path("tests/tasks/swe/instances.jsonl"));
    return parse_swe_bench_rows(text.value(), "instances.jsonl");
  }
};
INSTANTIATE_TEST_SUITE_P(Data, SweBenchRows, ::testing::Bool(), testing::data_name);

TEST_P(SweBenchRows, AreRead) {
  const auto all = rows();
  ASSERT_TRUE(all.ok()) << all.error().message;
  ASSERT_EQ(all->size(), published() ? 14u : 3u);
  for (const SweBenchRow& row : *all) {
    EXPECT_FALSE(row.fail_to_pass.empty()) << row.instance_id;
    for (const auto* patch : {&row.patch, &row.test_patch})
      for (const FileDiff& diff : *patch) EXPECT_FALSE(diff.hunks.empty()) << row.instance_id;
  }
}

/// What a patch shows of the files before it: enough of a repository for the patch to fit.
SweFiles shown_before(const std::vector<FileDiff>& patch) {
  SweFiles files;
  for (const FileDiff& diff : patch) {
    if (diff.old_path.empty()) continue;
    std::string& content = files[diff.old_path].content;
    std::size_t line = 1;
    for (const DiffHunk& hunk : diff.hunks) {
      for (; line < hunk.old_start; ++line) content += "...\n";
      for (const std::string& one : hunk.lines) {
        if (one.front() == '+') continue;
        content += one.substr(1) + "\n";
        ++line;
      }
    }
  }
  return files;
}

TEST_P(SweBenchRows, BecomeTasks) {
  const auto all = rows().value();
  for (const SweBenchRow& row : all) {
    SweFiles files = shown_before(row.patch);
    files.merge(shown_before(row.test_patch));
    const auto task = swe_bench_task(row, files);
    ASSERT_TRUE(task.ok()) << task.error().message;
    EXPECT_EQ(task->id, row.instance_id);
    EXPECT_EQ(task->repository, files);
    EXPECT_FALSE(task->test_files.empty());
    EXPECT_FALSE(task->no_others);
    for (const FileDiff& diff : row.test_patch)
      for (const DiffHunk& hunk : diff.hunks)
        for (const std::string& line : hunk.lines) {
          if (line.front() != '+') continue;
          EXPECT_THAT(task->tests.at(diff.new_path).content, HasSubstr(line.substr(1) + "\n"));
        }
  }
}

TEST(SweBenchFile, NamesEveryBadKey) {
  const auto rows = parse_swe_bench_rows("{\"instance_id\": 5, \"FAIL_TO_PASS\": \"[1]\"}\nno JSON\n", "rows");
  ASSERT_FALSE(rows.ok());
  EXPECT_THAT(rows.error().message, AllOf(HasSubstr("rows:1: instance_id: expected a non-empty string"),
                                          HasSubstr("rows:1: FAIL_TO_PASS: expected"),
                                          HasSubstr("rows:1: patch: this key is missing"), HasSubstr("rows:2")));
}

TEST(SweTaskFile, SaysWhereItIsWrong) {
  const auto message = [](const std::string& text) { return parse_swe_task(text, "t").error().message; };
  EXPECT_THAT(message("difficulty: 9\n"), HasSubstr("t, line 1: expected 'difficulty: N'"));
  EXPECT_THAT(message("difficulty: 1\n=== fil a\n"), HasSubstr("t, line 2: 'fil' is no section"));
  EXPECT_THAT(message("=== file ../a\n"), HasSubstr("t, line 1: '../a' is no path in the repository"));
  EXPECT_THAT(message("=== bug a\n--- right\nx\n--- wrong\ny\n"), HasSubstr("there is no file 'a'"));
  EXPECT_THAT(message("=== file a\nx\nx\n=== bug a\n--- right\nx\n--- wrong\ny\n"), HasSubstr("has to occur once"));
}

TEST(SweToolAnswer, IsTakenWholeOrNotAtAll) {
  SweFolder folder = folder_with(files_of({{"a.py", "1"}, {"b/c.py", "2"}}));
  EXPECT_THAT(folder.folders, ElementsAre("testbed", "testbed/b"));
  const SweFolder before = folder;
  for (const char* answer :
       {"", "[]", "{}", R"({"output": "", "exit_code": 0})",
        R"({"output":"","exit_code":"0","gone":[],"texts":{"../x":""},"bytes":{},"folders":[],"executable":[]})",
        R"({"output":"","exit_code":"0","gone":["testbed/a.py"],"texts":{},"bytes":{"x":"f"},"folders":[],)"
        R"("executable":[]})"}) {
    EXPECT_FALSE(take_tool_answer(answer, folder).ok()) << answer;
    EXPECT_EQ(folder, before);
  }
  const auto output = take_tool_answer(
      R"({"output":"done","exit_code":"0","gone":["testbed/a.py"],"texts":{"testbed/d":"new"},"bytes":{"e":"00ff"},)"
      R"("folders":["testbed"],"executable":["testbed/d"]})",
      folder);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->text, "done");
  EXPECT_EQ(folder.files.count("testbed/a.py"), 0u);
  EXPECT_EQ(folder.files.at("testbed/d"), (SweFile{.content = "new", .executable = true}));
  EXPECT_EQ(folder.files.at("e").content, std::string("\0\xff", 2));
  EXPECT_THAT(folder.folders, ElementsAre("testbed"));
}

}  // namespace
}  // namespace carnot
