#include "carnot/core/subprocess/listener.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/subprocess/line_program.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kLongestOutput = 4096;
constexpr auto kLook = milliseconds(1000);  ///< how often it is asked whether it still runs
constexpr auto kLookAtTheEnd = milliseconds(20);
constexpr auto kSayThatItTakes = milliseconds(1500);

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

std::string counted_lines(std::int64_t count) { return std::to_string(count) + (count == 1 ? " line" : " lines"); }

struct Line {
  std::string text{};
  bool introduces = false;
};

}  // namespace

class Listener::Thread {
 public:
  Thread(ListenerOptions options, ListenerLines lines, std::unique_ptr<ChildProcess> child, Descriptor wake)
      : options_(std::move(options)), lines_(std::move(lines)), child_(std::move(child)), wake_(std::move(wake)) {
    thread_ = std::thread([this] { run(); });
  }

  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void tell(Line line) {
    {
      const std::lock_guard lock(mutex_);
      const bool fits = line.introduces || waiting_bytes_ + line.text.size() <= options_.queue_bytes;
      if (gave_up_ || !fits) return drop(1);
      waiting_bytes_ += line.text.size();
      waiting_.push_back({.missing = std::exchange(missing_, 0), .line = std::move(line)});
    }
    wake();
  }

  ListenerEnd finish(std::string text) {
    {
      const std::lock_guard lock(mutex_);
      CARNOT_CHECK(!deadline_, "a listener finishes once");
      deadline_ = Clock::now() + seconds(options_.finish_seconds);
      if (!gave_up_) waiting_.push_back({.missing = std::exchange(missing_, 0), .line = {.text = std::move(text)}});
    }
    wake();
    thread_.join();
    return end_;
  }

