#include "carnot/tools/sandbox/sandboxed_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "carnot/core/base/no_pipe_signal.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFloodBytes = std::size_t{16} << 20;  ///< of output that is read at all
constexpr std::chrono::seconds kGrace{10};                  ///< beyond a call's time, for its end to be reported
constexpr std::uint64_t kMegabyte = 1 << 20;

/// The number of a descriptor in the child, beyond the standard three (launcher/plan.h).
enum : int { kInput = 0, kOutput = 1, kError = 2, kControl = 3, kReport = 4, kRequest = 5, kRemark = 6, kEnds = 7 };

[[noreturn]] void fail(const std::string& what) { throw SandboxFailure("sandbox: " + what); }

struct SandboxPipe {
  Descriptor ours{}, theirs{};
};

/// Their end is above the numbers that it will get, so that none is overwritten before it is copied.
SandboxPipe sandbox_pipe(bool they_read) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(std::string("no pipe: ") + std::strerror(errno));
  Descriptor read_end(ends[0]), write_end(ends[1]);
  Descriptor& near = they_read ? read_end : write_end;
  Descriptor far(::fcntl(near.get(), F_DUPFD_CLOEXEC, 64));
  if (!far.is_open()) fail(std::string("no pipe: ") + std::strerror(errno));
  SandboxPipe pipe{.ours = std::move(they_read ? write_end : read_end), .theirs = std::move(far)};
  ::fcntl(pipe.ours.get(), F_SETFL, ::fcntl(pipe.ours.get(), F_GETFL) | O_NONBLOCK);
  return pipe;
}

std::filesystem::path private_folder(unsigned owner) {
  std::error_code problem;
  std::string name = (std::filesystem::temp_directory_path(problem) / "carnot-sandbox-XXXXXX").string();
  if (problem || ::mkdtemp(name.data()) == nullptr) fail("no private folder: " + name + ": " + std::strerror(errno));
  if (owner != 0 && ::chown(name.c_str(), owner, owner) != 0) fail("no private folder: " + name);
  return name;
}

std::vector<std::string> launcher_arguments(const SandboxedProgram& program, const std::filesystem::path& folder) {
  const SandboxOptions& limits = program.limits;
  std::vector<std::string> all{program.launcher};
  if (program.layers.namespaces) all.emplace_back("layer=namespaces");
  if (program.layers.landlock > 0) all.emplace_back("layer=landlock");
  if (program.layers.system_calls) all.emplace_back("layer=system_calls");
  if (program.as_user != 0) all.push_back("as_user=" + std::to_string(program.as_user));
  if (!folder.empty()) all.push_back("folder=" + folder.string());
  if (program.layers.namespaces && !limits.shown_at.empty()) all.push_back("shown_at=" + limits.shown_at);
  for (const std::string& path : program.read) all.push_back("read=" + path);
  const auto seconds = static_cast<std::uint64_t>(limits.seconds) + 1;
  const auto megabytes = [](int count) { return std::to_string(static_cast<std::uint64_t>(count) * kMegabyte); };
  all.push_back("memory=" + megabytes(limits.memory_mb));
  all.push_back("cpu=" + std::to_string(seconds));
  all.push_back("processes=" + std::to_string(limits.processes));
  all.push_back("open_files=" + std::to_string(limits.open_files));
  all.push_back("disk=" + megabytes(limits.disk_mb));
  all.emplace_back("--");
  all.insert(all.end(), program.command.begin(), program.command.end());
  return all;
}

/// The launcher, with pipes at its descriptors 0 to 6, no variables, and signals as a fresh program expects them.
pid_t spawn_launcher(std::vector<std::string> arguments, const std::array<SandboxPipe, kEnds>& pipes) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  for (int end = 0; end < kEnds; ++end)
    ::posix_spawn_file_actions_adddup2(&actions, pipes[static_cast<std::size_t>(end)].theirs.get(), end);
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  std::array<char*, 1> no_variables{nullptr};
  pid_t id = -1;
  const int problem = ::posix_spawn(&id, words[0], &actions, &attributes, words.data(), no_variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (problem != 0) fail("cannot start \"" + arguments.front() + "\": " + std::strerror(problem));
  return id;
}

/// What the pipe holds, up to `most` bytes more in `text`; counts all of it in `read`. False at its end.
bool drain(const Descriptor& end, std::string& text, std::size_t most, std::size_t& read) {
  std::array<char, 1 << 16> piece{};
  for (int rounds = 0; rounds < 16; ++rounds) {
    const ssize_t size = ::read(end.get(), piece.data(), piece.size());
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    read += static_cast<std::size_t>(size);
    text.append(piece.data(), std::min(static_cast<std::size_t>(size), most - std::min(most, text.size())));
  }
  return true;
}

