#include "program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "carnot/core/base/check.h"
#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/file.h"
#include "testing/paths.h"

extern char** environ;

namespace carnot::testing {

namespace {

using Watch = std::function<void(pid_t child, const std::string& err)>;

/// Words as exec takes them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& additions) {
  std::vector<std::string> words = additions;
  for (char** word = environ; *word != nullptr; ++word) words.emplace_back(*word);
  return words;
}

/// Sends SIGKILL if the child outlives the deadline.
bool outlives(pid_t child, std::chrono::seconds deadline) {
  using namespace std::chrono;
  if (deadline == seconds(0)) return false;
  const auto end = steady_clock::now() + deadline;
  siginfo_t info{};
  while (steady_clock::now() < end) {
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child)
      return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  kill(child, SIGKILL);
  return true;
}

ProgramRun run_watched(const std::vector<std::string>& arguments, const ProgramSetting& setting, const Watch& watch) {
  const ScratchFolder scratch;
  const std::string in = scratch.write("in", setting.input), out = scratch.write("out", ""),
                    err = scratch.write("err", "");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY, 0600);
  for (const int descriptor : setting.closed) posix_spawn_file_actions_addclose(&files, descriptor);

  std::vector<std::string> words{build_path("carnot")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_with(setting.environment);

  pid_t child = 0;
  CARNOT_CHECK_EQ(posix_spawn(&child, words[0].c_str(), &files, nullptr, pointers_to(words).data(),
                              pointers_to(environment).data()),
                  0);
  posix_spawn_file_actions_destroy(&files);
  watch(child, err);
  const bool timed_out = outlives(child, setting.deadline);
  int status = 0;
  CARNOT_CHECK_EQ(waitpid(child, &status, 0), child);
  return {.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = read_file(out).value(),
          .err = read_file(err).value(),
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .timed_out = timed_out};
}

}  // namespace

ProgramRun run_carnot(const std::vector<std::string>& arguments, const std::string& input) {
  return run_watched(arguments, {.input = input}, [](pid_t, const std::string&) {});
}

ProgramRun run_carnot(const std::vector<std::string>& arguments, const ProgramSetting& setting) {
  return run_watched(arguments, setting, [](pid_t, const std::string&) {});
}

ProgramRun signal_carnot(const std::vector<std::string>& arguments, const std::vector<TimedSignal>& signals) {
  return run_watched(arguments, {}, [&](pid_t child, const std::string& err) {
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

int free_port() {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CARNOT_CHECK_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  CARNOT_CHECK_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
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
