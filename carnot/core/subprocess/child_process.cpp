#include "carnot/core/subprocess/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "carnot/core/base/check.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/subprocess/supervisor/protocol.h"

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

constexpr int kEnds = supervisor::kReport + 1;

struct ChildPipe {
  Descriptor ours{}, theirs{};
};

/// Their end is above the numbers that it will get, so that none is overwritten before it is copied.
Result<ChildPipe> make_pipe(bool they_read) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno)};
  Descriptor read_end(ends[0]), write_end(ends[1]);
  Descriptor theirs(::fcntl(they_read ? ends[0] : ends[1], F_DUPFD_CLOEXEC, kEnds));
  if (!theirs.is_open()) return Error{std::string("no pipe: ") + std::strerror(errno)};
  return ChildPipe{.ours = std::move(they_read ? write_end : read_end), .theirs = std::move(theirs)};
}

void make_non_blocking(const Descriptor& end) { ::fcntl(end.get(), F_SETFL, ::fcntl(end.get(), F_GETFL) | O_NONBLOCK); }

/// The program's process number, or why it could not be started.
Result<pid_t> read_reports(const Descriptor& end) {
  std::optional<pid_t> started;
  for (supervisor::SupervisorReport report;;) {
    const ssize_t size = ::read(end.get(), &report, sizeof report);
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof report) break;
    if (report.kind == supervisor::SupervisorReport::Kind::Failed) return Error{std::strerror(report.value)};
    started = report.value;
  }
  if (!started) return Error{"its supervisor was ended from outside"};
  return *started;
}

/// What posix_spawn is given; destroyed on every exit path.
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

/// Its process number. The error is the system's.
Result<pid_t> spawn_supervisor(const std::string& supervisor, const ProgramCall& call,
                               const std::array<ChildPipe, kEnds>& pipes) {
  SpawnSettings settings;
  for (int end = 0; end < kEnds; ++end)
    ::posix_spawn_file_actions_adddup2(&settings.actions, pipes[static_cast<std::size_t>(end)].theirs.get(), end);
  if (!call.folder.empty()) ::posix_spawn_file_actions_addchdir_np(&settings.actions, call.folder.c_str());
  const std::string patience = std::to_string(call.patience.count());
  std::vector<char*> arguments{const_cast<char*>(supervisor.c_str()), const_cast<char*>(patience.c_str())};
  for (const std::string& argument : call.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment = variables(call.environment);
  pid_t id = -1;
  const int problem =
      ::posix_spawn(&id, arguments[0], &settings.actions, &settings.attributes, arguments.data(), environment.data());
  if (problem != 0) return Error{std::strerror(problem)};
  return id;
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ProgramCall& call) {
  CARNOT_CHECK(!call.command.empty(), "a command has at least a program");
  CARNOT_ASSIGN_OR_RETURN(const auto supervisor, find_own_program("carnot-supervisor", "CARNOT_SUPERVISOR"));
  std::array<ChildPipe, kEnds> pipes;
  for (int end = 0; end < kEnds; ++end) {
    CARNOT_ASSIGN_OR_RETURN(pipes[static_cast<std::size_t>(end)],
                            make_pipe(end == STDIN_FILENO || end == supervisor::kCarnot));
  }
  const auto failed = [&](const Error& why) {
    return Error{"cannot start \"" + call.command.front() + "\"" +
                 (call.folder.empty() ? "" : " in " + call.folder.string()) + ": " + why.message};
  };
  const auto spawned = spawn_supervisor(supervisor, call, pipes);
  if (!spawned) return failed(spawned.error());
  std::unique_ptr<ChildProcess> child(new ChildProcess(*spawned));
  for (ChildPipe& pipe : pipes) (void)pipe.theirs.close();
  child->input_ = std::move(pipes[STDIN_FILENO].ours);
  child->output_ = std::move(pipes[STDOUT_FILENO].ours);
  child->error_ = std::move(pipes[STDERR_FILENO].ours);
  child->presence_ = std::move(pipes[supervisor::kCarnot].ours);
  for (const Descriptor* end : {&child->input_, &child->output_, &child->error_}) make_non_blocking(*end);
  const auto started = read_reports(pipes[supervisor::kReport].ours);
  if (!started) return failed(started.error());
  child->id_ = *started;
  return child;
}

ChildProcess::~ChildProcess() {
  kill();
  while (!ended(std::chrono::milliseconds(1000))) {
  }
}

void ChildProcess::kill() {
  const std::lock_guard lock(mutex_);
  if (!end_) ::kill(supervisor_, SIGTERM);
}

std::optional<std::string> ChildProcess::reap() {
  const std::lock_guard lock(mutex_);
  int status = 0;
  if (!end_ && ::waitpid(supervisor_, &status, WNOHANG) == supervisor_) end_ = end_of(status);
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