/// Bytes that go into a pipe as it takes them.
class Outgoing {
 public:
  Outgoing(Descriptor& end, std::string bytes) : end_(end), bytes_(std::move(bytes)) {}

  bool is_done() const { return !end_.is_open(); }
  int descriptor() const { return end_.get(); }

  /// Closes the pipe after the last byte, or where no one reads it any more.
  void write() {
    const NoPipeSignal quiet;
    while (at_ < bytes_.size()) {
      const ssize_t size = ::write(end_.get(), bytes_.data() + at_, bytes_.size() - at_);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size < 0) break;
      at_ += static_cast<std::size_t>(size);
    }
    (void)end_.close();
  }

 private:
  Descriptor& end_;
  std::string bytes_;
  std::size_t at_ = 0;
};

void add_part(std::string& request, std::string_view kind, std::string_view name, std::string_view content) {
  request.append(kind).append(" ").append(std::to_string(content.size())).append(" ").append(name).append("\n");
  request.append(content);
}

std::string request_of(const CodeCall& call) {
  std::string request;
  add_part(request, "code", "", call.code);
  if (call.show_last) add_part(request, "show", "", "");
  for (const auto& [name, content] : call.files) add_part(request, "file", name, content);
  return request;
}

struct ReportedEnd {
  bool is_signal = false;
  int number = 0;
  std::string reason{};
};

ReportedEnd parse_report(const std::string& line) {
  ReportedEnd end;
  std::array<char, 8> kind{};
  std::array<char, 16> reason{};
  if (std::sscanf(line.c_str(), "end %7s %d %15s", kind.data(), &end.number, reason.data()) != 3)
    fail("was ended from outside" + (line.empty() ? "" : ": " + line));
  end.is_signal = std::string_view(kind.data()) == "signal";
  end.reason = reason.data();
  return end;
}

CodeStatus status_of(const ReportedEnd& end, std::string_view remark) {
  if (end.reason == "time" || end.reason == "cpu") return CodeStatus::Timeout;
  if (end.reason == "memory") return CodeStatus::Memory;
  if (end.reason == "processes" || end.reason == "disk" || end.reason == "stopped") return CodeStatus::Refused;
  if (end.is_signal && end.number == SIGXCPU) return CodeStatus::Timeout;
  if (end.is_signal && (end.number == SIGSYS || end.number == SIGXFSZ)) return CodeStatus::Refused;
  if (!end.is_signal && end.number == 0) return CodeStatus::Ok;
  if (remark == "memory") return CodeStatus::Memory;
  return remark == "refused" ? CodeStatus::Refused : CodeStatus::Error;
}

}  // namespace

SandboxedProcess::SandboxedProcess(const SandboxedProgram& program) : limits_(program.limits) {
  std::array<SandboxPipe, kEnds> pipes;
  for (int end = 0; end < kEnds; ++end)
    pipes[static_cast<std::size_t>(end)] = sandbox_pipe(end == kInput || end == kControl || end == kRequest);
  if (!program.layers.namespaces) folder_ = private_folder(program.as_user);
  try {
    id_ = spawn_launcher(launcher_arguments(program, folder_), pipes);
  } catch (...) {
    remove_folder();
    throw;
  }
  input_ = std::move(pipes[kInput].ours);
  output_ = std::move(pipes[kOutput].ours);
  error_ = std::move(pipes[kError].ours);
  control_ = std::move(pipes[kControl].ours);
  report_ = std::move(pipes[kReport].ours);
  request_ = std::move(pipes[kRequest].ours);
  remark_ = std::move(pipes[kRemark].ours);
}

SandboxedProcess::~SandboxedProcess() {
  (void)control_.close();  // the launcher ends, and with it everything that it has started
  kill();
  remove_folder();
}

void SandboxedProcess::remove_folder() {
  if (folder_.empty()) return;
  std::error_code problem;
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, problem);
  std::filesystem::remove_all(folder_, problem);
}

void SandboxedProcess::kill() {
  if (id_ < 0) return;
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  for (int status = 0; ::waitpid(id_, &status, WNOHANG) == 0;) {
    if (Clock::now() > deadline) ::kill(id_, SIGKILL);
    pollfd end{.fd = report_.get(), .events = 0, .revents = 0};
    (void)::poll(&end, 1, 1);
    if ((end.revents & (POLLHUP | POLLNVAL)) != 0) ::usleep(200);
  }
  id_ = -1;
}

