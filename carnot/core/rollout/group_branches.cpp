// Where the trajectories of a group start: at the prompt, at a node, in the middle of another one, or of a recorded
// one.
#include <algorithm>
#include <limits>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/rollout/group_rollout.h"

namespace carnot {

// At a node, with a copy of the node's environment; fails at once if there is no copy.
void GroupRollout::start(const Start& from) {
  if (from.node == nullptr) return start_from_prompt(from.tree, from.parent);
  ++context_.branches;
  Boundary boundary = *from.node;
  std::shared_ptr<Environment> copy;
  const FinishedCall call = copies_.copy(boundary.episode, copy);
  if (call.status != FinishedCall::Status::Returned) return fail(add_member(std::move(boundary)), call.message);
  boundary.episode = boundary.episode.branch(std::move(copy));
  start_at(std::move(boundary));
}

// A separate trajectory from the first turn on: with the environment that opened the task, or a new one.
void GroupRollout::start_from_prompt(int tree, int parent) {
  Member& member = add_member(
      {.parent = parent, .tree = tree, .episode = *first_, .sequence = root_, .num_tokens = prompt_tokens()});
  if (!first_taken_) {
    first_taken_ = true;
    share_prompt(member);
    return begin_turn(member);
  }
  member.state = Member::State::Opening;
  member.opening = std::make_shared<OpenedEnvironment>();
  const Owner owner{.group = index_, .member = member.sibling};
  context_.workers.submit(owner.tag(),
                          [opened = member.opening, make = task_.make] { *opened = open_environment(make()); });
}

void GroupRollout::share_prompt(Member& member) {
  if (task_.given) return start_context(member, first_->opening().tokens);
  own_sequence(member, context_.engine.fork(root_, prompt_tokens()));
  member.turn_begin = prompt_tokens();
}

// What the trajectories of the group begin with, computed once.
std::span<const TokenId> GroupRollout::common_tokens() {
  if (!task_.given) return first_->opening().tokens;
  CARNOT_CHECK(!context_.policy.ever_branches(), "trajectories that continue a recorded one do not branch");
  given_tokens_ = task_.given->context;
  given_tokens_.insert(given_tokens_.end(), task_.given->begun.begin(), task_.given->begun.end());
  return given_tokens_;
}

// Gives the member its next response, which its environment is asked about; false after the last one: then it samples.
bool GroupRollout::take_given(Member& member) {
  const GivenStart& given = *task_.given;
  const auto push = [&](std::span<const TokenId> tokens) {
    constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
    for (const TokenId token : tokens)
      member.response.push({.token = token, .log_prob = kUnknown, .entropy = kUnknown});
  };
  if (static_cast<std::size_t>(member.num_turns()) < given.responses.size()) {
    push(given.responses[member.num_turns()]);
    ask_environment(member);
    return true;
  }
  if (member.context != given.context) {
    member.state = Member::State::Prefilling;  // no turn is open
    answered_otherwise(member);
    return true;
  }
  member.given = false;
  member.episode.environment()->redraw(random_bits(draws_.key("environment", member.sibling, member.num_turns(), 0)));
  push(given.begun);
  CARNOT_CHECK_LT(member.response.size(), member.response_limit);
  own_sequence(member, context_.engine.fork(root_, static_cast<int>(given_tokens_.size())));
  return false;
}

void GroupRollout::answered_otherwise(Member& member) {
  fail(member, "the environment answers the responses of a recorded trajectory otherwise than it did");
}

void GroupRollout::start_at(Boundary from) {
  const SequenceId shared = from.sequence;
  const int tokens = from.num_tokens;
  Member& member = add_member(std::move(from));
  own_sequence(member, context_.engine.fork(shared, tokens));
  begin_turn(member);
}

// All active members wait. They are asked about in their order; branches start after the last decision.
void GroupRollout::decide() {
  std::vector<Boundary> chosen;
  std::vector<Member*> held;
  for (const auto& member : members_)
    if (member->state == Member::State::Held) held.push_back(member.get());
  for (Member* member : held) {
    for (int attempt = 0; attempt < context_.policy.attempts(); ++attempt) {
      const int trajectories = size() + static_cast<int>(chosen.size());
      if (trajectories >= budget_.trajectories() || !budget_.branches(*member, attempt, trajectories)) continue;
      if (auto boundary = boundary_of(*member)) chosen.push_back(std::move(*boundary));
    }
  }
  context_.branches += static_cast<std::int64_t>(chosen.size());
  for (Boundary& boundary : chosen) start_at(std::move(boundary));
  for (Member* member : held) resume(*member);
}

void GroupRollout::resume(Member& member) {
  if (!member.gate_ahead) return begin_turn(member);  // held after an observation
  member.gate_ahead = false;
  if (!member.lost.empty()) return fail(member, member.lost);
  if (member.response_ended) return ask_environment(member);
  request_tokens(member, member.response_limit - member.response.size());
}

// Where the member's current response begins.
Boundary GroupRollout::boundary_at(const Member& member, Episode episode) const {
  return {.parent = member.sibling,
          .tree = member.tree,
          .shared_turns = member.num_turns(),
          .episode = std::move(episode),
          .sequence = member.sequence,
          .num_tokens = member.turn_begin};
}

// The same with a copy of the environment. Empty if it cannot be copied.
std::optional<Boundary> GroupRollout::boundary_of(Member& member) {
  std::shared_ptr<Environment> copy;
  const FinishedCall call = copies_.copy(member.episode, copy);
  if (call.status == FinishedCall::Status::Returned) return boundary_at(member, member.episode.branch(std::move(copy)));
  // A copy that hangs may still be reading the environment.
  if (call.status == FinishedCall::Status::TimedOut) member.lost = call.message;
  report(member.sibling, "", "no branch, " + call.message);
  return std::nullopt;
}

// A place to grow from later. An environment that will be replayed then is not copied now.
std::optional<Boundary> GroupRollout::node_of(Member& member) {
  if (member.episode.environment()->branching() == Branching::Cloned) return boundary_of(member);
  return boundary_at(member, member.episode);
}

}  // namespace carnot
