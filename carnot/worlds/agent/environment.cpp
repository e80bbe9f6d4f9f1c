// worlds/agent/environment.cpp -- agents that were written elsewhere: a harness per episode, whose model is the policy.
//
// The environment of a policy is whatever answers it. Here that is the harness: its first call of OpenAI's API opens
// the conversation, and every further call is the answer to what the policy said before. docs/agents.md is the manual.
#include "carnot/core/env/environment.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/no_pipe_signal.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/env/epoch_order.h"
#include "carnot/core/rows/row_file.h"
#include "carnot/core/subprocess/child_process.h"
#include "carnot/core/subprocess/line_program.h"
#include "carnot/worlds/agent/conversation.h"
#include "carnot/worlds/agent/server.h"

namespace carnot {
namespace {

constexpr double kLongestWait = 1e6;               // seconds
constexpr std::size_t kLongestVariable = 100'000;  // Linux takes 128 KiB
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kShownLine = 500;
constexpr std::chrono::milliseconds kPipeSlice{100};

struct AgentOptions {
  std::vector<std::string> command{};
  std::string folder{};
  std::string train_file{}, test_file{};
  int port = 0;
  double timeout = 60;
  double start_timeout = 100;
  int max_turns = 50;
  int max_response_tokens = 1024;

  void fields(FieldVisitor& visit) {
    const Limits seconds{.low = 0, .high = kLongestWait, .open_low = true};
    visit.field("command", command, "the harness and its arguments, started for each episode; empty: others start it");
    visit.field("folder", folder, "where the harness runs; empty: where Carnot runs");
    visit.field("train_file", train_file,
                "tasks, a JSON object each line; empty: the harness gets a number and a seed");
    visit.field("test_file", test_file, "those of the validation; empty: train_file");
    visit.field("port", port, "of 127.0.0.1, where episodes have their addresses; 0: any that is free",
                between(0, 65535));
    visit.field("timeout", timeout, "seconds that a harness may take from an answer to its next call or its end",
                seconds);
    visit.field("start_timeout", start_timeout, "seconds from a harness's start to its first call", seconds);
    visit.field("max_turns", max_turns, "calls of an episode", between(1, kMaxEpisodeSteps));
    visit.field("max_response_tokens", max_response_tokens, "tokens of a response", between(1, kMaxResponseTokens));
  }
};

struct HarnessCall {
  std::vector<std::string> command{};
  std::filesystem::path folder{};        ///< it runs there; empty: where this process runs
  std::vector<std::string> variables{};  ///< NAME=value, next to this process's own
  std::string task{};                    ///< a line for its standard input, which is closed after it
};

/// The process of one episode: an agent written elsewhere, which is given the address of its model.
class Harness {
 public:
  /// Starts it. What it writes to standard error goes to the log; its end, and a reward in its last line, to the
  /// episode. The error says why it cannot be started.
  static Result<std::unique_ptr<Harness>> start(const HarnessCall& call, std::shared_ptr<AgentEpisode> episode) {
    CARNOT_ASSIGN_OR_RETURN(
        auto process,
        ChildProcess::start({.command = call.command, .folder = call.folder, .environment = call.variables}));
    return std::unique_ptr<Harness>(new Harness(std::move(process), std::move(episode), call.task + "\n"));
  }

  /// Kills it and what it started.
  ~Harness() {
    process_->kill();
    thread_.join();
  }

  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

 private:
  Harness(std::unique_ptr<ChildProcess> process, std::shared_ptr<AgentEpisode> episode, std::string task)
      : process_(std::move(process)), episode_(std::move(episode)), task_(std::move(task)) {
    thread_ = std::thread([this] { watch(); });
  }

