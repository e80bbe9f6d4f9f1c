// How a group spends its budget: initial trajectories, branches, trees grown from nodes, and the rest from the prompt.
#include <algorithm>

#include "carnot/branch/tree_expand.h"
#include "carnot/env/environment_boundary.h"
#include "carnot/rollout/group_rollout.h"

namespace carnot {

bool GroupRollout::gates() const {
  return context_.policy.ever_branches() && !probing_ && !expansion_ && size() < budget_;
}

void GroupRollout::start_initial() {
  probing_ = context_.policy.wants_probe();
  const int initial = probing_ ? 1 : std::clamp(context_.policy.initial(budget_), 1, budget_);
  for (int i = 0; i < initial; ++i) start_from_prompt(num_trees_++, -1);
}

// A trajectory of its own from the first turn on: with the environment that opened the task, or a new one.
void GroupRollout::start_from_prompt(int tree, int parent) {
  Member& member = add_member(
      {.parent = parent, .tree = tree, .episode = *first_, .sequence = root_, .num_tokens = prompt_tokens()});
  if (!first_taken_) {
    first_taken_ = true;
    own_sequence(member, context_.engine.fork(root_, prompt_tokens()));
    return begin_turn(member);
  }
  member.state = Member::State::Opening;
  member.opening = std::make_shared<OpenedEnvironment>();
  const Owner owner{.group = index_, .member = member.sibling};
  context_.workers.submit(owner.tag(),
                          [opened = member.opening, make = task_.make] { *opened = open_environment(make()); });
}

// Starts a trajectory with a copy of the episode's environment; it fails at once where there is none.
void GroupRollout::start_copy(Boundary from, const Episode& of) {
  std::shared_ptr<Environment> copy;
  const FinishedCall call = copy_environment_of(of, copy);
  if (call.status == FinishedCall::Status::Returned) {
    from.episode = of.branch(std::move(copy));
    return start(std::move(from));
  }
  fail(add_member(std::move(from)), call.message);
}

// Waits for the copy, for its deadline, or until the rollout is to stop.
FinishedCall GroupRollout::copy_environment_of(const Episode& episode, std::shared_ptr<Environment>& copy) {
  FinishedCall call{.status = FinishedCall::Status::Refused, .message = copies_hang_};
  if (!copies_hang_.empty() || context_.stopped) return call;
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
  if (call.status == FinishedCall::Status::TimedOut) copies_hang_ = call.message;
  return call;
}

// Where the member's present response begins.
Boundary GroupRollout::boundary_at(const Member& member, Episode episode) const {
  return {.parent = member.sibling,
          .tree = member.tree,
          .shared_turns = member.num_turns(),
          .episode = std::move(episode),
          .sequence = member.sequence,
          .num_tokens = member.turn_begin};
}

// The same with an environment of its own. None where that cannot be had.
std::optional<Boundary> GroupRollout::boundary_of(Member& member) {
  std::shared_ptr<Environment> copy;
  const FinishedCall call = copy_environment_of(member.episode, copy);
  if (call.status == FinishedCall::Status::Returned) return boundary_at(member, member.episode.branch(std::move(copy)));
  // A copy that hangs may still be reading the environment.
  if (call.status == FinishedCall::Status::TimedOut) member.lost = call.message;
  report(member.sibling, "", "no branch, " + call.message);
  return std::nullopt;
}

// A place to grow from later. An environment that is replayed then is not copied now.
std::optional<Boundary> GroupRollout::node_of(Member& member) {
  if (member.episode.environment()->branching() == Branching::Cloned) return boundary_of(member);
  return boundary_at(member, member.episode);
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
      if (trajectories >= budget_ || !branches(*member, attempt, trajectories)) continue;
      if (auto boundary = boundary_of(*member)) chosen.push_back(std::move(*boundary));
    }
  }
  context_.branches += static_cast<std::int64_t>(chosen.size());
  for (Boundary& boundary : chosen) start(std::move(boundary));
  for (Member* member : held) resume(*member);
}

