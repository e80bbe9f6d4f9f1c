#include "carnot/core/rollout/rollout_context.h"

#include <utility>
#include <vector>

#include "carnot/core/env/environment_boundary.h"

namespace carnot {

FinishedCall EnvironmentCopies::copy(const Episode& episode, std::shared_ptr<Environment>& copy) {
  FinishedCall call{.status = FinishedCall::Status::Refused, .message = hangs_};
  if (!hangs_.empty() || context_.stopped) return call;
  const auto made = std::make_shared<std::shared_ptr<Environment>>();
  context_.copier.submit(0, [made, environment = episode.environment(), turns = episode.played(), make = task_.make] {
    *made = copy_environment(*environment, make, turns);
  });
  while (context_.copier.pending() > 0) {
    std::vector<FinishedCall> ended = context_.copier.collect(true);
    if (!ended.empty()) call = std::move(ended.back());
    if (ended.empty() && !context_.may_continue()) return call;
  }
  if (call.status == FinishedCall::Status::Returned) {
    copy = std::move(*made);
    return call;
  }
  call.message = "the environment could not be copied: " + call.message;
  if (call.status == FinishedCall::Status::TimedOut) hangs_ = call.message;
  return call;
}

}  // namespace carnot
