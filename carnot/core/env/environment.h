// env/environment.h -- an environment answers a response with text, a reward, an outcome. It knows text, never tokens.
//
// An Environment is what a policy talks to: it opens the conversation, parses responses, keeps budgets, applies
// penalties. Many have a Game beneath, the bare world: an action in, an observation out (env/game.h).
// worlds/skeleton/environment.h is a commented one to copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/env/game.h"
#include "carnot/core/env/tool.h"

namespace carnot {

/// A prompt: how a conversation opens, or how it restarts from scratch (ReplyForm::FreshPrompt).
struct Opening {
  std::string system{};            ///< empty: no system message of the environment's own
  std::vector<Message> history{};  ///< between the system message and `user`: examples, or its own history
  std::string user{};              ///< empty: `history` ends with what the policy answers
  std::string assistant_prefix{};  ///< every assistant message starts with it ("<think>"); prompt tokens, not sampled
  std::vector<ToolDescription> tools{};  ///< offered in the chat format's own way
};

/// What a tool answered, for the message that carries it.
struct ToolMessage {
  std::string call_id{};  ///< of the call, where the format has ids
  std::string text{};
};

enum class ReplyForm : std::uint8_t {
  UserMessage,  ///< the text is the next user message; a new assistant message follows
  Inline,       ///< the text continues the running assistant message (a tool's result)
  ToolResult,   ///< `results` are tool messages of the chat format; a new assistant message follows
  FreshPrompt,  ///< `prompt` replaces the whole context: the next turn has its own context
};

/// What the environment answers to one response.
struct Reply {
  std::string text{};  ///< shown to the policy next (UserMessage, Inline); empty once done
  ReplyForm form = ReplyForm::UserMessage;
  std::vector<ToolMessage> results{};  ///< ToolResult: one per call, in the order of the calls
  Opening prompt{};                    ///< FreshPrompt
  double reward = 0;                   ///< finite; env/environment_boundary.h has the bounds of everything here
  double penalty = 0;                  ///< <= 0
  bool valid_action = true;
  bool done = false;
  Outcome outcome = Outcome::Finished;       ///< read only where done
  bool success = false;                      ///< read only where done
  std::string tool{};                        ///< that the turn called; of several, the first
  std::string status{};                      ///< of its result
  std::map<std::string, double> measures{};  ///< read only where done
  std::optional<std::string> answer{};  ///< the final answer, one text for all that are equal; read only where done
  /// The response, where Environment::score_group() scores it together with the group's others; read only where done.
  std::optional<std::string> unscored{};
};

/// What the policy is shown of a reply: its text, the tools' results, a line each, or the fresh prompt's last message.
std::string shown_text(const Reply& reply);

/// The format of a response, for the agent loop and the span parser. Constant over an episode.
struct Protocol {
  std::vector<std::string> stop_strings{};  ///< end a response early; kept in it ("</search>")
  std::string think_tag = "think";
  std::vector<std::string> action_tags{"answer"};
  int max_turns = 1;
  int max_response_tokens = 400;  ///< a turn
};

/// How a second trajectory can start in the middle of an episode.
enum class Branching : std::uint8_t {
  Refused,   ///< it cannot; methods that branch are refused with this environment
  Replayed,  ///< the task is made again, gets the same responses, and answers them alike
  Cloned,    ///< by clone()
};

/// One episode of one task. The calls of one episode come one after the other, on changing threads.
class Environment {
 public:
  virtual ~Environment() = default;

  virtual Protocol protocol() const = 0;
  virtual Opening open() = 0;

  /// Answers a response. May take long; runs on a worker thread. An infrastructure failure is a Reply with done and
  /// Outcome::InfraFailed, or any exception but CheckError: that is a bug, and ends the run.
  virtual Reply step(const PolicyResponse& response) = 0;

  /// Completes last replies that step() left `unscored`: those of one group's episodes of this task, once all have
  /// ended. A reply that cannot be scored becomes Outcome::InfraFailed; an exception fails all of them. Runs on a
  /// worker thread of whichever of the episodes.
  virtual void score_group(std::span<Reply> /*last_replies*/) {}

  /// Key of the present state, equal for equal states of one task; empty if there is no such key.
  virtual std::string anchor() const { return ""; }