bool GroupRollout::branches(Member& member, int attempt, int trajectories) {
  int& streak = context_.policy.streak() == BranchStreak::Task ? streak_ : member.streak;
  const bool yes = context_.policy.branch_here(
      {.turn_entropy = member.turn_entropies.back(),
       .initial_entropy = member.turn_entropies.front(),
       .trajectories = trajectories,
       .budget = budget_,
       .consecutive = streak,
       .uniform = uniform(draw_key("branch", member.sibling, member.num_turns(), attempt))});
  streak = yes ? streak + 1 : 0;
  return yes;
}

void GroupRollout::resume(Member& member) {
  if (!member.gate_ahead) return begin_turn(member);  // held after an observation
  member.gate_ahead = false;
  if (!member.lost.empty()) return fail(member, member.lost);
  if (member.response_ended) return ask_environment(member);
  request_tokens(member, member.response_limit - member.response.size());
}

// No member is active.
void GroupRollout::spend_budget() {
  if (probing_) {
    const int initial = std::clamp(context_.policy.initial(budget_, probe()), 1, budget_);
    probing_ = false;
    while (size() < initial) start_from_prompt(num_trees_++, -1);
    if (size() > 1) return;
  }
  if (expansion_ && round_ < expansion_->rounds) {
    expand_trees();
  } else if (expansion_) {
    keep_some_leaves();
    finish();
  } else if (size() < budget_) {
    start_from_prompt(num_trees_++, -1);
  } else {
    finish();
  }
}

EntropyProbe GroupRollout::probe() const {
  const std::vector<double>& entropies = at(0).turn_entropies;
  EntropyProbe probe{.root = entropies.front()};
  probe.tool_calls.assign(entropies.begin() + 1, entropies.end());
  return probe;
}

void GroupRollout::expand_trees() {
  struct Start {
    int tree = 0;
    int first_member = 0;
    const Boundary* node = nullptr;  // null: the root
  };
  std::vector<Start> starts;
  for (int tree = 0; tree < num_trees_; ++tree) {
    std::vector<const Boundary*> nodes{nullptr};
    int first_member = -1;
    for (const auto& member : members_) {
      if (member->tree != tree) continue;
      if (first_member < 0) first_member = member->sibling;
      for (const Boundary& boundary : member->boundaries) nodes.push_back(&boundary);
    }
    for (int j = 0; j < expansion_->nodes; ++j) {
      const double u = uniform(draw_key("expansion", tree, round_, j));
      starts.push_back({tree, first_member, nodes[u * static_cast<double>(nodes.size())]});
    }
  }
  ++round_;
  for (const Start& from : starts) {
    if (from.node == nullptr) {
      start_from_prompt(from.tree, from.first_member);
      continue;
    }
    start_copy(*from.node, from.node->episode);
    ++context_.branches;
  }
}

void GroupRollout::keep_some_leaves() {
  dropped_.assign(members_.size(), false);
  for (int tree = 0; tree < num_trees_; ++tree) {
    std::vector<int> leaves;
    for (const auto& member : members_)
      if (member->tree == tree) leaves.push_back(member->sibling);
    const int keep = std::min(expansion_->leaves[tree], static_cast<int>(leaves.size()));
    RandomStream random(random_bits(draw_key("pruning", tree, 0, 0)));
    for (int leaf : leaves) dropped_[leaf] = true;
    for (int kept : pick_leaves(static_cast<int>(leaves.size()), keep, random)) dropped_[leaves[kept]] = false;
  }
}

void GroupRollout::finish() {
  if (root_ >= 0) context_.engine.release(root_);
  if (expansion_) {
    for (const auto& member : members_) {
      for (SequenceId sequence : member->left) context_.engine.release(sequence);
      if (member->sequence >= 0) context_.engine.release(member->sequence);
    }
  }
  finished_ = true;
}

}  // namespace carnot
