#include "carnot/process/peer.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "carnot/base/json.h"
#include "carnot/base/log.h"
#include "carnot/base/no_pipe_signal.h"
#include "carnot/base/strings.h"
#include "carnot/process/line_splitter.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

/// A line of an answer: an opening with a long history and tools; far more than a context holds.
constexpr JsonLimits kAnswerLimits{.bytes = std::size_t{16} << 20, .values = std::size_t{1} << 20, .depth = 32};
constexpr std::size_t kLongestErrorLine = 4096;
constexpr std::size_t kLastWords = 5;  ///< lines of standard error that a message repeats
constexpr auto kFarewell = std::chrono::milliseconds(500);

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string seconds_text(double seconds) {
  Json number = seconds;
  return number.dump() + " s";
}

/// Milliseconds for poll(), at least 1 before the deadline.
int poll_time(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

}  // namespace

class Peer::Connection {
 public:
  explicit Connection(const PeerOptions& options)
      : name_(options.name), child_(start(options)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.is_open()) throw PeerFailure(name_ + ": no event descriptor");
    reader_ = std::thread([this] { read_all(); });
  }

  ~Connection() {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = name_ + " is being closed";
    }
    child_->close_input();
    if (!child_->ended(kFarewell)) child_->kill();
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));
    reader_.join();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  PeerAnswer call(Json request, double seconds) {
    const Clock::time_point deadline = after(seconds);
    Waiting waiting{.request = std::move(request)};
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw PeerFailure(failure_);
    const std::int64_t id = ++last_id_;
    waiting.request["id"] = id;
    waiting_[id] = &waiting;
    queued_.push_back(id);
    while (!waiting.answer.value && failure_.empty() && Clock::now() < deadline) {
      if (may_send())
        send_queued(lock, deadline);
      else
        waiting.changed.wait_until(lock, deadline);
    }
    waiting_.erase(id);
    if (waiting.answer.value) return answer_of(std::move(waiting.answer));
    fail(name_ + label() + " did not answer within " + seconds_text(seconds));
    throw PeerFailure(failure_);
  }

  void tell(const Json& notice, double seconds) {
    if (is_alive()) write(notice, after(seconds));
  }

  void set_batching(bool on) { batching_ = on; }

  bool is_alive() const {
    const std::lock_guard lock(mutex_);
    return failure_.empty();
  }

 private:
  struct Waiting {
    Json request{};
    std::condition_variable changed{};
    PeerAnswer answer{};
  };

  static std::unique_ptr<ChildProcess> start(const PeerOptions& options) {
    auto child = ChildProcess::start(options.program);
    if (!child) throw PeerFailure(options.name + ": " + child.error().message);
    return std::move(child).value();
  }

  static PeerAnswer answer_of(PeerAnswer answer) {
    const auto error = answer.value->find("error");
    if (error == answer.value->end()) return answer;
    throw PeerFailure(answer.where + ": " + (error->is_string() ? error->get<std::string>() : shown(*error)));
  }

  std::string label() const { return " (process " + std::to_string(child_->id()) + ")"; }

  /// Everything that waits gets `why`, and the process is killed. REQUIRES: the lock is held.
  void fail(const std::string& why) {
    if (!failure_.empty()) return;
    failure_ = why;
    if (!last_words_.empty())
      failure_ += "; its last words: " + join(std::vector<std::string>(last_words_.begin(), last_words_.end()), " | ");
    child_->kill();
    for (const auto& [id, waiting] : waiting_) waiting->changed.notify_all();
  }

  /// REQUIRES: the lock is held.
  bool may_send() const { return !queued_.empty() && (!batching_ || in_flight_ == 0); }

  /// Sends what is queued: each request on a line, or all of them in one batch. The lock is open while it writes.
  void send_queued(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
    Json calls = Json::array();
    for (const std::int64_t id : std::exchange(queued_, {}))
      if (const auto place = waiting_.find(id); place != waiting_.end())
        calls.push_back(std::move(place->second->request));
    in_flight_ += static_cast<std::int64_t>(calls.size());
    lock.unlock();
    if (batching_) {
      write({{"calls", std::move(calls)}}, deadline);
    } else {
      for (const Json& call : calls) write(call, deadline);
    }
    lock.lock();
  }

  /// REQUIRES: the lock is held.
  void wake_a_sender() {
    for (const std::int64_t id : queued_)
      if (const auto place = waiting_.find(id); place != waiting_.end()) return place->second->changed.notify_all();
  }

  void write(const Json& message, Clock::time_point deadline) {
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const std::lock_guard one_writer(write_mutex_);
    const NoPipeSignal no_signal;
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t written = ::write(child_->standard_input(), rest.data(), rest.size());
      if (written > 0) {
        rest.remove_prefix(static_cast<std::size_t>(written));
        continue;
      }
      if (errno == EINTR) continue;
      pollfd ready{.fd = child_->standard_input(), .events = POLLOUT, .revents = 0};
      const bool full = errno == EAGAIN;
      if (full && Clock::now() < deadline) {
        ::poll(&ready, 1, poll_time(deadline));
        continue;
      }
      // A process that ended says so through its output; one that reads no more has hung.
      if (!full) return;
      const std::lock_guard lock(mutex_);
      fail(name_ + label() + " takes no more requests");
      return;
    }
  }

  void read_all() {
    LineSplitter answers(kAnswerLimits.bytes), words(kLongestErrorLine);
    bool is_open = true, has_words = true;
    while (is_open) {
      std::array<pollfd, 3> ready{{{.fd = child_->standard_output(), .events = POLLIN, .revents = 0},
                                   {.fd = has_words ? child_->standard_error() : -1, .events = POLLIN, .revents = 0},
                                   {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
      if (::poll(ready.data(), ready.size(), -1) < 0) continue;
      // Standard error first: what it says may explain why the output ends.
      if (ready[1].revents != 0) has_words = read_words(words);
      if (ready[0].revents != 0) is_open = read_answers(answers);
      if (ready[2].revents != 0) is_open = false;
    }
    read_words(words);
    const auto end = child_->ended(std::chrono::milliseconds(100));
    const std::lock_guard lock(mutex_);
    fail(name_ + label() + (end ? " " + *end : " closed its standard output"));
  }

  /// False once standard error has ended.
  bool read_words(LineSplitter& words) {
    return words.read(child_->standard_error(), [&](std::string_view line, bool) {
      log_info(name_ + label() + ": " + std::string(line));
      const std::lock_guard lock(mutex_);
      last_words_.emplace_back(line);
      if (last_words_.size() > kLastWords) last_words_.pop_front();
    });
  }

  /// False once the output has ended.
  bool read_answers(LineSplitter& answers) {
    return answers.read(child_->standard_output(), [&](std::string_view line, bool whole) {
      ++lines_;
      const std::string where = name_ + label() + ", line " + std::to_string(lines_);
      if (!whole) return broken(where + ": " + std::to_string(kAnswerLimits.bytes) + " bytes without an end");
      auto parsed = parse_json(line, where, kAnswerLimits);
      if (!parsed) return broken(parsed.error().message);
      deliver(std::make_shared<const Json>(std::move(parsed).value()), where);
    });
  }

  void broken(const std::string& why) {
    const std::lock_guard lock(mutex_);
    fail(why);
  }

  void deliver(std::shared_ptr<const Json> value, const std::string& where) {
    const std::lock_guard lock(mutex_);
    const auto id = value->is_object() ? value->find("id") : value->end();
    if (!value->is_object() || id == value->end() || !id->is_number_integer())
      return fail(where + ": expected an object with the id of a request, found " + shown(*value));
    const auto place = waiting_.find(id->get<std::int64_t>());
    if (place == waiting_.end() || place->second->answer.value)
      return fail(where + ": id " + shown(*id) + " belongs to no open request");
    place->second->answer = {.value = std::move(value), .where = where};
    place->second->changed.notify_all();
    if (--in_flight_ == 0) wake_a_sender();
  }

  std::string name_;
  std::unique_ptr<ChildProcess> child_;
  Descriptor wake_;
  std::thread reader_{};
  std::mutex write_mutex_{};
  mutable std::mutex mutex_{};
  std::string failure_{};  // why the process is over; empty while it lives
  std::deque<std::string> last_words_{};
  std::map<std::int64_t, Waiting*> waiting_{};
  std::vector<std::int64_t> queued_{};  // ids that nobody has sent yet
  std::int64_t in_flight_ = 0;          // sent and not answered
  std::atomic<bool> batching_ = false;
  std::int64_t last_id_ = 0;
  std::int64_t lines_ = 0;  // of its output; the reader's
};

Peer::Peer(const PeerOptions& options, Json greeting)
    : connection_(std::make_unique<Connection>(options)),
      call_seconds_(options.call_seconds),
      greeting_(connection_->call(std::move(greeting), options.start_seconds)) {
  const auto batch = greeting_.value->find("batch");
  connection_->set_batching(batch != greeting_.value->end() && *batch == true);
}

Peer::~Peer() = default;

PeerAnswer Peer::call(Json request) { return connection_->call(std::move(request), call_seconds_); }

void Peer::tell(Json notice) { connection_->tell(notice, call_seconds_); }

bool Peer::is_alive() const { return connection_->is_alive(); }

}  // namespace carnot
