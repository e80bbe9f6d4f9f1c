// rollout/member.h -- one trajectory of a group while it is sampled, and the trees that finished trajectories become:
// each turn is stored once, in the order of the trajectories that sampled it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/data/tree.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/engine/sampling.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// A response while it is being sampled: its tokens, their statistics, and the stop strings.
class Response {
 public:
  /// `tokenizer` and `stop_strings` must outlive the response.
  Response(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings);

  /// Adds a token. True if the text now contains a stop string; text that the token has after it is kept.
  bool push(const TokenDraw& draw);

  int size() const { return static_cast<int>(draws_.size()); }
  std::span<const TokenDraw> draws() const { return draws_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  const std::vector<std::string>* stop_strings_;
  StreamingDecoder decoder_;
  std::vector<TokenDraw> draws_;
  std::vector<TokenId> tokens_;
  std::string tail_;  ///< the end of the text, as far back as a stop string can begin
  std::size_t longest_ = 0;
};

/// One turn that a member sampled itself, with the statistics of its tokens.
struct MadeTurn {
  Turn turn{};
  std::vector<TokenDraw> draws{};
  bool answer_asked = false;
  std::optional<double> answer_log_prob{};  ///< of AnswerScores, after the turn
};

/// A place that a trajectory can start from: after `shared_turns` turns of `parent`.
struct Boundary {
  int parent = -1;  ///< member; -1: the prompt, its own tree
  int tree = -1;
  int shared_turns = 0;
  Episode episode;
  SequenceId sequence = 0;  ///< its first `num_tokens` tokens are those before the boundary
  int num_tokens = 0;
};

struct Member {
  enum class State {
    Opening,
    Prefilling,
    Sampling,
    Held,
    Asking,
    Unscored,  ///< over; `answer` waits for the group's others (Environment::score_group())
    Scoring,
    Ended,
  };

  Member(Episode at, const ChatFamily& chat)
      : episode(std::move(at)), response(chat.tokenizer(), episode.protocol().stop_strings) {}
  Member(const Member&) = delete;  // the response refers to the episode
  Member& operator=(const Member&) = delete;

  int sibling = 0;
  int parent = -1;
  int tree = 0;
  int shared_turns = 0;
  Episode episode;
  std::shared_ptr<OpenedEnvironment> opening{};  ///< being opened on a worker thread; null once it is open
  SequenceId sequence = -1;                      ///< of the current context
  std::vector<SequenceId> left{};                ///< sequences of earlier contexts, where trees may grow from them
  int turn_begin = 0;                            ///< tokens of the context before the current turn's response
  bool given = false;                            ///< its responses are given, and it has no sequence yet
  std::vector<TokenId> context{};                ///< of a given one: the tokens before the current turn's response
  State state = State::Sampling;
  Response response;
  int policy_version = 0;   ///< of the oldest weights that sampled the current response
  int response_limit = 0;   ///< of the current response
  bool gate_ahead = false;  ///< the policy decides after the current response's first tokens
  bool response_ended = false;
  bool cut = false;  ///< the current response ended at its limit
  std::shared_ptr<Answer> answer{};
  std::vector<MadeTurn> turns{};
  std::vector<Boundary> boundaries{};  ///< after turns[i], if trees are grown from nodes
  std::vector<double> turn_entropies{};
  int streak = 0;  ///< consecutive branches along the trajectory
  Outcome outcome = Outcome::Finished;
  Reply last_reply{};
  std::string lost{};  ///< why its environment may no longer be called; empty if it may

  int num_turns() const { return shared_turns + static_cast<int>(turns.size()); }
};

struct GroupTrees {
  std::vector<Tree> trees{};
  std::vector<std::vector<std::optional<double>>> answer_log_probs{};  ///< by tree and turn
};

/// The trees of a group, its leaves numbered as the members. `dropped`: by member; empty: no member is dropped.
GroupTrees trees_of(std::span<const std::unique_ptr<Member>> members, int num_trees, const std::vector<bool>& dropped,
                    const std::string& uid);

/// The tree of a trajectory that could not start: one turn that holds the prompt, if there is one, and nothing
/// sampled.
Tree unstarted_tree(const SpannedTokens& prompt, const Leaf& leaf, int policy_version);

}  // namespace carnot
