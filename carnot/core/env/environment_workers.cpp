#include "carnot/core/env/environment_workers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/stopwatch.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLongestSleep = std::chrono::milliseconds(100);

/// Calls that were given up and have not come back, of all EnvironmentWorkers: each keeps a thread.
std::atomic<int> hanging_calls{0};

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception without a message";
  }
}

}  // namespace

struct EnvironmentWorkers::State {
  struct Call {
    std::int64_t tag = 0;
    std::function<void()> work{};
  };
  struct Worker {
    std::thread thread{};
    std::int64_t tag = 0;  // of its last call
    Clock::time_point start{};
  };

  std::mutex mutex;
  std::condition_variable submitted, ended;
  std::deque<Call> queue;
  std::vector<FinishedCall> finished;
  std::map<int, Worker> workers;                     // those given up are gone from here
  std::set<std::pair<Clock::time_point, int>> busy;  // workers inside a call, the longest first
  std::size_t max_workers = 1;
  bool warned = false;  // that fewer than needed could be started
  int next_worker = 0;
  std::string start_failure;  // why the last thread could not be started
  std::exception_ptr bug;     // the first CheckError of a call
  bool stop = false;
  Clock::duration timeout{};
};

namespace {

template <class State>
void work(const std::shared_ptr<State>& state, int self) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->submitted.wait(lock, [&] { return state->stop || !state->queue.empty(); });
    if (state->stop) return;
    auto call = std::move(state->queue.front());
    state->queue.pop_front();
    const auto start = Clock::now();
    auto& worker = state->workers.at(self);
    worker.tag = call.tag;
    worker.start = start;
    state->busy.insert({start, self});
    if (state->busy.size() == 1) state->ended.notify_all();  // whoever waits has a deadline now
    lock.unlock();
    FinishedCall finished{.tag = call.tag};
    std::exception_ptr bug;
    try {
      call.work();
    } catch (const CheckError&) {
      bug = std::current_exception();
    } catch (...) {
      finished.status = FinishedCall::Status::Threw;
      finished.message = message_of(std::current_exception());
    }
    call.work = nullptr;  // what it owned is destroyed here, not under the lock
    finished.seconds = Stopwatch(start).seconds();
    lock.lock();
    if (bug && !state->bug) state->bug = bug;
    const auto me = state->workers.find(self);
    if (me == state->workers.end()) {  // given up meanwhile
      --hanging_calls;
      state->ended.notify_all();
      return;
    }
    state->busy.erase({start, self});
    state->finished.push_back(std::move(finished));
    state->ended.notify_all();
  }
}

}  // namespace

EnvironmentWorkers::EnvironmentWorkers(int threads, double timeout_seconds) : state_(std::make_shared<State>()) {
  CARNOT_CHECK_GE(threads, 1);
  CARNOT_CHECK_LE(threads, kMaxEnvironmentThreads);
  state_->timeout = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  state_->max_workers = static_cast<std::size_t>(threads);
}

EnvironmentWorkers::~EnvironmentWorkers() {
  std::vector<std::thread> idle;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    for (auto& [id, worker] : state_->workers) {
      if (state_->busy.contains({worker.start, id})) {
        ++hanging_calls;
        worker.thread.detach();
      } else {
        idle.push_back(std::move(worker.thread));
      }
    }
    state_->workers.clear();
  }
  state_->submitted.notify_all();
  for (std::thread& thread : idle) thread.join();
}

// False if the system starts no further thread, or too many hang. REQUIRES: the lock is held.
bool EnvironmentWorkers::start_worker() {
  if (hanging_calls >= kMaxHangingCalls) {
    state_->start_failure = std::to_string(hanging_calls) + " calls of environments hang, each on its own thread";
    return false;
  }
  const int id = state_->next_worker++;
  try {
    std::thread thread([state = state_, id] { work(state, id); });  // waits for the lock
    state_->workers[id].thread = std::move(thread);
    return true;
  } catch (const std::system_error& error) {
    state_->start_failure = std::string("no thread can be started: ") + error.what();
    return false;
  }
}

// As many as calls wait for. REQUIRES: the lock is held.
void EnvironmentWorkers::start_missing() {
  State& state = *state_;
  while (state.queue.size() > state.workers.size() - state.busy.size() && state.workers.size() < state.max_workers) {
    if (start_worker()) continue;
    if (!state.warned && !state.workers.empty())
      log_warning("environments step on " + std::to_string(state.workers.size()) + " of " +
                  std::to_string(state.max_workers) + " threads: " + state.start_failure);
    state.warned = true;
    return;
  }
}

void EnvironmentWorkers::submit(std::int64_t tag, std::function<void()> call) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.push_back({.tag = tag, .work = std::move(call)});
    start_missing();
  }
  ++pending_;
  state_->submitted.notify_one();
}

// REQUIRES: the lock is held.
void EnvironmentWorkers::give_up_overdue() {
  auto& busy = state_->busy;
  while (!busy.empty() && Clock::now() >= busy.begin()->first + state_->timeout) {
    const int id = busy.begin()->second;
    busy.erase(busy.begin());
    State::Worker& worker = state_->workers.at(id);
    const double seconds = Stopwatch(worker.start).seconds();
    state_->finished.push_back({.tag = worker.tag,
                                .status = FinishedCall::Status::TimedOut,
                                .message = "no answer within " + std::to_string(seconds) + " s",
                                .seconds = seconds});
    ++hanging_calls;
    worker.thread.detach();
    state_->workers.erase(id);
  }
  start_missing();
}

// Where no thread is left and none can be started. REQUIRES: the lock is held.
void EnvironmentWorkers::refuse_queued() {
  if (state_->queue.empty() || !state_->workers.empty() || start_worker()) return;
  for (const State::Call& call : std::exchange(state_->queue, {}))
    state_->finished.push_back(
        {.tag = call.tag, .status = FinishedCall::Status::Refused, .message = state_->start_failure});
}

void EnvironmentWorkers::drop_queued() {
  std::deque<State::Call> dropped;  // what they own is destroyed after the lock is released
  const std::lock_guard lock(state_->mutex);
  dropped.swap(state_->queue);
  pending_ -= static_cast<int>(dropped.size());
}

std::vector<FinishedCall> EnvironmentWorkers::collect(bool wait) {
  const auto latest = Clock::now() + kLongestSleep;
  std::unique_lock lock(state_->mutex);
  for (;;) {
    give_up_overdue();
    refuse_queued();
    if (state_->bug) std::rethrow_exception(std::exchange(state_->bug, nullptr));
    if (!state_->finished.empty() || !wait || pending_ == 0 || Clock::now() >= latest) break;
    auto until = latest;
    if (!state_->busy.empty()) until = std::min(until, state_->busy.begin()->first + state_->timeout);
    state_->ended.wait_until(lock, until);
  }
  std::vector<FinishedCall> finished;
  finished.swap(state_->finished);
  pending_ -= static_cast<int>(finished.size());
  return finished;
}

}  // namespace carnot
