#include "carnot/core/subprocess/line_program.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "carnot/core/base/log.h"
#include "carnot/core/base/no_pipe_signal.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

/// Who writes without end does not keep the reader from everything else.
constexpr int kMostBuffers = 16;

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestErrorLine = 4096;
constexpr auto kFarewell = std::chrono::milliseconds(500);

/// Milliseconds for poll(), at least 1 before the deadline.
int poll_time(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

}  // namespace

bool LineSplitter::read(int descriptor, const OnLine& on_line) {
  std::array<char, 1 << 16> bytes;
  for (int buffers = 0; buffers < kMostBuffers;) {
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count <= 0) {
      if (!line_.empty()) end_line(on_line);
      return false;
    }
    add({bytes.data(), static_cast<std::size_t>(count)}, on_line);
    if (static_cast<std::size_t>(count) < bytes.size()) return true;
    ++buffers;
  }
  return true;
}

void LineSplitter::add(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    if (!dropping_) line_.append(bytes.substr(0, std::min(end, longest_ - line_.size())));
    if (line_.size() == longest_) {
      end_line(on_line);
      dropping_ = true;
    }
    if (end == bytes.size()) return;
    bytes.remove_prefix(end + 1);
    if (!dropping_) end_line(on_line);
    dropping_ = false;
  }
}

void LineSplitter::end_line(const OnLine& on_line) {
  on_line(line_, line_.size() < longest_);
  line_.clear();
}

Result<std::unique_ptr<LineProgram>> LineProgram::start(const std::string& name, const ProgramCall& call,
                                                        std::size_t longest) {
  auto child = ChildProcess::start(call);
  if (!child) return Error{name + ": " + child.error().message};
  std::unique_ptr<LineProgram> program(new LineProgram(name, std::move(child).value(), longest));
  if (!program->wake_.is_open()) return Error{name + ": no event descriptor"};
  return program;
}

LineProgram::LineProgram(const std::string& name, std::unique_ptr<ChildProcess> child, std::size_t longest)
    : label_(name + " (process " + std::to_string(child->id()) + ")"),
      child_(std::move(child)),
      longest_(longest),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void LineProgram::close() {
  {
    const std::lock_guard one_writer(write_mutex_);
    child_->close_input();
  }
  if (!child_->ended(kFarewell)) child_->kill();
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
  if (reader_.joinable()) reader_.join();
}

void LineProgram::listen(LineHandlers handlers) {
  handlers_ = std::move(handlers);
  reader_ = std::thread([this] { read_all(); });
}

bool LineProgram::write(std::string line, Deadline deadline) {
  line += '\n';
  const std::lock_guard one_writer(write_mutex_);
  // Writing to a process that ended is an error here, not a signal that ends the program.
  const NoPipeSignal no_signal;
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(child_->standard_input(), rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    // A process that ended says so through its output; one that reads no more has hung.
    if (errno != EAGAIN) return true;
    if (Clock::now() >= deadline) return false;
    pollfd ready{.fd = child_->standard_input(), .events = POLLOUT, .revents = 0};
    ::poll(&ready, 1, poll_time(deadline));
  }
  return true;
}

void LineProgram::read_all() {
  LineSplitter lines(longest_), words(kLongestErrorLine);
  bool is_open = true, has_words = true;
  while (is_open) {
    std::array<pollfd, 3> ready{{{.fd = child_->standard_output(), .events = POLLIN, .revents = 0},
                                 {.fd = has_words ? child_->standard_error() : -1, .events = POLLIN, .revents = 0},
                                 {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;
    // Standard error first: what it says may explain why the output ends.
    if (ready[1].revents != 0) has_words = read_words(words);
    if (ready[0].revents != 0) is_open = read_lines(lines);
    if (ready[2].revents != 0) is_open = false;
  }
  read_words(words);
  const auto end = child_->ended(std::chrono::milliseconds(1000));
  handlers_.on_end(label_ + (end ? " " + *end : " closed its standard output"));
}

/// False once standard error has ended.
bool LineProgram::read_words(LineSplitter& words) {
  return words.read(child_->standard_error(), [&](std::string_view line, bool) {
    log_info(label_ + ": " + std::string(line));
    const std::lock_guard lock(words_mutex_);
    last_words_.emplace_back(line);
    if (last_words_.size() > kLastWords) last_words_.pop_front();
  });
}

/// False once the output has ended.
bool LineProgram::read_lines(LineSplitter& lines) {
  return lines.read(child_->standard_output(), [&](std::string_view line, bool whole) {
    handlers_.on_line(line, whole, label_ + ", line " + std::to_string(++lines_));
  });
}

std::string LineProgram::last_words() const {
  const std::lock_guard lock(words_mutex_);
  if (last_words_.empty()) return "";
  return "; its last words: " + join(std::vector<std::string>(last_words_.begin(), last_words_.end()), " | ");
}

}  // namespace carnot