  virtual std::vector<std::string> ground_truth() const { return {}; }
  virtual std::map<std::string, std::string> info() const { return {}; }  ///< about the task, for reports

  virtual Branching branching() const { return Branching::Refused; }

  /// An independent copy at the present state; never null. Called where branching() is Cloned, on another thread, while
  /// no other call of this environment runs.
  virtual std::unique_ptr<Environment> clone() const { return nullptr; }

  /// What the environment draws by itself comes from `key` from here on, so that copies of one state go on
  /// independently. Nothing to do where it draws nothing.
  virtual void redraw(std::uint64_t /*key*/) {}

  /// The environment itself; of one that wraps another, the wrapped one.
  virtual const Environment& innermost() const { return *this; }
};

/// step(), for an episode without a group: its last reply is scored by itself.
Reply step_alone(Environment& environment, const PolicyResponse& response);

/// Plays an environment by script, imperfectly if asked: for demonstrations and reference scores.
class ScriptedAgent {
 public:
  virtual ~ScriptedAgent() = default;
  /// The next response (assistant prefix included), with the tools it calls; `observation` is shown_text() of the last
  /// reply, empty at the start.
  virtual PolicyResponse respond(std::string_view observation) = 0;
};

enum class Split : std::uint8_t { Train, Validation };

/// Makes the tasks of one environment family from its options.
class EnvironmentFactory {
 public:
  virtual ~EnvironmentFactory() = default;

  /// The options, shown under `env.` in recipes and on the command line.
  virtual void fields(FieldVisitor& visit) = 0;

  /// Builds what all tasks share (worlds, data). Call once, after the options are set. Errors name key or file.
  virtual Status prepare(std::uint64_t seed) = 0;

  /// Task number `index` of a split, the same every time; any index >= 0. Every trajectory of a group has an episode of
  /// its own, made here, on a worker thread. Thread-safe after prepare().
  virtual std::unique_ptr<Environment> make(Split split, std::int64_t index) const = 0;

  /// An epoch: so many training tasks are all that there are, each once; 0: tasks are made without end. Call it after
  /// prepare().
  virtual std::int64_t num_training_tasks() const { return 0; }

  /// After so many validation tasks they begin again; 0: they never do. Call it after prepare().
  virtual std::int64_t num_validation_tasks() const { return 0; }

  /// The task of instance `seed`, the one that make_game() shows bare; by default validation task number `seed`.
  virtual std::unique_ptr<Environment> make_instance(std::uint64_t seed) const;

  /// A scripted agent for an environment that this factory made; it may watch the environment, which must
  /// outlive it. `progress` in [0, 1] is how far SFT has come, for curricula; 1 asks for the final
  /// mixture. Null if the environment has no script.
  virtual std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                                RandomStream random) const;

  /// The task index to demonstrate at this point of the curriculum; by default the given one.
  virtual std::unique_ptr<Environment> make_demonstrated(std::int64_t index, double progress) const;

  /// The bare game of instance `seed`, for `carnot env`; null if the environment has no game.
  virtual Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const;

  /// What a response says right before a final answer, as demonstrations have it: information gain measures the
  /// likelihood of the ground truth after it. Empty if there are no such answers.
  virtual std::string answer_lead() const { return ""; }

  /// Texts to train a small tokenizer from, and words that must stay single tokens. Empty if not offered.
  virtual std::vector<std::string> tokenizer_texts() const { return {}; }
  virtual std::vector<std::string> tokenizer_words() const { return {}; }
  /// Tags of the protocol: single tokens that are never merged with their neighbours.
  virtual std::vector<std::string> tokenizer_added_tokens() const { return {}; }
};

/// A row of the table of environments.
struct EnvironmentEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<EnvironmentFactory> (*make)();  ///< null: this build leaves the environment out
};

/// Sets the table that environments() returns, once, when a program starts. The table must outlive all calls.
void offer_environments(const std::vector<EnvironmentEntry>& table);

/// The environments that the program knows (worlds/worlds.h offers Carnot's own); none before offer_environments().
const std::vector<EnvironmentEntry>& environments();

/// The entry's factory. The error for an unknown name lists the known ones; for one that this build leaves out it says
/// how to get it.
Result<std::unique_ptr<EnvironmentFactory>> make_environment_factory(std::string_view name);

}  // namespace carnot
