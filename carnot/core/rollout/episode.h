// rollout/episode.h -- one trajectory's conversation: an environment, a chat format, and turns made of sampled tokens.
//
// Text becomes tokens here and nowhere else: the opening and the environment's replies are rendered once and appended;
// sampled tokens stay as they are. A fresh prompt (ReplyForm::FreshPrompt) begins a new context, with which the next
// turn's tokens start. Not thread-safe, except that ask() may run on another thread meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/span_parser.h"

namespace carnot {

struct EpisodeOptions {
  int max_context_tokens = 4096;  ///< of a context, prompt included; beyond: OutOfTokens
  int max_response_tokens = 0;    ///< per turn; 0: the environment's own limit
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
/// Throws EnvironmentFailure if what it reads is out of bounds (env/environment_boundary.h).
OpenedEnvironment open_environment(std::shared_ptr<Environment> environment);

/// What an environment answers to a response.
struct Answer {
  Reply reply{};
  std::string anchor{};  ///< of the state it left; empty once done
  double latency_ms = 0;
};

/// Calls step(). Slow; touches the environment only. Throws EnvironmentFailure if the reply is out of bounds.
Answer ask(Environment& environment, const PolicyResponse& response);

/// The tokens of a prompt. Fails if the format cannot express it (ChatFamily::check_writable()) or a string cannot be
/// tokenised (Tokenizer::try_encode()).
Result<SpannedTokens> render_prompt(const ChatFamily& chat, const Opening& prompt);

class Episode {
 public:
  /// `opening`: render_prompt() of what was opened. `chat` must outlive the episode.
  Episode(OpenedEnvironment opened, SpannedTokens opening, const ChatFamily& chat, const EpisodeOptions& options);

  /// The tokens of the opening: those before the first response.
  const SpannedTokens& opening() const { return opening_; }
  const Protocol& protocol() const { return opened_.protocol; }
  int max_turns() const;
  int max_response_tokens() const;
  const std::vector<TokenId>& stop_tokens() const { return stop_tokens_; }

  /// True if the last token ends the message.
  bool closed(std::span<const TokenId> sampled) const;

  /// What the environment reads: the message's prefix, and the response without the token that ended it; with its calls
  /// if tools are offered.
  PolicyResponse response(std::span<const TokenId> sampled) const;

  /// The reply's tokens, up to where the next response begins: after this one, or a whole context (FreshPrompt). Fails
  /// if the format cannot express the reply or its text cannot be tokenised.
  Result<SpannedTokens> render_reply(std::span<const TokenId> sampled, const Reply& reply) const;

  /// The turn that ended: its prompt part, the response, and what `rendered` appends (empty if no turn follows). The
  /// caller sets parent and policy version. Afterwards the next turn can begin.
  Turn close_turn(std::span<const TokenId> sampled, const Answer& answer, const SpannedTokens& rendered);

  /// For ask() on another thread; no other call that touches the environment may run meanwhile.
  const std::shared_ptr<Environment>& environment() const { return opened_.environment; }

  /// The turns played so far.
  const std::vector<PlayedTurn>& played() const { return played_; }

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
  SpannedTokens prompt_;                ///< that the next turn's tokens begin with; empty if it continues the last
  Context context_ = Context::Growing;  ///< of the next turn
  std::string assistant_prefix_;        ///< of the messages of the present context
  std::string prefix_;  ///< that the running assistant message began with; empty if an inline reply continues it
  std::vector<std::string> tools_{};  ///< offered in the present context, as the chat format gets them
  std::string anchor_;
  std::vector<PlayedTurn> played_;
};

/// Fills the leaf's fields about how the trajectory ended. REQUIRES: leaf.turn is set.
void finish_leaf(Tree& tree, int leaf, Outcome outcome, const Reply& reply);

struct DemonstrationOptions {
  std::int64_t index = 0;  ///< of the task, before the factory's curriculum moves it
  double progress = 1;     ///< of SFT, in [0, 1]
  std::uint64_t seed = 0;  ///< of the script's draws
  EpisodeOptions episode{};
};

/// A scripted agent's episode as a tree, for SFT. Its tokens are marked as sampled where a policy's would be: the text
/// of each response after the assistant's prefix, and the token that ends the message unless a stop string of the
/// protocol ended it first. An environment without a script is an error; so is a script that leaves out the prefix.
Result<Tree> demonstrate(const EnvironmentFactory& factory, const ChatFamily& chat,
                         const DemonstrationOptions& options);

}  // namespace carnot
