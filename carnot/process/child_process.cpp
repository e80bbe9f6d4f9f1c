#include "carnot/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "carnot/base/check.h"

extern char** environ;

namespace carnot {
namespace {

/// `own`, then what this process has under other names.
std::vector<char*> variables(const std::vector<std::string>& own) {
  std::vector<char*> all;
  for (const std::string& one : own) all.push_back(const_cast<char*>(one.c_str()));
  const auto is_named = [&](std::string_view name) {
    return std::any_of(own.begin(), own.end(), [&](const std::string& one) {
      return one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=';
    });
  };
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (const std::string_view text(*variable); !is_named(text.substr(0, text.find('=')))) all.push_back(*variable);
  all.push_back(nullptr);
  return all;
}

struct Pipe {
  Descriptor read_end{}, write_end{};
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno)};
  return Pipe{.read_end = Descriptor(ends[0]), .write_end = Descriptor(ends[1])};
}

void make_non_blocking(const Descriptor& end) { ::fcntl(end.get(), F_SETFL, ::fcntl(end.get(), F_GETFL) | O_NONBLOCK); }

/// What posix_spawn is told: destroyed on every way out.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    // The child gets the signals as a fresh program expects them, whatever this one ignores or blocks.
    sigset_t all, none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ProgramCall& call) {
  CARNOT_CHECK(!call.command.empty(), "a command has at least a program");
  std::array<Pipe, 3> pipes;
  for (Pipe& pipe : pipes) {
    auto made = make_pipe();
    if (!made) return made.error();
    pipe = std::move(made).value();
  }
  auto& [input, output, error] = pipes;
  SpawnSettings settings;
  ::posix_spawn_file_actions_adddup2(&settings.actions, input.read_end.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.actions, output.write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.actions, error.write_end.get(), STDERR_FILENO);
  if (!call.folder.empty()) ::posix_spawn_file_actions_addchdir_np(&settings.actions, call.folder.c_str());
  std::vector<char*> arguments;
  for (const std::string& argument : call.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  std::vector<char*> environment = variables(call.environment);
  const int problem = ::posix_spawnp(&child->id_, arguments[0], &settings.actions, &settings.attributes,
                                     arguments.data(), environment.data());
  if (problem != 0) {
    child->id_ = -1;
    return Error{"cannot start \"" + call.command.front() + "\"" +
                 (call.folder.empty() ? "" : " in " + call.folder.string()) + ": " + std::strerror(problem)};
  }
  child->input_ = std::move(input.write_end);
  child->output_ = std::move(output.read_end);
  child->error_ = std::move(error.read_end);
  for (const Descriptor* end : {&child->input_, &child->output_, &child->error_}) make_non_blocking(*end);
  return child;
}

ChildProcess::~ChildProcess() {
  if (id_ < 0) return;
  kill();
  while (!ended(std::chrono::milliseconds(1000))) {
  }
}

void ChildProcess::kill() {
  const std::lock_guard lock(mutex_);
  if (!end_) ::kill(-id_, SIGKILL);
}

std::optional<std::string> ChildProcess::reap() {
  const std::lock_guard lock(mutex_);
  siginfo_t found{};
  if (end_ || ::waitid(P_PID, static_cast<id_t>(id_), &found, WEXITED | WNOHANG | WNOWAIT) != 0 || found.si_pid != id_)
    return end_;
  ::kill(-id_, SIGKILL);  // while the number is still its own
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  end_ = end_of(status);
  return end_;
}

std::optional<std::string> ChildProcess::ended(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (auto end = reap()) return end;
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace carnot
