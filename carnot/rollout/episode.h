// rollout/episode.h -- one trajectory's conversation: an environment, a chat format, and turns out of sampled tokens.
//
// Text becomes tokens here and nowhere else: the opening and the environment's replies are rendered once and appended;
// what was sampled stays as it was sampled. Not thread-safe, except that ask() may run on another thread meanwhile.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/data/tree.h"
#include "carnot/env/environment.h"
#include "carnot/text/chat.h"
#include "carnot/text/span_parser.h"

namespace carnot {

struct EpisodeOptions {
  int max_context_tokens = 4096;  ///< of a trajectory, prompt included; beyond: OutOfTokens
  int max_response_tokens = 0;    ///< a turn; 0: the environment's own limit
  int max_turns = 0;              ///< 0: the environment's own limit
  bool tags_are_action = false;   ///< count the tags around an action as Action

  void fields(FieldVisitor& visit);
};

/// An environment at its start, with what was read from it.
struct OpenedEnvironment {
  std::shared_ptr<Environment> environment{};
  Protocol protocol{};
  Opening opening{};
  std::string anchor{};
  std::vector<std::string> ground_truth{};
  std::map<std::string, std::string> info{};
};
/// Throws EnvironmentFailure where what was read is out of bounds (env/environment_boundary.h).
OpenedEnvironment open_environment(std::shared_ptr<Environment> environment);

/// What an environment answers to a response.
struct Answer {
  Reply reply{};
  std::string anchor{};  ///< of the state it left; empty once done
  double latency_ms = 0;
};

/// Calls step(). Slow; touches the environment only. Throws EnvironmentFailure where the reply is out of bounds.
Answer ask(Environment& environment, std::string_view response);

class Episode {
 public:
  /// `chat` must outlive the episode.
  Episode(OpenedEnvironment opened, const ChatFamily& chat, const EpisodeOptions& options);

  /// The tokens in front of the first response.
  const SpannedTokens& opening() const { return opening_; }
  const Protocol& protocol() const { return opened_.protocol; }
  int max_turns() const;
  int max_response_tokens() const;
  const std::vector<TokenId>& stop_tokens() const { return stop_tokens_; }

  /// True where the last token ends the message.
  bool closed(std::span<const TokenId> sampled) const;

  /// What the environment reads: the message's prefix, and the response without the token that ended it.
  std::string response_text(std::span<const TokenId> sampled) const;

  /// The reply's tokens behind the response, up to where the next one begins.
  SpannedTokens render_reply(std::span<const TokenId> sampled, const Reply& reply) const;

  /// The turn that ended: its prompt part, the response, and `observation` (empty where no turn follows). Parent and
  /// policy version are the caller's. Afterwards the episode stands before the next turn.
  Turn close_turn(std::span<const TokenId> sampled, const Answer& answer, const SpannedTokens& observation);

  /// For ask() on another thread; no other call that touches the environment may run meanwhile.
  const std::shared_ptr<Environment>& environment() const { return opened_.environment; }

  /// An independent episode at the same place, with a copy of this one's environment.
  Episode branch(std::shared_ptr<Environment> copy) const;

  const OpenedEnvironment& opened() const { return opened_; }

 private:
  SpanGrammar grammar() const;
  bool continues_message(std::span<const TokenId> sampled, const Reply& reply) const;

  OpenedEnvironment opened_;
  const ChatFamily* chat_;
  EpisodeOptions options_;
  std::vector<TokenId> stop_tokens_;
  SpannedTokens opening_;
  bool first_turn_ = true;
  std::string prefix_;  ///< that the running assistant message began with; empty where an inline reply continues it
  std::string anchor_;
};

/// Fills what a leaf says about its end. REQUIRES: leaf.turn is set.
void finish_leaf(Tree& tree, int leaf, Outcome outcome, const Reply& reply);

}  // namespace carnot
