// The attacks of the folder attacks, at every level that the kernel grants, started by root and by a user without
// rights.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/tools/sandbox/python_sandbox.h"
#include "testing/local_http_server.h"
#include "testing/missing.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Attack {
  std::string name{};
  std::vector<std::string> ends{};
  std::string code{};

  /// An attack that must end otherwise than by the time limit has enough time for it on a busy machine.
  double seconds() const { return std::ranges::find(ends, "timeout") == ends.end() ? 10 : 1; }
};

struct AttackList {
  std::string opening{};
  std::vector<Attack> attacks{};
};

AttackList read_attacks() {
  const std::filesystem::path folder = source_path("tests/sandbox/attacks");
  AttackList list{.opening = read_file(folder / "opening.py").value()};
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != "opening.py") text += read_file(entry.path()).value();
  for (const std::string_view line : split_lines(text)) {
    if (line.starts_with("#: ")) {
      std::istringstream words{std::string(line.substr(3))};
      std::string arrow;
      Attack attack;
      words >> attack.name >> arrow;
      for (std::string word; words >> word;) attack.ends.push_back(word);
      list.attacks.push_back(attack);
    } else {
      list.attacks.back().code.append(line).append("\n");
    }
  }
  return list;
}

/// True if a process of that name lives.
bool is_running(const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "comm");
    if (std::string comm; std::getline(in, comm) && comm == name) return true;
  }
  return false;
}

struct AttackedSandbox {
  std::string name{};
  SandboxTrial trial{};
  SandboxLevel level = SandboxLevel::Isolated;
};

std::ostream& operator<<(std::ostream& out, const AttackedSandbox& sandbox) { return out << sandbox.name; }

class Attacks : public ::testing::TestWithParam<AttackedSandbox> {
 protected:
  /// Files that the attacker could reach by their permissions.
  void SetUp() override {
    ::setenv("CARNOT_SANDBOX", build_path("carnot-sandbox").c_str(), 1);
    ::setenv("CARNOT_ATTACK_SECRET", "left behind", 1);
    folder_ = std::filesystem::temp_directory_path() / ("carnot_attacks_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "writable");
    ::chmod(folder_.c_str(), 0755);
    ::chmod((folder_ / "writable").c_str(), 0777);
    std::ofstream(folder_ / "secret") << "the secret";
    ::chmod((folder_ / "secret").c_str(), 0666);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_{};
};

TEST_P(Attacks, NoneSucceedsAndEachEndsAsAnOrdinaryResult) {
  if (GetParam().trial.as_user != 0 && ::geteuid() != 0) CARNOT_SKIP(Root, "only root can start it as another user");
  SandboxOptions limits;
  limits.least = SandboxLevel::Limited;
  limits.seconds = 10;
  limits.memory_mb = 256;
  limits.processes = 16;
  limits.open_files = 32;
  limits.disk_mb = 4;
  limits.output_kb = 16;
  limits.interpreter = "/usr/bin/python3";
  const auto sandbox = PythonSandbox::open(limits, GetParam().trial).value();
  if (level_of(sandbox->layers()) != GetParam().level)
    CARNOT_SKIP(Namespaces, "this machine grants " + sandbox->description() + " only");

  const std::string name = "attack" + std::to_string(::getpid());
  std::atomic<int> connections = 0;
  const testing::RawServer server([&](int) { ++connections; });
  const std::string port = server.url().substr(server.url().rfind(':') + 1);
  const std::string input = "{\"parent\": " + std::to_string(::getpid()) + ", \"secret\": \"" +
                            (folder_ / "secret").string() + "\", \"writable\": \"" + (folder_ / "writable").string() +
                            "\", \"port\": " + port + ", \"name\": \"" + name + "\"}\n";
  const AttackList list = read_attacks();
  ASSERT_GE(list.attacks.size(), 40u);
  std::atomic<std::size_t> next = 0;
  std::mutex one_at_a_time;
  std::vector<std::thread> attackers;
  for (int i = 0; i < 4; ++i)
    attackers.emplace_back([&] {
      for (std::size_t a = next++; a < list.attacks.size(); a = next++) {
        const Attack& attack = list.attacks[a];
        CodeResult result;
        std::string failure;
        try {
          result = sandbox->run({.code = list.opening + attack.code, .input = input, .seconds = attack.seconds()});
        } catch (const SandboxFailure& what) {
          failure = what.what();
        }
        const std::lock_guard lock(one_at_a_time);
        SCOPED_TRACE(attack.name + "\n" + result.standard_output.substr(0, 1000) + "\n" +
                     result.standard_error.substr(0, 2000) + "\nexit code " + std::to_string(result.exit_code));
        EXPECT_EQ(failure, "");
        EXPECT_THAT(result.standard_output, Not(HasSubstr("ESCAPED")));
        EXPECT_THAT(result.standard_output, Not(HasSubstr("the secret")));
        EXPECT_THAT(attack.ends, Contains(std::string(word_of(result.status))));
      }
    });
  for (std::thread& attacker : attackers) attacker.join();

  EXPECT_EQ(sandbox->run({.code = "print('still here')"}).standard_output, "still here\n");
  EXPECT_EQ(read_file(folder_ / "secret").value(), "the secret");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "writable"));
  EXPECT_FALSE(is_running(name));
  EXPECT_EQ(connections, 0);
  struct stat secret{};
  ASSERT_EQ(::stat((folder_ / "secret").c_str(), &secret), 0);
  EXPECT_EQ(secret.st_mode & 07777, 0666u);
}

INSTANTIATE_TEST_SUITE_P(
    Levels, Attacks,
    ::testing::Values(AttackedSandbox{.name = "IsolatedByRoot"},
                      AttackedSandbox{.name = "IsolatedByNobody", .trial = {.as_user = 65534}},
                      AttackedSandbox{.name = "IsolatedWithoutLandlock", .trial = {.landlock = false}},
                      AttackedSandbox{
                          .name = "ConfinedByRoot", .trial = {.namespaces = false}, .level = SandboxLevel::Confined},
                      AttackedSandbox{.name = "ConfinedByNobody",
                                      .trial = {.namespaces = false, .as_user = 65534},
                                      .level = SandboxLevel::Confined}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace carnot
