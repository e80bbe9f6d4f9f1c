// testing/scripted_environment.h -- an environment that answers with a hash of what it got, and misbehaves on request.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "carnot/core/base/random.h"
#include "carnot/core/env/environment.h"

namespace carnot::testing {

struct ScriptedOptions {
  int turns = 4;  ///< the last one ends the episode
  int max_turns = 10;
  int max_response_tokens = 12;
  std::vector<std::string> stop_strings{"z"};
  ReplyForm form = ReplyForm::UserMessage;
  std::string prefix = "<think>";
  std::uint64_t latency_seed = 0;  ///< other than 0: each step sleeps up to 3 ms, drawn from here and the text
  int throws_at = -1;              ///< step that throws
  int hangs_at = -1;               ///< step that calls `hang` first
  std::function<void()> hang{};
  bool succeeds = true;  ///< the last turn does
  bool opens = true;     ///< false: open() throws
  /// Replaces what a step answers.
  std::function<void(int turn, Reply& reply)> change{};
  /// Scores last replies that `change` left unscored.
  std::function<void(std::span<Reply> last_replies)> score_group{};
  /// Called before a copy is made. What it throws, clone() throws; if it returns false, clone() returns null.
  std::function<bool(int generation, int turn)> before_copy{};
  Branching branching = Branching::Cloned;
  std::vector<ToolDescription> tools{};
};

class ScriptedEnvironment : public Environment {
 public:
  ScriptedEnvironment(const ScriptedOptions& options, std::uint64_t seed) : options_(options), state_(seed) {}

  Protocol protocol() const override {
    return {.stop_strings = options_.stop_strings,
            .max_turns = options_.max_turns,
            .max_response_tokens = options_.max_response_tokens};
  }

  Opening open() override {
    if (!options_.opens) throw std::runtime_error("no such world");
    return {.system = "be brief",
            .user = "task " + std::to_string(state_),
            .assistant_prefix = options_.prefix,
            .tools = options_.tools};
  }

  Reply step(const PolicyResponse& response) override {
    if (turn_ == options_.throws_at) throw std::runtime_error("the world broke");
    if (turn_ == options_.hangs_at) options_.hang();
    state_ = derive_seed(state_, response.text, static_cast<std::uint64_t>(++turn_));
    if (options_.latency_seed != 0)
      std::this_thread::sleep_for(std::chrono::microseconds(derive_seed(options_.latency_seed, response.text) % 3000));
    Reply reply{.form = options_.form, .reward = static_cast<double>(state_ % 3), .tool = "hash", .status = "ok"};
    reply.done = turn_ == options_.turns;
    reply.success = reply.done && options_.succeeds;
    if (reply.done) {
      reply.measures["turns"] = turn_;
    } else {
      reply.text = "heard " + std::to_string(state_ % 1000);
    }
    if (options_.change) options_.change(turn_, reply);
    return reply;
  }

  void score_group(std::span<Reply> last_replies) override { options_.score_group(last_replies); }

  std::string anchor() const override { return std::to_string(state_); }
  std::vector<std::string> ground_truth() const override { return {"yes"}; }
  Branching branching() const override { return options_.branching; }
  std::unique_ptr<Environment> clone() const override {
    if (options_.before_copy && !options_.before_copy(generation_, turn_)) return nullptr;
    auto copy = std::make_unique<ScriptedEnvironment>(*this);
    ++copy->generation_;
    return copy;
  }

 private:
  ScriptedOptions options_;
  std::uint64_t state_;
  int turn_ = 0;
  int generation_ = 0;  ///< 0: made by the factory; 1: a copy of that
};

}  // namespace carnot::testing
