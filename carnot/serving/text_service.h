// serving/text_service.h -- continues the prompts of many callers at once: one engine thread, whose batch orders join
// and leave between two steps.
//
// What an order gets does not depend on the other orders (serving/text_batch.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "carnot/serving/text_batch.h"

namespace carnot {

struct TextServiceOptions {
  int batch = 32;        ///< texts in work at a time
  int cache_tokens = 0;  ///< positions of the KV cache; 0: enough for `batch` of the longest texts, at most 65536
  int queue = 256;       ///< further texts that may wait
};

/// The positions of the KV cache, where the options leave them open.
int cache_positions(const Model& model, const TextServiceOptions& options);

struct ServedToken {
  TokenDraw draw{};
  std::vector<TokenLogProb> likeliest{};
};

/// What is new of one of an order's texts.
struct TextPiece {
  int text_number = 0;  ///< job times samples, plus sample
  std::string text{};
  std::vector<ServedToken> tokens{};  ///< one that ended the text included
  std::optional<Finish> finish{};
};

/// When a caller is woken: at each token, or once all of its texts are whole.
enum class Delivery { AsSampled, Whole };

class TextService {
 public:
  class Order;

  /// Both must outlive the service.
  TextService(const Model& model, const Tokenizer& tokenizer, const TextServiceOptions& options);
  /// Ends at once. REQUIRES: no orders.
  ~TextService();
  TextService(const TextService&) = delete;
  TextService& operator=(const TextService&) = delete;

  /// Positions of the longest text, prompt included.
  int longest_text() const;
  /// Texts that one order may have.
  int most_texts() const;

  /// Takes the jobs, which have the same number of samples. Null if too many texts wait already, or after close().
  /// REQUIRES: prompt and max_tokens of each together at most longest_text(); 1 to most_texts() texts in all. Any
  /// thread.
  std::unique_ptr<Order> submit(std::vector<TextJob> jobs, Delivery delivery);

  /// Takes no more orders. Any thread.
  void close();

  /// No order is unfinished. Any thread.
  bool is_idle() const;

  /// What ended the engine thread, if anything did: nothing is answered any more. Any thread.
  std::exception_ptr failure() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

/// The caller's end of an order; given up by its end. One thread.
class TextService::Order {
 public:
  ~Order();

  /// What has come since the last call; waits for it up to `patience`. Throws std::runtime_error where the engine has
  /// failed.
  std::vector<TextPiece> take(std::chrono::milliseconds patience);

  /// All texts have ended, and all of them was taken.
  bool is_finished() const { return finished_; }

 private:
  friend class TextService;
  struct State;
  explicit Order(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
  bool finished_ = false;
};

}  // namespace carnot
