#include "carnot/worlds/agent/harness.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "carnot/core/base/log.h"
#include "carnot/core/base/no_pipe_signal.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/subprocess/line_program.h"

namespace carnot {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kShownLine = 500;
constexpr std::chrono::milliseconds kPipeSlice{100};

}  // namespace

Result<std::unique_ptr<Harness>> Harness::start(const HarnessCall& call, std::shared_ptr<AgentEpisode> episode) {
  CARNOT_ASSIGN_OR_RETURN(
      auto process,
      ChildProcess::start({.command = call.command, .folder = call.folder, .environment = call.variables}));
  return std::unique_ptr<Harness>(new Harness(std::move(process), std::move(episode), call.task + "\n"));
}

Harness::Harness(std::unique_ptr<ChildProcess> process, std::shared_ptr<AgentEpisode> episode, std::string task)
    : process_(std::move(process)), episode_(std::move(episode)), task_(std::move(task)) {
  thread_ = std::thread([this] { watch(); });
}

Harness::~Harness() {
  process_->kill();
  thread_.join();
}

/// False once there is nothing more to write.
bool Harness::write_task() {
  const ssize_t count = ::write(process_->standard_input(), task_.data(), task_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  task_.erase(0, count < 0 ? task_.size() : static_cast<std::size_t>(count));  // it may close it unread
  if (task_.empty()) process_->close_input();
  return !task_.empty();
}

void Harness::watch() {
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

void Harness::tell_end() {
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

}  // namespace carnot
