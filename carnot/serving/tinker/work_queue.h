// serving/tinker/work_queue.h -- work that is answered later: one thread does it in the order in which it came, texts
// of the same policy together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "carnot/core/nn/model.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/serving/text_service.h"
#include "carnot/serving/tinker/wire.h"

namespace carnot {

/// What a request gets.
struct TinkerReply {
  std::string body{};
  bool is_protobuf = false;  ///< otherwise JSON
};

/// A policy that texts are sampled from; opened when the first of them begins.
class Sampler {
 public:
  explicit Sampler(std::function<Result<Model>()> open) : open_(std::move(open)) {}
  /// The thread of the queue alone.
  Result<const Model*> model();

 private:
  std::function<Result<Model>()> open_;
  std::optional<Model> model_{};
};

struct SampleWork {
  std::shared_ptr<Sampler> sampler{};
  TextJob job{};
  int first_scored = 0;  ///< prompt tokens from here on get log-probabilities; 0: none
};

using TinkerWork = std::variant<std::function<TinkerReply()>, SampleWork>;

/// A reply that says what went wrong. `by_caller`: the request itself is wrong.
TinkerReply failed_reply(const std::string& message, bool by_caller);

class WorkQueue {
 public:
  /// The tokenizer must outlive it. `longest`: positions of a text.
  WorkQueue(const Tokenizer& tokenizer, const TextServiceOptions& options, int longest);
  /// Ends after the work in hand.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Positions of a text, prompt included.
  int longest_text() const { return longest_; }

  enum class Submitted { Taken, Known, Full };
  /// Work that is known under this id is not taken again. Full: as much as may wait does. Any thread.
  Submitted submit(const std::string& id, TinkerWork work);

  /// Whether the work is unfinished, or its reply is still kept. Any thread.
  bool knows(const std::string& id) const;

  enum class Missing { Unfinished, Unknown };
  /// The reply, as soon as it is there; waits for it up to `patience`. It is kept for some time after it was taken.
  std::variant<TinkerReply, Missing> reply(const std::string& id, std::chrono::milliseconds patience);

  /// Takes no more work. Any thread.
  void close();
  bool is_idle() const;
  /// What ended the thread, if anything did.
  std::exception_ptr failure() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::optional<TinkerReply> reply{};
    Clock::time_point forgotten{};  ///< once there is a reply
  };
  struct Waiting {
    std::string id{};
    TinkerWork work{};
  };
  class Texts;

  void run();
  /// The next work; empty at the end. With `sampler`, only a text of it that is next.
  std::optional<Waiting> next(const Sampler* sampler);
  void finish(const std::string& id, TinkerReply reply);
  void sample(Waiting first);
  void forget_old();

  const Tokenizer& tokenizer_;
  TextServiceOptions options_;
  int longest_;
  std::unique_ptr<Texts> texts_;  ///< of the thread

  mutable std::mutex mutex_;
  std::condition_variable added_, finished_;
  std::deque<Waiting> waiting_;
  std::map<std::string, Entry> entries_;
  std::size_t unfinished_ = 0;
  bool closed_ = false;
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace carnot
