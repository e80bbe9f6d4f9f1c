// env/environment.h -- an environment answers a response with text, a reward, an outcome. It knows text, never tokens.
//
// Two layers. A Game is the bare world: an action in, an observation out, no prompts, no budgets (env/game.h).
// An Environment is what a policy talks to: it opens the conversation, parses responses, keeps budgets, applies
// penalties. env/skeleton/environment.h is a commented one to copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/base/random.h"
#include "carnot/base/result.h"
#include "carnot/data/tree.h"
#include "carnot/env/game.h"

namespace carnot {

/// How the conversation opens.
struct Opening {
  std::string system{};  ///< empty: no system message of the environment's own
  std::string user{};
  std::string assistant_prefix{};  ///< every assistant message starts with it ("<think>"); prompt tokens, not sampled
};

enum class ReplyForm : std::uint8_t {
  UserMessage,  ///< the text is the next user message; a new assistant message follows
  Inline,       ///< the text continues the running assistant message (a tool's result)
};

/// What the environment answers to one response.
struct Reply {
  std::string text{};  ///< shown to the policy next; empty once done
  ReplyForm form = ReplyForm::UserMessage;
  double reward = 0;   ///< finite; env/environment_boundary.h has the bounds of everything here
  double penalty = 0;  ///< <= 0
  bool valid_action = true;
  bool done = false;
  Outcome outcome = Outcome::Finished;  ///< read only where done
  bool success = false;                 ///< read only where done
  std::string tool{};
  std::string status{};
  std::map<std::string, double> measures{};  ///< read only where done
  std::optional<std::string> answer{};  ///< the final answer, one text for all that are equal; read only where done
};

/// What stands around a response, for the agent loop and the span parser. Constant over an episode.
struct Protocol {
  std::vector<std::string> stop_strings{};  ///< end a response early; kept in it ("</search>")
  std::string think_tag = "think";
  std::vector<std::string> action_tags{"answer"};
  int max_turns = 1;
  int max_response_tokens = 400;  ///< a turn
};

/// One episode of one task.
class Environment {
 public:
  virtual ~Environment() = default;

  virtual Protocol protocol() const = 0;
  virtual Opening open() = 0;

  /// Answers a response (whole text, assistant prefix included). May take long; runs on a worker thread.
  /// An infrastructure failure is a Reply with done and Outcome::InfraFailed, or any exception but CheckError: that is
  /// a bug, and ends the run.
  virtual Reply step(std::string_view response) = 0;

  /// Key of the present state, equal for equal states of one task; empty where there is none.
  virtual std::string anchor() const { return ""; }

  virtual std::vector<std::string> ground_truth() const { return {}; }
  virtual std::map<std::string, std::string> info() const { return {}; }  ///< about the task, for reports

  /// An independent copy at the present state, for branching rollouts; never null. Called on another thread, while no
  /// other call of this environment runs.
  virtual std::unique_ptr<Environment> clone() const = 0;
};

/// Plays an environment by script, imperfectly if asked: for demonstrations and reference scores.
class ScriptedAgent {
 public:
  virtual ~ScriptedAgent() = default;
  /// The next response (assistant prefix included); `observation` is the text of the last reply, empty at the start.
  virtual std::string respond(std::string_view observation) = 0;
};

enum class Split : std::uint8_t { Train, Validation };

/// Makes the tasks of one environment family from its options. One line in environments.cpp lists it.
class EnvironmentFactory {
 public:
  virtual ~EnvironmentFactory() = default;

  /// The options, shown under `env.` in recipes and on the command line.
  virtual void fields(FieldVisitor& visit) = 0;

  /// Builds what all tasks share (worlds, data). Call once, after the options are set. Errors name key or file.
  virtual Status prepare(std::uint64_t seed) = 0;

  /// Task number `index` of a split, the same every time; any index >= 0. Thread-safe after prepare().
  virtual std::unique_ptr<Environment> make(Split split, std::int64_t index) const = 0;

  /// The task of instance `seed`, the one that make_game() shows bare; by default validation task number `seed`.
  virtual std::unique_ptr<Environment> make_instance(std::uint64_t seed) const;

  /// A scripted agent for an environment that this factory made; it may watch the environment, which must
  /// outlive it. `progress` in [0, 1] is how far the warm start has come, for curricula; 1 asks for the final
  /// mixture. Null where the environment has no script.
  virtual std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                                RandomStream random) const;

  /// The task index to demonstrate at this point of the curriculum; by default the given one.
  virtual std::unique_ptr<Environment> make_demonstrated(std::int64_t index, double progress) const;

  /// The bare game of instance `seed`, for `carnot env`; null where there is none.
  virtual Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const = 0;

  /// What a response says right before a final answer, as demonstrations have it: information gain scores the ground
  /// truth behind it. Empty where answers are not scored.
  virtual std::string answer_lead() const { return ""; }

  /// Texts to train a small tokenizer from, and words that must stay single tokens. Empty where not offered.
  virtual std::vector<std::string> tokenizer_texts() const { return {}; }
  virtual std::vector<std::string> tokenizer_words() const { return {}; }
  /// Tags of the protocol: single tokens that are never merged with what stands beside them.
  virtual std::vector<std::string> tokenizer_added_tokens() const { return {}; }
};

struct EnvironmentEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<EnvironmentFactory> (*make)();
};

/// Every environment there is. Adding one: a folder or file here, and its line in environments.cpp.
const std::vector<EnvironmentEntry>& environments();

/// The entry's factory; an unknown name is answered with the known ones.
Result<std::unique_ptr<EnvironmentFactory>> make_environment_factory(std::string_view name);

}  // namespace carnot
