// worlds/process/environment.cpp -- an environment in any language: a program that Carnot starts and talks to in JSON.
//
// docs/process_environments.md has every message. python/carnot_environment.py is the other side, for Python.
// Several episodes share a process and there may be several processes; one that ends, hangs or breaks the protocol is
// started again, and the episodes that it held are infrastructure failures.
#include "carnot/core/env/environment.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/random.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/core/subprocess/python_folder.h"
#include "carnot/worlds/process/messages.h"
#include "carnot/worlds/tool_use/tool_use.h"

namespace carnot {
namespace {

constexpr int kMostProcesses = 256;
constexpr double kLongestCall = 1e6;  ///< seconds

struct ProcessOptions {
  std::vector<std::string> command{};
  std::string folder{};
  std::vector<std::string> settings{};
  int processes = 1;
  double timeout = 60;
  double start_timeout = 120;
  int max_turns = 0;
  int max_response_tokens = 0;
  ToolUseOptions tool_use{};

  void fields(FieldVisitor& visit) {
    const Limits seconds{.low = 0, .high = kLongestCall, .open_low = true};
    visit.field("command", command, "the program and its arguments: [python3, my_environment.py]");
    visit.field("folder", folder, "where the program runs; empty: where Carnot runs");
    visit.field("settings", settings, "key=value each, handed to the program when it starts");
    visit.field("processes", processes, "that share the episodes", between(1, kMostProcesses));
    visit.field("timeout", timeout, "seconds that an answer may take before the process is replaced", seconds);
    visit.field("start_timeout", start_timeout, "seconds from the start to the first answer", seconds);
    visit.field("max_turns", max_turns, "turns of an episode; 0: what the program says", between(0, kMaxEpisodeSteps));
    visit.field("max_response_tokens", max_response_tokens, "tokens of a response; 0: what the program says",
                between(0, kMaxResponseTokens));
    tool_use.fields(visit);
  }
};

/// Episodes are numbered across this program, so that no process sees one twice.
std::int64_t next_episode() {
  static std::atomic<std::int64_t> last = 0;
  return ++last;
}

struct Task {
  Split split = Split::Train;
  std::int64_t index = 0;
  std::uint64_t seed = 0;
};

/// What all episodes share. The pool lives as long as any of them.
struct ProcessWorld {
  ProcessWorld(PeerOptions peer, nlohmann::json hello, int processes)
      : pool(std::move(peer), std::move(hello), processes) {}

  PeerPool pool;
  ProcessGreeting greeting{};
};

class ProcessEnvironment final : public Environment {
 public:
  ProcessEnvironment(std::shared_ptr<ProcessWorld> world, const Task& task) : world_(std::move(world)), task_(task) {}

  ~ProcessEnvironment() override {
    if (peer_) peer_->tell(close_notice(episode_));
  }

  Protocol protocol() const override { return world_->greeting.protocol; }

  Opening open() override {
    peer_ = world_->pool.take();
    ProcessOpening opened = read_opening(peer_->call(reset_request(episode_, task_.split, task_.index, task_.seed)));
    ground_truth_ = std::move(opened.ground_truth);
    info_ = std::move(opened.info);
    anchor_ = std::move(opened.anchor);
    return std::move(opened.opening);
  }

  Reply step(const PolicyResponse& response) override {
    CARNOT_CHECK(peer_ != nullptr, "an environment is opened before its first step");
    ProcessReply answered = read_reply(peer_->call(step_request(episode_, response)));
    anchor_ = std::move(answered.anchor);
    Reply& reply = answered.reply;
    if (++turns_ < protocol().max_turns || reply.done) return std::move(reply);
    return {.reward = reply.reward,
            .penalty = reply.penalty,
            .valid_action = reply.valid_action,
            .done = true,
            .outcome = Outcome::OutOfTurns,
            .tool = reply.tool,
            .status = reply.status,
            .measures = reply.measures,
            .answer = reply.answer};
  }

  std::string anchor() const override { return anchor_; }
  std::vector<std::string> ground_truth() const override { return ground_truth_; }
  std::map<std::string, std::string> info() const override { return info_; }

  Branching branching() const override {
    if (world_->greeting.clone) return Branching::Cloned;
    return world_->greeting.replay ? Branching::Replayed : Branching::Refused;
  }

