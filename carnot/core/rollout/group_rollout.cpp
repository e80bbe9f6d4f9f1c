#include "carnot/core/rollout/group_rollout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/rollout/member.h"

namespace carnot {

GroupRollout::GroupRollout(RolloutContext& context, const RolloutTask& task, int index)
    : context_(context),
      task_(task),
      index_(index),
      draws_(context.key, index),
      budget_(context.policy, context.options.group_size, draws_),
      copies_(context, task),
      scores_(context, index),
      opened_(std::make_shared<OpenedEnvironment>()) {}

void GroupRollout::open() {
  const Owner owner{.group = index_, .member = -1};
  context_.workers.submit(owner.tag(), [opened = opened_, make = task_.make] { *opened = open_environment(make()); });
}

void GroupRollout::on_call(int member, const FinishedCall& call) {
  if (member < 0) return on_opened(call);
  if (at(member).state == Member::State::Opening) return on_opened(at(member), call);
  if (at(member).state == Member::State::Scoring) return on_scored(call);
  if (call.status == FinishedCall::Status::Returned) return on_answer(at(member));
  at(member).answer.reset();
  fail(at(member), call.message);
}

void GroupRollout::on_opened(const FinishedCall& call) {
  if (call.status != FinishedCall::Status::Returned) return fail_all(Outcome::InfraFailed, call.message);
  auto prompt = render_prompt(context_.chat, opened_->opening);
  if (!prompt) return fail_all(Outcome::InfraFailed, prompt.error().message);
  first_.emplace(*opened_, std::move(prompt).value(), context_.chat, context_.options.episode);
  if (prompt_tokens() >= context_.options.episode.max_context_tokens) return fail_all(Outcome::OutOfTokens, "");
  scores_.open(first_->opened().ground_truth);
  root_ = context_.engine.start(common_tokens());
  context_.claim(root_, {.group = index_, .member = -1});
  root_prefilling_ = true;
}

// The member's own environment is open. It shares the computed prompt if it opened as the first one did.
void GroupRollout::on_opened(Member& member, const FinishedCall& call) {
  const auto opened = std::move(member.opening);
  if (call.status != FinishedCall::Status::Returned) return fail(member, call.message);
  auto prompt = render_prompt(context_.chat, opened->opening);
  if (!prompt) return fail(member, prompt.error().message);
  member.episode = Episode(std::move(*opened), std::move(prompt).value(), context_.chat, context_.options.episode);
  const std::vector<TokenId>& tokens = member.episode.opening().tokens;
  if (tokens == first_->opening().tokens) {
    share_prompt(member);
  } else if (static_cast<int>(tokens.size()) < context_.options.episode.max_context_tokens) {
    scores_.give_up();
    start_context(member, tokens);
  } else {
    scores_.give_up();
    close_turn(member, {}, {});
    return end(member, Outcome::OutOfTokens, {});
  }
  begin_turn(member);
}

// Decisions wait until here, so that no event is handled inside another.
void GroupRollout::poll() {
  if (finished_ || (!root_prefilling_ && members_.empty())) return;
  if (root_prefilling_ && context_.engine.prefilled(root_)) {
    root_prefilling_ = false;
    for (const Start& from : budget_.initial()) start(from);
  }
  bool any_held = false;
  for (const auto& member : members_) {
    if (member->state == Member::State::Prefilling && context_.engine.prefilled(member->sequence))
      member->state = Member::State::Held;
    if (member->state == Member::State::Ended || member->state == Member::State::Unscored) continue;
    if (member->state != Member::State::Held) return;
    any_held = true;
  }
  if (root_prefilling_) return;
  if (any_held) return decide();
  if (scores_.waits()) return;
  const std::vector<Start> starts = budget_.next(members_);
  for (const Start& from : starts) start(from);
  if (starts.empty() && !score()) finish();
}

Member& GroupRollout::add_member(Boundary from) {
  const int sibling = size();
  members_.push_back(std::make_unique<Member>(std::move(from.episode), context_.chat));
  Member& member = *members_.back();
  member.sibling = sibling;
  member.parent = from.parent;
  member.tree = from.tree;
  member.shared_turns = from.shared_turns;
  member.turn_begin = from.num_tokens;
  member.policy_version = context_.policy_version;
  member.streak = from.parent >= 0 ? at(from.parent).streak : 0;
  member.given = task_.given.has_value();
  return member;
}

void GroupRollout::own_sequence(Member& member, SequenceId sequence) {
  member.sequence = sequence;
  context_.claim(sequence, {.group = index_, .member = member.sibling});
}

// What was computed for the previous context is kept only if trees may still grow from it.
void GroupRollout::start_context(Member& member, std::span<const TokenId> tokens) {
  member.turn_begin = static_cast<int>(tokens.size());
  if (member.given) return member.context.assign(tokens.begin(), tokens.end());
  if (member.sequence >= 0 && budget_.grows_trees()) member.left.push_back(member.sequence);
  if (member.sequence >= 0 && !budget_.grows_trees()) context_.engine.release(member.sequence);
  own_sequence(member, context_.engine.start(tokens));
}

void GroupRollout::continue_context(Member& member, std::span<const TokenId> observation) {
  member.turn_begin += member.response.size() + static_cast<int>(observation.size());
  if (!member.given) return context_.engine.append(member.sequence, observation);
  member.context.insert(member.context.end(), member.response.tokens().begin(), member.response.tokens().end());
  member.context.insert(member.context.end(), observation.begin(), observation.end());
}

void GroupRollout::begin_turn(Member& member) {
  if (!member.lost.empty()) {
    member.state = Member::State::Prefilling;  // no turn is open
    return fail(member, member.lost);
  }
  const int room = context_.options.episode.max_context_tokens - member.turn_begin;
  CARNOT_CHECK_GT(room, 0);
  member.response = Response(context_.chat.tokenizer(), member.episode.protocol().stop_strings);
  member.policy_version = context_.policy_version;
  member.response_limit = std::min(member.episode.max_response_tokens(), room);
  member.response_ended = member.cut = false;
  if (member.given && take_given(member)) return;
  const bool after_observation = context_.policy.timing() == BranchTiming::AfterObservation;
  member.gate_ahead = budget_.may_branch(size()) && after_observation && !member.turns.empty();
  const int first_tokens = std::max(1, context_.policy.measure().tokens);
  const int ahead = member.gate_ahead ? std::min(member.response_limit, first_tokens) : member.response_limit;
  request_tokens(member, ahead - member.response.size());
}

void GroupRollout::request_tokens(Member& member, int count) {
  const TurnEntropyMeasure measure = context_.policy.measure();
  const int sampled = member.response.size();
  member.state = Member::State::Sampling;
  context_.engine.sample(member.sequence, {.sampling = context_.options.sampling,
                                           .key = draws_.key("", member.sibling, member.num_turns(), sampled),
                                           .max_tokens = count,
                                           .stop_tokens = member.episode.stop_tokens(),
                                           .candidates = measure.candidates,
                                           .candidate_tokens = std::max(0, measure.tokens - sampled)});
}

void GroupRollout::on_token(int index, const SampledToken& sampled) {
  Member& member = at(index);
  if (member.response.size() == 0) {
    member.policy_version = context_.policy_version;  // weights may have been swapped since the turn began
    scores_.ask(member, members_);
  }
  const bool stop_string = member.response.push(sampled.draw);
  if (stop_string) context_.engine.stop_sampling(member.sequence);
  if (!stop_string && sampled.end == SampleEnd::GoesOn) return;
  const bool halted = !stop_string && sampled.end == SampleEnd::MaxTokens;
  if (halted && member.response.size() < member.response_limit) {
    measure_entropy(member);
    member.state = Member::State::Held;
    return;
  }
  member.cut = halted;
  end_response(member);
}

void GroupRollout::end_response(Member& member) {
  member.response_ended = true;
  measure_entropy(member);
  if (member.gate_ahead) {
    member.state = Member::State::Held;
  } else {
    ask_environment(member);
  }
}

void GroupRollout::measure_entropy(Member& member) {
  if (member.turn_entropies.size() > member.turns.size()) return;
  const TurnEntropyMeasure measure = context_.policy.measure();
  std::vector<double> entropies;
  for (const TokenDraw& draw : member.response.draws())
    entropies.push_back(measure.candidates > 0 ? draw.candidate_entropy : draw.entropy);
  member.turn_entropies.push_back(turn_entropy(entropies, measure.tokens, context_.chat.tokenizer().vocab_size()));
}

void GroupRollout::ask_environment(Member& member) {
  member.state = Member::State::Asking;
  member.answer = std::make_shared<Answer>();
  const Owner owner{.group = index_, .member = member.sibling};
  context_.workers.submit(owner.tag(), [answer = member.answer, environment = member.episode.environment(),
                                        response = member.episode.response(member.response.tokens())] {
    *answer = ask(*environment, response);
  });
}

// All trajectories have ended: those that wait for a score get it in one call. False if none waits.
bool GroupRollout::score() {
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<Member*> waiting;
  for (const auto& member : members_)
    if (member->state == Member::State::Unscored) waiting.push_back(member.get());
  if (waiting.empty()) return false;
  for (Member* member : waiting) {
    member->state = Member::State::Scoring;
    answers.push_back(member->answer);
  }
  const Owner owner{.group = index_, .member = waiting.front()->sibling};
  context_.workers.submit(owner.tag(), [answers, environment = waiting.front()->episode.environment()] {
    std::vector<Reply> replies;
    for (const auto& answer : answers) replies.push_back(std::move(answer->reply));
    score_checked(*environment, replies);
    for (std::size_t i = 0; i < answers.size(); ++i) answers[i]->reply = std::move(replies[i]);
  });
  return true;
}

void GroupRollout::on_scored(const FinishedCall& call) {
  for (const auto& member : members_) {
    if (member->state != Member::State::Scoring) continue;
    if (call.status == FinishedCall::Status::Returned) {
      on_answer(*member);
    } else {
      member->answer.reset();
      fail(*member, call.message);
    }
  }
}

void GroupRollout::leave_sequence(Member& member) {
  if (budget_.grows_trees() || member.sequence < 0) return;
  context_.engine.release(std::exchange(member.sequence, -1));
}

void GroupRollout::on_answer(Member& member) {
  if (member.given && member.answer->reply.done) return answered_otherwise(member);
  if (member.answer->reply.done && member.answer->reply.unscored) {
    member.state = Member::State::Unscored;
    return leave_sequence(member);
  }
  const Answer answer = std::move(*member.answer);
  const Reply& reply = answer.reply;
  if (reply.done && reply.outcome == Outcome::InfraFailed)
    return fail(member, "the environment reports an infrastructure failure: " + reply.text.substr(0, 200));
  if (reply.done) {
    const bool ran_out = member.cut && reply.outcome == Outcome::Finished && !reply.success;
    close_turn(member, answer, {});
    return end(member, ran_out ? Outcome::OutOfTokens : reply.outcome, reply);
  }
  if (member.num_turns() + 1 >= member.episode.max_turns()) {
    close_turn(member, answer, {});
    return end(member, Outcome::OutOfTurns, reply);
  }
  const auto rendered = member.episode.render_reply(member.response.tokens(), reply);
  if (!rendered) return fail(member, rendered.error().message);
  const bool fresh = reply.form == ReplyForm::FreshPrompt;
  const int before = fresh ? 0 : member.turn_begin + member.response.size();
  if (before + static_cast<int>(rendered->tokens.size()) >= context_.options.episode.max_context_tokens) {
    close_turn(member, answer, {});
    return end(member, Outcome::OutOfTokens, reply);
  }
  close_turn(member, answer, *rendered);
  if (fresh) start_context(member, rendered->tokens);
  if (!fresh) continue_context(member, rendered->tokens);
  if (budget_.grows_trees()) {
    if (auto node = node_of(member)) member.boundaries.push_back(std::move(*node));
  }
  if (budget_.may_branch(size()) && context_.policy.timing() == BranchTiming::SameTurn) {
    member.state = Member::State::Prefilling;
  } else {
    begin_turn(member);
  }
}

void GroupRollout::close_turn(Member& member, const Answer& answer, const SpannedTokens& observation) {
  MadeTurn made;
  made.turn = member.episode.close_turn(member.response.tokens(), answer, observation);
  made.turn.policy_version = member.policy_version;
  measure_entropy(member);
  if (!std::isnan(member.turn_entropies.back())) made.turn.turn_entropy = member.turn_entropies.back();
  made.draws.assign(member.response.draws().begin(), member.response.draws().end());
  member.turns.push_back(std::move(made));
}

void GroupRollout::end(Member& member, Outcome outcome, const Reply& reply) {
  member.state = Member::State::Ended;
  member.outcome = outcome;
  member.last_reply = reply;
  leave_sequence(member);
}

void GroupRollout::fail(Member& member, const std::string& why) {
  const std::string turn = std::to_string(member.num_turns());
  report(member.sibling, ", trajectory " + std::to_string(member.sibling) + ", turn " + turn, why);
  Answer answer;
  if (member.answer) answer = *member.answer;
  answer.reply.done = true;
  if (answer.reply.status.empty()) answer.reply.status = "infra_failed";
  if (member.state != Member::State::Prefilling) close_turn(member, answer, {});
  end(member, Outcome::InfraFailed, answer.reply);
}

void GroupRollout::fail_all(Outcome outcome, const std::string& why) {
  if (outcome == Outcome::InfraFailed) report(-1, "", why);
  unstarted_ = outcome;
  finish();
}

void GroupRollout::report(int sibling, const std::string& where, const std::string& why) {
  const std::string environment = task_.environment.empty() ? "" : " (" + task_.environment + ")";
  failures_.push_back({.sibling = sibling, .sentence = task_.uid + environment + where + ": " + why});
}

std::vector<std::string> GroupRollout::failures() const {
  std::vector<Failure> sorted = failures_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Failure& a, const Failure& b) { return a.sibling < b.sibling; });
  std::vector<std::string> sentences;
  for (Failure& failure : sorted) sentences.push_back(std::move(failure.sentence));
  return sentences;
}

