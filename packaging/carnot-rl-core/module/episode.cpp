#include "episode.h"

#include <utility>

namespace carnot::python {

Episode::Episode(Make make) : make_(std::move(make)), environment_(make_()) {}

Result<Opening> Episode::open() {
  const std::lock_guard lock(calls_);
  if (!opening_) {
    opening_ = environment_->open();
    assistant_prefix_ = opening_->assistant_prefix;
  }
  return *opening_;
}

Status Episode::expect_running(const std::string& call) const {
  if (!opening_) return Error{call + ": the episode has not begun; call open() first"};
  if (done_) return Error{call + ": the episode is over"};
  return Done{};
}

Result<Reply> Episode::step(PolicyResponse response) {
  const std::lock_guard lock(calls_);
  CARNOT_RETURN_IF_ERROR(expect_running("step"));
  if (!response.text.starts_with(assistant_prefix_)) response.text = assistant_prefix_ + response.text;
  Reply reply = step_alone(*environment_, response);
  done_ = reply.done;
  if (!done_ && reply.form == ReplyForm::FreshPrompt) assistant_prefix_ = reply.prompt.assistant_prefix;
  if (environment_->branching() == Branching::Replayed) played_.push_back({std::move(response), key_of(reply)});
  return reply;
}

Result<std::unique_ptr<Episode>> Episode::clone() {
  const std::lock_guard lock(calls_);
  CARNOT_RETURN_IF_ERROR(expect_running("clone"));
  if (environment_->branching() == Branching::Refused) return Error{"clone: this environment cannot be copied"};
  auto copy = std::make_unique<Episode>([&] { return copy_environment(*environment_, make_, played_); });
  copy->make_ = make_;
  copy->opening_ = opening_;
  copy->assistant_prefix_ = assistant_prefix_;
  copy->played_ = played_;
  return copy;
}

bool Episode::can_clone() const { return environment_->branching() != Branching::Refused; }

Protocol Episode::protocol() const { return environment_->protocol(); }

std::string Episode::anchor() const {
  const std::lock_guard lock(calls_);
  return environment_->anchor();
}

std::vector<std::string> Episode::ground_truth() const {
  const std::lock_guard lock(calls_);
  return environment_->ground_truth();
}

std::map<std::string, std::string> Episode::info() const {
  const std::lock_guard lock(calls_);
  return environment_->info();
}

}  // namespace carnot::python
