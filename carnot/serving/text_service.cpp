#include "carnot/serving/text_service.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "carnot/core/base/check.h"

namespace carnot {

int cache_positions(const Model& model, const TextServiceOptions& options) {
  const std::int64_t longest = model.config().max_positions;
  if (options.cache_tokens > 0) return options.cache_tokens;
  return static_cast<int>(std::max(longest, std::min(longest * options.batch, kMostCacheTokens)));
}

/// Shared by an order and the engine thread.
struct TextService::Order::State {
  Delivery delivery = Delivery::Whole;
  int texts = 0;

  std::mutex mutex{};
  std::condition_variable changed{};
  std::map<int, TextPiece> pieces{};  ///< not taken yet, by the text's number
  int unfinished = 0;
  bool failed = false;

  std::atomic<bool> given_up = false;

  bool has_news() const { return failed || unfinished == 0 || (delivery == Delivery::AsSampled && !pieces.empty()); }

  void add(int number, const TextStep& step) {
    bool news = false;
    {
      const std::lock_guard lock(mutex);
      TextPiece& piece = pieces[number];
      piece.text_number = number;
      piece.text += step.piece;
      piece.tokens.push_back({.draw = step.draw, .likeliest = step.likeliest});
      piece.finish = step.finish;
      if (step.finish) --unfinished;
      news = has_news();
    }
    if (news) changed.notify_one();
  }

  void fail() {
    {
      const std::lock_guard lock(mutex);
      failed = true;
    }
    changed.notify_one();
  }
};

class TextService::Work {
 public:
  Work(const Model& model, const Tokenizer& tokenizer, const TextServiceOptions& options)
      : longest_text_(std::min(model.config().max_positions, cache_positions(model, options))),
        most_texts_(options.batch + options.queue),
        batch_(model, tokenizer, {.texts = options.batch, .cache_tokens = cache_positions(model, options)}),
        thread_([this] { run(); }) {}

  ~Work() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  int longest_text() const { return longest_text_; }
  int most_texts() const { return most_texts_; }

  std::shared_ptr<Order::State> submit(std::vector<TextJob> jobs, Delivery delivery) {
    auto state = std::make_shared<Order::State>();
    state->delivery = delivery;
    for (const TextJob& job : jobs) state->texts += job.samples;
    state->unfinished = state->texts;
    CARNOT_CHECK_GE(state->texts, 1);
    CARNOT_CHECK_LE(state->texts, most_texts_);
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || failure_ || texts_ + state->texts > most_texts_) return nullptr;
      texts_ += state->texts;
      inbox_.push_back({state, std::move(jobs)});
    }
    changed_.notify_one();
    return state;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  bool is_idle() const {
    const std::lock_guard lock(mutex_);
    return texts_ == 0;
  }
  std::exception_ptr failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  struct Submitted {
    std::shared_ptr<Order::State> state{};
    std::vector<TextJob> jobs{};
  };
  struct Job {
    std::shared_ptr<Order::State> state{};
    int first_text = 0;
    int unfinished = 0;
  };

  void run() {
    try {
      while (receive())
        if (batch_.has_work()) deliver(batch_.step());
    } catch (...) {
      fail(std::current_exception());
    }
  }

  /// Waits for something to do; false at the end.
  bool receive() {
    std::vector<Submitted> submitted;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !inbox_.empty() || batch_.has_work(); });
      if (ending_) return false;
      submitted.swap(inbox_);
    }
    for (Submitted& order : submitted) begin(order);
    drop_given_up();
    return true;
  }

  void begin(Submitted& order) {
    int first_text = 0;
    for (TextJob& job : order.jobs) {
      const TextJobId id = next_id_++;
      jobs_.emplace(id, Job{.state = order.state, .first_text = first_text, .unfinished = job.samples});
      first_text += job.samples;
      batch_.add(id, std::move(job));
    }
  }

  void drop_given_up() {
    int dropped = 0;
    std::erase_if(jobs_, [&](const auto& job) {
      if (!job.second.state->given_up) return false;
      batch_.cancel(job.first);
      dropped += job.second.unfinished;
      return true;
    });
    if (dropped > 0) count_finished(dropped);
  }

  void deliver(const std::vector<TextStep>& steps) {
    int finished = 0;
    for (const TextStep& step : steps) {
      const auto found = jobs_.find(step.job);
      Job& job = found->second;
      job.state->add(job.first_text + step.sample, step);
      if (!step.finish) continue;
      ++finished;
      if (--job.unfinished == 0) jobs_.erase(found);
    }
    if (finished > 0) count_finished(finished);
  }

  void count_finished(int texts) {
    const std::lock_guard lock(mutex_);
    texts_ -= texts;
  }

  void fail(std::exception_ptr failure) {
    std::vector<Submitted> submitted;
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::move(failure);
      submitted.swap(inbox_);
      texts_ = 0;
    }
    for (const Submitted& order : submitted) order.state->fail();
    for (const auto& [id, job] : jobs_) job.state->fail();
    jobs_.clear();
  }

  int longest_text_;
  int most_texts_;
  TextBatch batch_;                ///< of the engine thread
  std::map<TextJobId, Job> jobs_;  ///< of the engine thread; unfinished ones
  TextJobId next_id_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Submitted> inbox_;
  int texts_ = 0;  ///< unfinished, those of the inbox included
  bool closed_ = false;
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // the last: it uses the others
};

TextService::Order::Order(std::shared_ptr<State> state) : state_(std::move(state)) {}

// The engine thread looks before its next step; without one to do, nothing of the order is in work.
TextService::Order::~Order() { state_->given_up = true; }

std::vector<TextPiece> TextService::Order::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, patience, [&] { return state_->has_news(); })) return {};
  if (state_->failed) throw std::runtime_error("the engine has failed");
  std::vector<TextPiece> pieces;
  for (auto& [number, piece] : state_->pieces) pieces.push_back(std::move(piece));
  state_->pieces.clear();
  finished_ = state_->unfinished == 0;
  return pieces;
}

TextService::TextService(const Model& model, const Tokenizer& tokenizer, const TextServiceOptions& options)
    : work_(std::make_unique<Work>(model, tokenizer, options)) {}
TextService::~TextService() = default;

int TextService::longest_text() const { return work_->longest_text(); }
int TextService::most_texts() const { return work_->most_texts(); }

std::unique_ptr<TextService::Order> TextService::submit(std::vector<TextJob> jobs, Delivery delivery) {
  auto state = work_->submit(std::move(jobs), delivery);
  if (!state) return nullptr;
  return std::unique_ptr<Order>(new Order(std::move(state)));
}

void TextService::close() { work_->close(); }
bool TextService::is_idle() const { return work_->is_idle(); }
std::exception_ptr TextService::failure() const { return work_->failure(); }

}  // namespace carnot