void GroupRollout::on_score(const ScoredAnswer& scored) { scores_.on_score(scored, members_); }

void GroupRollout::on_too_long(int member) {
  const std::string why = "the sequence does not fit into the KV cache";
  if (member < 0) {
    root_prefilling_ = false;
    fail_all(Outcome::InfraFailed, why);
  } else {
    fail(at(member), why);
  }
}

void GroupRollout::finish() {
  if (root_ >= 0) context_.engine.release(root_);
  if (budget_.grows_trees()) {
    for (const auto& member : members_) {
      for (SequenceId sequence : member->left) context_.engine.release(sequence);
      if (member->sequence >= 0) context_.engine.release(member->sequence);
    }
  }
  finished_ = true;
}

int GroupRollout::num_ended() const {
  if (finished_) return budget_.trajectories();
  return static_cast<int>(std::count_if(members_.begin(), members_.end(),
                                        [](const auto& member) { return member->state >= Member::State::Unscored; }));
}

void GroupRollout::abandon() {
  if (finished_) return;
  scores_.abandon();
  for (const auto& member : members_)
    if (!budget_.grows_trees() && member->state != Member::State::Ended && member->sequence >= 0)
      context_.engine.release(member->sequence);
  finish();
}

Group GroupRollout::take_group() {
  CARNOT_CHECK(finished_, "the group is still being rolled out");
  Group group{.uid = task_.uid,
              .task_index = task_.task_index,
              .seed = context_.key.seed,
              .step = context_.key.step,
              .ground_truth = first_ ? first_->opened().ground_truth : std::vector<std::string>{},
              .info = first_ ? first_->opened().info : std::map<std::string, std::string>{}};
  if (!unstarted_) {
    GroupTrees grown = trees_of(members_, budget_.num_trees(), budget_.dropped(), task_.uid);
    group.trees = std::move(grown.trees);
    scores_.write(group, std::move(grown.answer_log_probs));
    return group;
  }
  const SpannedTokens prompt = first_ ? first_->opening() : SpannedTokens{};
  for (int sibling = 0; sibling < budget_.trajectories(); ++sibling)
    group.trees.push_back(unstarted_tree(prompt,
                                         {.turn = 0,
                                          .sibling = sibling,
                                          .trajectory_id = task_.uid + "." + std::to_string(sibling),
                                          .outcome = *unstarted_},
                                         context_.policy_version));
  return group;
}

}  // namespace carnot