  void watch() {
    const NoPipeSignal no_pipe_signal;  // it may close its standard input unread
    LineSplitter output(kLongestLine), error(kLongestLine);
    const std::string name = "harness " + std::to_string(process_->id());
    bool output_open = true, error_open = true, writing = true;
    for (bool ended = false; !ended && (output_open || error_open);) {
      ended = process_->ended(std::chrono::milliseconds(0)).has_value();  // what it left may hold its pipes for longer
      std::vector<pollfd> pipes;
      if (output_open) pipes.push_back({.fd = process_->standard_output(), .events = POLLIN, .revents = 0});
      if (error_open) pipes.push_back({.fd = process_->standard_error(), .events = POLLIN, .revents = 0});
      if (writing) pipes.push_back({.fd = process_->standard_input(), .events = POLLOUT, .revents = 0});
      if (!ended) ::poll(pipes.data(), pipes.size(), static_cast<int>(kPipeSlice.count()));
      if (writing) writing = write_task();
      if (output_open)
        output_open = output.read(process_->standard_output(), [&](std::string_view line, bool whole) {
          if (const std::string_view said = trim(line); !said.empty()) last_line_ = whole ? std::string(said) : "";
        });
      if (error_open)
        error_open = error.read(process_->standard_error(), [&](std::string_view line, bool) {
          last_error_line_ = std::string(line.substr(0, kShownLine));
          log(LogLevel::Info, name + ": " + last_error_line_);
        });
    }
    tell_end();
  }

  void tell_end() {
    std::optional<std::string> end;
    while (!(end = process_->ended(kPipeSlice))) continue;
    std::string why = "the harness " + *end;
    std::optional<EpisodeReward> reward;
    if (*end == "exited with status 0") {
      auto read = read_reward(last_line_, "its last line");
      if (read)
        reward = std::move(read).value();
      else
        why += " without a reward: " + read.error().message;
    } else if (!last_error_line_.empty()) {
      why += ": " + last_error_line_;
    }
    episode_->end(why, std::move(reward));
  }

  /// False once there is nothing more to write.
  bool write_task() {
    const ssize_t count = ::write(process_->standard_input(), task_.data(), task_.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    task_.erase(0, count < 0 ? task_.size() : static_cast<std::size_t>(count));  // it may close it unread
    if (task_.empty()) process_->close_input();
    return !task_.empty();
  }

  std::unique_ptr<ChildProcess> process_;
  std::shared_ptr<AgentEpisode> episode_;
  std::string task_;  ///< what is not written yet
  std::string last_line_{};
  std::string last_error_line_{};
  std::thread thread_;
};

/// What all episodes share.
struct AgentWorld {
  AgentOptions options{};
  std::unique_ptr<AgentServer> server{};
  std::vector<std::string> train{}, test{};  ///< JSON objects
};

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

class AgentEnvironment final : public Environment {
 public:
  AgentEnvironment(std::shared_ptr<AgentWorld> world, std::string task)
      : world_(std::move(world)), task_(std::move(task)) {}

  // The harness ends with its episode.
  ~AgentEnvironment() override {
    if (!address_.base_url.empty()) world_->server->close(address_);
    harness_.reset();
  }

  Protocol protocol() const override {
    return {.think_tag = "think",
            .action_tags = {},
            .max_turns = world_->options.max_turns,
            .max_response_tokens = world_->options.max_response_tokens};
  }

  Opening open() override {
    const bool waits = world_->options.command.empty();
    address_ = world_->server->open(episode_, task_, waits);
    if (!waits) start();
    const AgentEpisode::Event event = next(world_->options.start_timeout);
    if (!event.call)
      throw EnvironmentFailure(event.end.value_or("the harness gave a reward") + " before it asked anything");
    call_ = event.call;
    return prompt_of(call_->request);
  }

  Reply step(const PolicyResponse& response) override {
    CARNOT_CHECK(call_ != nullptr, "an environment is opened before its first step");
    const AnsweredCall last{.request = call_->request, .answer = answer_message(response, turns_)};
    const bool calls = !response.tool_calls.empty();
    episode_->answer(*call_, last.answer);
    AgentEpisode::Event event = next(world_->options.timeout);
    Reply reply;
    if (event.end) throw EnvironmentFailure(*event.end);
    if (event.reward) {
      reply = {.reward = event.reward->reward,
               .done = true,
               .success = event.reward->success.value_or(event.reward->reward > 0),
               .measures = event.reward->measures};
      reply.measures["conversations"] = conversations_;
    } else {
      call_ = event.call;
      if (++turns_ >= world_->options.max_turns) return {.done = true, .outcome = Outcome::OutOfTurns};
      auto further = continuation(last, call_->request);
      if (!further) ++conversations_;
      reply =
          further ? std::move(*further) : Reply{.form = ReplyForm::FreshPrompt, .prompt = prompt_of(call_->request)};
    }
    if (calls) reply.tool = response.tool_calls[0].name;
    reply.valid_action = response.problem.empty();
    return reply;
  }

