#include "carnot/core/subprocess/peer.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/subprocess/line_program.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

/// A line of an answer: an opening with a long history and tools; far more than a context holds.
constexpr JsonLimits kAnswerLimits{.bytes = std::size_t{16} << 20, .values = std::size_t{1} << 20, .depth = 32};

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string seconds_text(double seconds) {
  Json number = seconds;
  return number.dump() + " s";
}

}  // namespace

class Peer::Connection {
 public:
  explicit Connection(const PeerOptions& options) : name_(options.name), program_(start(options)) {
    program_->listen({.on_line = [this](std::string_view line, bool whole,
                                        const std::string& where) { receive(line, whole, where); },
                      .on_end = [this](const std::string& why) { broken(why); }});
  }

  ~Connection() {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = name_ + " is being closed";
    }
    program_->close();
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
    fail(program_->label() + " did not answer within " + seconds_text(seconds));
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

  static std::unique_ptr<LineProgram> start(const PeerOptions& options) {
    auto program = LineProgram::start(options.name, options.program, kAnswerLimits.bytes);
    if (!program) throw PeerFailure(program.error().message);
    return std::move(program).value();
  }

  PeerAnswer answer_of(PeerAnswer answer) const {
    const auto error = answer.value->find("error");
    if (error == answer.value->end() || error->is_null()) return answer;
    throw PeerFailure(program_->label() + ": " + (error->is_string() ? error->get<std::string>() : shown(*error)));
  }

  /// Everything that waits gets `why`, and the process is killed. REQUIRES: the lock is held.
  void fail(const std::string& why) {
    if (!failure_.empty()) return;
    failure_ = why + program_->last_words();
    program_->kill();
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
    if (!program_->write(json_line(message), deadline)) broken(program_->label() + " takes no more requests");
  }

  void receive(std::string_view line, bool whole, const std::string& where) {
    if (!whole) return broken(where + ": " + std::to_string(kAnswerLimits.bytes) + " bytes without an end");
    auto parsed = parse_json(line, where, kAnswerLimits);
    if (!parsed) return broken(parsed.error().message);
    deliver(std::make_shared<const Json>(std::move(parsed).value()), where);
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
  mutable std::mutex mutex_{};
  std::string failure_{};  // why the process is over; empty while it lives
  std::map<std::int64_t, Waiting*> waiting_{};
  std::vector<std::int64_t> queued_{};  // ids that no one has sent yet
  std::int64_t in_flight_ = 0;          // sent and not answered
  std::atomic<bool> batching_ = false;
  std::int64_t last_id_ = 0;
  std::unique_ptr<LineProgram> program_;
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

struct PeerPool::Slot {
  std::mutex mutex{};
  std::shared_ptr<Peer> peer{};
  int starts = 0;
  RestartPause pause{};
};

PeerPool::PeerPool(PeerOptions options, nlohmann::json greeting, int processes)
    : options_(std::move(options)), greeting_(std::make_unique<const nlohmann::json>(std::move(greeting))) {
  CARNOT_CHECK_GE(processes, 1);
  for (int i = 0; i < processes; ++i) slots_.push_back(std::make_unique<Slot>());
}

PeerPool::~PeerPool() = default;

Status PeerPool::start() {
  try {
    for (const auto& slot : slots_) live_peer(*slot);
    return Done{};
  } catch (const PeerFailure& failure) {
    return Error{failure.what()};
  }
}

std::shared_ptr<Peer> PeerPool::take() {
  Slot* freest = nullptr;
  long fewest = 0;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    const long holders = slot->peer && slot->peer->is_alive() ? slot->peer.use_count() : 0;
    if (freest != nullptr && holders >= fewest) continue;
    freest = slot.get();
    fewest = holders;
  }
  return live_peer(*freest);
}

std::shared_ptr<Peer> PeerPool::live_peer(Slot& slot) {
  const std::lock_guard lock(slot.mutex);
  if (slot.peer && slot.peer->is_alive()) return slot.peer;
  slot.pause.check();
  if (slot.starts > 0) log_warning(options_.name + " is started again");
  try {
    ++slot.starts;
    slot.peer = std::make_shared<Peer>(options_, *greeting_);
    slot.pause.succeeded();
    return slot.peer;
  } catch (const PeerFailure& failure) {
    slot.pause.failed(failure.what());
    throw;
  }
}

}  // namespace carnot