  std::unique_ptr<Environment> clone() const override {
    CARNOT_CHECK(peer_ != nullptr, "an environment is opened before it is cloned");
    auto copy = std::make_unique<ProcessEnvironment>(world_, task_);
    read_empty(peer_->call(clone_request(episode_, copy->episode_)));
    copy->peer_ = peer_;
    copy->turns_ = turns_;
    copy->ground_truth_ = ground_truth_;
    copy->info_ = info_;
    copy->anchor_ = anchor_;
    return copy;
  }

  PolicyResponse demonstrate(std::string_view observation, double progress) const {
    CARNOT_CHECK(peer_ != nullptr, "an environment is opened before it is demonstrated");
    return read_demonstration(peer_->call(demonstrate_request(episode_, observation, progress)));
  }

 private:
  std::shared_ptr<ProcessWorld> world_;
  Task task_;
  std::int64_t episode_ = next_episode();
  std::shared_ptr<Peer> peer_{};
  std::vector<std::string> ground_truth_{};
  std::map<std::string, std::string> info_{};
  std::string anchor_{};
  int turns_ = 0;
};

/// A script that ends well before it was asked anything has most likely forgotten to wait for it.
Error with_advice(const Error& error) {
  if (error.message.find("exited with status 0") == std::string::npos) return error;
  return Error{error.message + "; a Python script ends with serve(MyEnvironment)"};
}

/// Asks the process what to say.
class Demonstrator final : public ScriptedAgent {
 public:
  Demonstrator(const ProcessEnvironment& environment, double progress)
      : environment_(environment), progress_(progress) {}

  PolicyResponse respond(std::string_view observation) override {
    return environment_.demonstrate(observation, progress_);
  }

 private:
  const ProcessEnvironment& environment_;
  double progress_;
};

class ProcessFactory final : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    if (options_.command.empty())
      return Error{"env.command: names no program; expected a list like [python3, my_environment.py]"};
    CARNOT_ASSIGN_OR_RETURN(auto hello, hello_request(options_.settings));
    seed_ = seed;
    world_ = std::make_shared<ProcessWorld>(
        PeerOptions{
            .name = "env.command",
            .program = {.command = options_.command, .folder = options_.folder, .environment = python_variables()},
            .start_seconds = options_.start_timeout,
            .call_seconds = options_.timeout},
        std::move(hello), options_.processes);
    if (const Status started = world_->pool.start(); !started) return with_advice(started.error());
    try {
      world_->greeting = read_greeting(world_->pool.take()->greeting());
    } catch (const PeerFailure& failure) {
      return Error{failure.what()};
    }
    if (options_.max_turns > 0) world_->greeting.protocol.max_turns = options_.max_turns;
    if (options_.max_response_tokens > 0) world_->greeting.protocol.max_response_tokens = options_.max_response_tokens;
    CARNOT_ASSIGN_OR_RETURN(auto tools, ToolUse::open(options_.tool_use));
    tools_ = std::move(tools);
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    CARNOT_CHECK(world_ != nullptr, "prepare() has not been called");
    const std::uint64_t seed = derive_seed(seed_, split == Split::Train ? "process train" : "process validation",
                                           static_cast<std::uint64_t>(index));
    // 53 bits: a number that every JSON parser keeps.
    return ToolUse::add_to(
        std::make_unique<ProcessEnvironment>(world_, Task{.split = split, .index = index, .seed = seed >> 11}), tools_);
  }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress, RandomStream) const override {
    if (!world_->greeting.demonstrate) return nullptr;
    const auto* ours = dynamic_cast<const ProcessEnvironment*>(&environment.innermost());
    CARNOT_CHECK(ours != nullptr, "the environment is not one of this factory");
    return std::make_unique<Demonstrator>(*ours, progress);
  }

  std::string answer_lead() const override { return world_ ? world_->greeting.answer_lead : ""; }
  std::vector<std::string> tokenizer_texts() const override { return world_->greeting.tokenizer_texts; }
  std::vector<std::string> tokenizer_words() const override { return world_->greeting.tokenizer_words; }
  std::vector<std::string> tokenizer_added_tokens() const override { return world_->greeting.tokenizer_added_tokens; }

 private:
  ProcessOptions options_;
  std::uint64_t seed_ = 0;
  std::shared_ptr<ProcessWorld> world_{};
  std::shared_ptr<const ToolUse> tools_{};
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_process() { return std::make_unique<ProcessFactory>(); }

}  // namespace carnot