  std::map<std::string, std::string> info() const override { return {{"task", task_}}; }

 private:
  void start() {
    HarnessCall call{.command = world_->options.command,
                     .folder = world_->options.folder,
                     .variables = {"OPENAI_BASE_URL=" + address_.base_url, "OPENAI_API_KEY=none",
                                   "CARNOT_REWARD_URL=" + address_.reward_url},
                     .task = task_};
    if (task_.size() <= kLongestVariable) call.variables.push_back("CARNOT_TASK=" + task_);
    auto started = Harness::start(call, episode_);
    if (!started) throw EnvironmentFailure(started.error().message);
    harness_ = std::move(started).value();
  }

  AgentEpisode::Event next(double seconds) {
    auto event = episode_->next(milliseconds_of(seconds));
    if (!event) throw EnvironmentFailure("the harness did nothing for " + std::to_string(seconds) + " s");
    return std::move(*event);
  }

  std::shared_ptr<AgentWorld> world_;
  std::string task_;
  std::shared_ptr<AgentEpisode> episode_ = std::make_shared<AgentEpisode>();
  EpisodeAddress address_{};
  std::unique_ptr<Harness> harness_{};
  std::shared_ptr<AgentEpisode::Call> call_{};  ///< that the policy answers now
  int turns_ = 0;
  int conversations_ = 1;
};

class AgentFactory final : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    seed_ = seed;
    auto world = std::make_shared<AgentWorld>();
    world->options = options_;
    std::vector<std::string> problems;
    read_rows("env.train_file", options_.train_file, world->train, problems);
    read_rows("env.test_file", options_.test_file, world->test, problems);
    if (!problems.empty()) return join_errors(problems);
    if (world->test.empty()) world->test = world->train;
    if (!world->train.empty()) order_ = std::make_unique<EpochOrder>(world->train.size(), seed, "agent_epoch");
    auto server = AgentServer::start(options_.port);
    if (!server) return Error{"env.port: " + server.error().message};
    world->server = std::move(server).value();
    world_ = std::move(world);
    return Done{};
  }

  std::int64_t num_training_tasks() const override { return std::ssize(world_->train); }
  std::int64_t num_validation_tasks() const override { return std::ssize(world_->test); }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    CARNOT_CHECK(world_ != nullptr, "prepare() has not been called");
    CARNOT_CHECK_GE(index, 0);
    const bool train = split == Split::Train;
    const char* purpose = train ? "agent train" : "agent validation";
    OrderedJson task{{"split", train ? "train" : "validation"},
                     {"index", index},
                     // 53 bits: a number that every JSON parser keeps.
                     {"seed", derive_seed(seed_, purpose, static_cast<std::uint64_t>(index)) >> 11},
                     {"task", nullptr}};
    const auto& rows = train ? world_->train : world_->test;
    if (!rows.empty()) {
      const std::size_t row = train ? order_->row(index) : static_cast<std::size_t>(index) % rows.size();
      task["task"] = parse_json<OrderedJson>(rows[row], "task").value();
    }
    return std::make_unique<AgentEnvironment>(world_, json_line(task));
  }

 private:
  static void read_rows(const std::string& key, const std::string& path, std::vector<std::string>& rows,
                        std::vector<std::string>& problems) {
    if (path.empty()) return;
    const auto text = read_row_text(path, "python3");
    const auto keep = [&](const OrderedJson& row, const std::string&, auto&) { rows.push_back(json_line(row)); };
    const Status read = text ? carnot::read_rows(*text, path, keep) : Status(text.error());
    if (!read) problems.push_back(key + ": " + read.error().message);
  }

  AgentOptions options_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<EpochOrder> order_{};
  std::shared_ptr<AgentWorld> world_{};
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_agent() { return std::make_unique<AgentFactory>(); }

}  // namespace carnot
