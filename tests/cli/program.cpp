#include "program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "carnot/base/check.h"
#include "carnot/base/file.h"
#include "testing/paths.h"

extern char** environ;

namespace carnot::testing {

namespace {

using Watch = std::function<void(pid_t child, const std::string& err)>;

ProgramRun run_watched(const std::vector<std::string>& arguments, const std::string& input, const Watch& watch) {
  const ScratchFolder scratch;
  const std::string in = scratch.write("in", input), out = scratch.path("out"), err = scratch.path("err");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);

  std::vector<std::string> words{build_path("carnot")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  pid_t child = 0;
  CARNOT_CHECK_EQ(posix_spawn(&child, words[0].c_str(), &files, nullptr, pointers.data(), environ), 0);
  posix_spawn_file_actions_destroy(&files);
  watch(child, err);
  int status = 0;
  CARNOT_CHECK_EQ(waitpid(child, &status, 0), child);
  const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return {.exit = exit, .out = read_file(out).value(), .err = read_file(err).value()};
}

}  // namespace

ProgramRun run_carnot(const std::vector<std::string>& arguments, const std::string& input) {
  return run_watched(arguments, input, [](pid_t, const std::string&) {});
}

ProgramRun signal_carnot(const std::vector<std::string>& arguments, const std::vector<TimedSignal>& signals) {
  return run_watched(arguments, "", [&](pid_t child, const std::string& err) {
    using namespace std::chrono;
    for (const TimedSignal& timed : signals) {
      const auto deadline = steady_clock::now() + minutes(1);
      while (!timed.ready(read_file(err).value()) && steady_clock::now() < deadline)
        std::this_thread::sleep_for(milliseconds(20));
      kill(child, timed.signal);
    }
  });
}

ProgramRun interrupt_carnot(const std::vector<std::string>& arguments, const std::function<bool()>& ready, int signal) {
  return signal_carnot(arguments, {{.ready = [&](const std::string&) { return ready(); }, .signal = signal}});
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "carnot_cli_XXXXXX").string();
  CARNOT_CHECK(mkdtemp(name.data()) != nullptr, name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  CARNOT_CHECK(write_file_atomically(file, content).ok(), file.string());
  return file.string();
}

}  // namespace carnot::testing