bool SandboxedProcess::is_alive() const {
  for (const Descriptor* end : {&report_, &remark_}) {
    pollfd event{.fd = end->get(), .events = 0, .revents = 0};
    if (::poll(&event, 1, 0) > 0) return false;
  }
  return true;
}

std::string SandboxedProcess::report_line(Clock::time_point deadline) {
  std::string line;
  std::size_t bytes = 0;
  for (;;) {
    const bool is_open = drain(report_, line, 4096, bytes);
    if (const std::size_t end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (!is_open || left <= 0) return "";
    pollfd event{.fd = report_.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&event, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
  }
}

std::string SandboxedProcess::last_words() {
  std::string text;
  std::size_t bytes = 0;
  (void)drain(error_, text, 2000, bytes);
  text = trim(with_replacement_characters(text));
  return text.empty() ? "" : "; its last words: " + text;
}

void SandboxedProcess::wait_until_ready(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  std::string word;
  std::size_t bytes = 0;
  while (drain(remark_, word, 64, bytes) && word.find('\n') == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) fail("the program is not ready in time" + last_words());
    std::array<pollfd, 2> events{
        {{.fd = remark_.get(), .events = POLLIN, .revents = 0}, {.fd = report_.get(), .events = POLLIN, .revents = 0}}};
    (void)::poll(events.data(), events.size(), static_cast<int>(std::min<std::int64_t>(left, 1000)));
    if (events[1].revents != 0 && events[0].revents == 0) break;
  }
  if (word == "ready\n") {
    // What it said so far (a warning of a module, say) is not the call's.
    std::string ignored;
    for (const Descriptor* end : {&output_, &error_}) (void)drain(*end, ignored, 0, bytes);
    return;
  }
  const std::string line = report_line(deadline);
  if (line.starts_with("failed ")) throw LayerRefused("sandbox: " + line.substr(7) + last_words());
  fail("the program ended before it was ready" + last_words());
}

void SandboxedProcess::order(const std::string& line) {
  const NoPipeSignal quiet;
  if (::write(control_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    fail("was ended from outside");
}

CodeResult SandboxedProcess::run(const CodeCall& call) {
  CodeResult result;
  const Stopwatch watch;
  const double seconds = std::min(call.seconds, limits_.seconds);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)) + kGrace;
  const std::size_t most = static_cast<std::size_t>(limits_.output_kb) << 10;
  order("run " + std::to_string(seconds) + "\n");
  Outgoing request(request_, request_of(call)), input(input_, call.input);
  request.write();
  input.write();
  std::size_t output_bytes = 0, error_bytes = 0, remark_bytes = 0;
  bool is_stopped = false, output_open = true, error_open = true;
  std::string line;
  for (bool is_over = false; !is_over;) {
    std::array<pollfd, 5> events{{{.fd = report_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = output_open ? output_.get() : -1, .events = POLLIN, .revents = 0},
                                  {.fd = error_open ? error_.get() : -1, .events = POLLIN, .revents = 0},
                                  {.fd = request.descriptor(), .events = POLLOUT, .revents = 0},
                                  {.fd = input.descriptor(), .events = POLLOUT, .revents = 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) fail("does not end");
    (void)::poll(events.data(), events.size(), static_cast<int>(std::min<std::int64_t>(left, 1000)));
    if (events[0].revents != 0) {
      line = report_line(deadline);
      is_over = true;
    }
    if (output_open) output_open = drain(output_, result.standard_output, most, output_bytes);
    if (error_open) error_open = drain(error_, result.standard_error, most, error_bytes);
    if (events[3].revents != 0) request.write();
    if (events[4].revents != 0) input.write();
    if (!is_stopped && output_bytes + error_bytes > kFloodBytes) {
      is_stopped = true;
      const NoPipeSignal quiet;
      (void)!::write(control_.get(), "stop\n", 5);
    }
  }
  // Everything in the sandbox has ended: what it wrote is in the pipes.
  while (output_open && output_bytes <= 2 * kFloodBytes) {
    const std::size_t before = output_bytes;
    output_open = drain(output_, result.standard_output, most, output_bytes);
    if (output_bytes == before) break;
  }
  (void)drain(error_, result.standard_error, most, error_bytes);
  std::string remark;
  (void)drain(remark_, remark, 64, remark_bytes);
  const ReportedEnd end = parse_report(line);
  if (end.reason == "lost") fail("was ended from outside");
  result.status = status_of(end, remark);
  result.exit_code = end.is_signal ? 128 + end.number : end.number;
  result.truncated = output_bytes > result.standard_output.size() || error_bytes > result.standard_error.size();
  for (std::string* text : {&result.standard_output, &result.standard_error})
    *text = with_replacement_characters(*text);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace carnot