 private:
  struct Waiting {
    std::int64_t missing = 0;  ///< lines that were dropped before this one
    Line line{};
  };
  /// Failed: it was sent everything, and ended with a status other than 0.
  enum class Process { Finished, Failed, Lost };

  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));
  }

  std::string label() const { return options_.name + " (process " + std::to_string(child_->id()) + ")"; }

  /// REQUIRES: the lock is held.
  void drop(std::int64_t lines) {
    if (dropped_ == 0 && !gave_up_)
      log_warning(options_.name + " does not keep up: lines are dropped until it does; the run folder has everything");
    dropped_ += lines;
    missing_ += lines;
  }

  bool is_abandoned() const {
    const std::lock_guard lock(mutex_);
    return abandoned_;
  }
  std::optional<Clock::time_point> deadline() const {
    const std::lock_guard lock(mutex_);
    return deadline_;
  }
  bool is_over(Clock::time_point now) const {
    const std::lock_guard lock(mutex_);
    return abandoned_ || (deadline_ && now >= *deadline_);
  }

  void run() {
    // A process that ends while it is written to is an error of the write. The thread keeps the signal to itself.
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    double pause = options_.pause_seconds;
    for (int start = 1;; ++start) {
      end_.starts = start;
      greet(start);
      const Process how = serve();
      end_.in_time = how == Process::Finished;
      if (how == Process::Failed) log_warning(how_it_ended_);
      if (how != Process::Lost || is_over(Clock::now())) break;
      if (start >= options_.starts) {
        log_warning(how_it_ended_ + "; it was started " + std::to_string(start) +
                    " times and is not started again: what follows is only in the run folder");
        break;
      }
      log_warning(how_it_ended_ + "; it is started again");
      if (!start_again(pause)) break;
      pause *= 2;
    }
    give_up();
    child_->kill();
    const std::lock_guard lock(mutex_);
    end_.dropped = dropped_;
    if (dropped_ > 0 && !abandoned_)
      log_warning(options_.name + " was not sent " + counted_lines(dropped_) + "; the run folder has everything");
  }

  /// What still waits will not be sent.
  void give_up() {
    const std::lock_guard lock(mutex_);
    gave_up_ = true;
    dropped_ += static_cast<std::int64_t>(waiting_.size());
    waiting_.clear();
    waiting_bytes_ = 0;
  }

  /// After a pause, unless the run ends: then at once. False if it cannot be started.
  bool start_again(double pause) {
    const Clock::time_point begin = Clock::now() + seconds(pause);
    while (Clock::now() < begin && !deadline() && !is_abandoned()) {
      const auto left = std::chrono::ceil<milliseconds>(begin - Clock::now()).count();
      sleep_until_woken(static_cast<int>(std::clamp<std::int64_t>(left, 1, 1000)));
    }
    if (is_abandoned()) return false;
    auto child = ChildProcess::start(options_.program);
    if (!child) {
      log_warning(options_.name + ": " + child.error().message + "; what follows is only in the run folder");
      return false;
    }
    child_ = std::move(child).value();
    return true;
  }

  void sleep_until_woken(int milliseconds) {
    pollfd woken{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    ::poll(&woken, 1, milliseconds);
    take_wake();
  }

  void take_wake() {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof(count));
  }

  void greet(int start) {
    words_.clear();
    outgoing_ = lines_.greeting(start) + "\n";
    sent_ = 0;
    outgoing_counts_ = false;
    if (!introduction_.empty()) outgoing_ += introduction_ + "\n";
  }

  /// The next line that waits becomes the outgoing one. False if none waits.
  bool take_line() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= std::min(waiting_bytes_, next.line.text.size());
    outgoing_.clear();
    sent_ = 0;
    outgoing_counts_ = true;
    if (next.missing > 0) outgoing_ = lines_.dropped(next.missing) + "\n";
    outgoing_ += next.line.text + "\n";
    if (next.line.introduces) introduction_ = next.line.text;
    return true;
  }

  /// Hands lines over until the process was sent everything and ends, or is lost.
  Process serve() {
    LineSplitter output(kLongestOutput), errors(kLongestOutput);
    bool has_output = true, has_errors = true, told_all = false, said = false;
    while (true) {
      const bool is_due = sent_ < outgoing_.size() || (!told_all && take_line());
      if (!is_due && !told_all && deadline()) {
        child_->close_input();
        told_all = true;
      }
      std::array<pollfd, 4> ready{{{.fd = told_all ? -1 : child_->standard_input(),
                                    .events = static_cast<short>(is_due ? POLLOUT : 0),
                                    .revents = 0},
                                   {.fd = has_output ? child_->standard_output() : -1, .events = POLLIN, .revents = 0},
                                   {.fd = has_errors ? child_->standard_error() : -1, .events = POLLIN, .revents = 0},
                                   {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
      const auto look = deadline() ? kLookAtTheEnd : kLook;
      if (::poll(ready.data(), ready.size(), static_cast<int>(look.count())) < 0) continue;
      if (ready[3].revents != 0) take_wake();
      if (ready[1].revents != 0) has_output = read(output, child_->standard_output());
      if (ready[2].revents != 0) has_errors = read(errors, child_->standard_error());
      const auto now = Clock::now();
      if (is_over(now)) return out_of_time();
      if (const auto end = child_->ended(milliseconds(0))) {
        if (has_output) read(output, child_->standard_output());
        if (has_errors) read(errors, child_->standard_error());
        if (told_all && *end == kEndedWell) return Process::Finished;
        const Process how = lost(*end);
        return told_all ? Process::Failed : how;
      }
      if (ready[0].revents & POLLERR) {
        if (child_->ended(milliseconds(200))) continue;  // and that is said above
        child_->kill();
        return lost("closed its standard input");
      }
      if (is_due && (ready[0].revents & POLLOUT) != 0) send();
      if (const auto end = deadline();
          end && !said && now >= *end - seconds(options_.finish_seconds) + kSayThatItTakes) {
        said = true;
        log_info("waiting for " + options_.name + " to finish, for up to " +
                 std::to_string(static_cast<int>(options_.finish_seconds)) + " s");
      }
    }
  }

  void send() {
    const ssize_t count = ::write(child_->standard_input(), outgoing_.data() + sent_, outgoing_.size() - sent_);
    if (count > 0) sent_ += static_cast<std::size_t>(count);
  }

  Process lost(const std::string& how) {
    how_it_ended_ = label() + " " + how;
    if (!words_.empty())
      how_it_ended_ += "; its last words: " + join(std::vector<std::string>(words_.begin(), words_.end()), " | ");
    count_outgoing();
    return Process::Lost;
  }

  Process out_of_time() {
    child_->kill();
    count_outgoing();
    if (!is_abandoned())
      log_warning(label() + " did not finish in time and was killed; track.finish_seconds says how long it may take");
    return Process::Lost;
  }

  /// A line that was under way is not sent again: it may be what the process died of.
  void count_outgoing() {
    const std::lock_guard lock(mutex_);
    if (sent_ < outgoing_.size() && outgoing_counts_) {
      ++dropped_;
      ++(waiting_.empty() ? missing_ : waiting_.front().missing);
    }
    outgoing_.clear();
    sent_ = 0;
  }

  /// False at the end of the stream.
  bool read(LineSplitter& lines, int descriptor) {
    return lines.read(descriptor, [&](std::string_view line, bool) {
      words_.emplace_back(line);
      if (words_.size() > kLastWords) words_.pop_front();
      if (++logged_ <= options_.logged_lines) log_info(label() + ": " + std::string(line));
      if (logged_ == options_.logged_lines + 1)
        log_info(label() + " has written " + counted_lines(options_.logged_lines) + "; the rest is left out");
    });
  }

  static constexpr std::string_view kEndedWell = "exited with status 0";

  const ListenerOptions options_;
  const ListenerLines lines_;

  // The thread's own.
  std::unique_ptr<ChildProcess> child_;
  std::string outgoing_{};  // what is being written
  std::size_t sent_ = 0;    // bytes of it
  bool outgoing_counts_ = false;
  std::string introduction_{};
  std::string how_it_ended_{};
  std::deque<std::string> words_{};
  int logged_ = 0;
  ListenerEnd end_{};

  Descriptor wake_;
  mutable std::mutex mutex_{};
  std::deque<Waiting> waiting_{};
  std::size_t waiting_bytes_ = 0;
  std::int64_t missing_ = 0;  // dropped since the last line that waits
  std::int64_t dropped_ = 0;
  bool gave_up_ = false, abandoned_ = false;
  std::optional<Clock::time_point> deadline_{};
  std::thread thread_{};
};

Listener::Listener(std::unique_ptr<Thread> thread) : thread_(std::move(thread)) {}
Listener::~Listener() = default;

Result<std::unique_ptr<Listener>> Listener::start(ListenerOptions options, ListenerLines lines) {
  CARNOT_CHECK(lines.greeting && lines.dropped, "a listener is greeted, and informed of gaps");
  options.program.patience = std::chrono::ceil<milliseconds>(seconds(options.finish_seconds));
  CARNOT_ASSIGN_OR_RETURN(auto child, ChildProcess::start(options.program));
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return Error{options.name + ": no event descriptor"};
  return std::unique_ptr<Listener>(
      new Listener(std::make_unique<Thread>(std::move(options), std::move(lines), std::move(child), std::move(wake))));
}

void Listener::tell(std::string line) { thread_->tell({.text = std::move(line)}); }

void Listener::introduce(std::string line) { thread_->tell({.text = std::move(line), .introduces = true}); }

ListenerEnd Listener::finish(std::string line) { return thread_->finish(std::move(line)); }

}  // namespace carnot
