// The thirty repositories: each is broken, its repair repairs it, and its tests tell the difference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/swe/factory.h"
#include "carnot/worlds/swe/test_log.h"
#include "testing/paths.h"

namespace carnot {
namespace {

const std::vector<SweTask>& tasks() {
  static const std::vector<SweTask> read = built_in_swe_tasks().value();
  return read;
}

void write_files(const std::filesystem::path& folder, SweFiles files, const SweFiles& tests) {
  for (const auto& [path, file] : tests) files[path] = file;
  for (const auto& [path, file] : files) {
    std::filesystem::create_directories((folder / path).parent_path());
    ASSERT_TRUE(write_file_atomically(folder / path, file.content).ok());
  }
}

/// The repository with the repair.
SweFiles repaired(const SweTask& task) {
  SweFiles files = task.repository;
  // The last fault was put in last.
  for (auto edit = task.repair.rbegin(); edit != task.repair.rend(); ++edit) {
    std::string& content = files.at(edit->path).content;
    content.replace(content.find(edit->wrong), edit->wrong.size(), edit->right);
  }
  return files;
}

TEST(SweTasks, AreThirtySixOfEachDifficulty) {
  std::map<int, int> counts;
  for (const SweTask& task : tasks()) ++counts[task.difficulty];
  EXPECT_EQ(counts, (std::map<int, int>{{1, 6}, {2, 6}, {3, 6}, {4, 6}, {5, 6}}));
}

TEST(SweTasks, AreRepairedByEditsThatTheFileEditorAccepts) {
  for (const SweTask& task : tasks()) {
    SweFiles files = task.repository;
    for (const SweCall& call : demonstrated_calls(task)) {
      const SweCall read = read_swe_call(swe_call_text(call));
      if (read.parameters.front().second != "str_replace") continue;
      std::string& content = files.at(read.parameters[1].second.substr(9)).content;
      const std::string& wrong = read.parameters[2].second;
      const std::size_t at = content.find(wrong);
      ASSERT_NE(at, std::string::npos) << task.id;
      EXPECT_EQ(content.find(wrong, at + 1), std::string::npos) << task.id << ": " << wrong;
      content.replace(at, wrong.size(), read.parameters[3].second);
    }
    EXPECT_EQ(files, repaired(task)) << task.id;
  }
}

TEST(SweTasks, FailTheirHiddenTestsWithTheFaultAndPassAllWithTheRepair) {
  const std::filesystem::path folder = ::testing::TempDir() + "/swe_tasks";
  std::filesystem::remove_all(folder);
  for (const SweTask& task : tasks()) {
    write_files(folder / (task.id + ".broken"), task.repository, task.tests);
    write_files(folder / (task.id + ".repaired"), repaired(task), task.tests);
  }
  const std::string command =
      "/usr/bin/python3 " + source_path("tests/tasks/run_pytest.py") + " '" + folder.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  for (const SweTask& task : tasks()) {
    const auto statuses = [&](const std::string& state) {
      return parse_pytest_log(read_file(folder / (task.id + "." + state + ".log")).value());
    };
    const TestStatuses good = statuses("repaired"), bad = statuses("broken");
    EXPECT_TRUE(all_passed(good, task.passing, true)) << task.id;
    EXPECT_FALSE(all_passed(bad, task.passing, true)) << task.id;
    bool hidden_fails = false;
    for (const auto& [name, status] : bad) {
      const bool is_visible = task.repository.count(name.substr(0, name.find("::"))) > 0;
      EXPECT_TRUE(!is_visible || status == TestStatus::Passed) << name << " can be seen, and gives the fault away";
      hidden_fails |= !is_visible && status != TestStatus::Passed;
    }
    EXPECT_TRUE(hidden_fails) << task.id;
  }
}

}  // namespace
}  // namespace carnot
