#include "carnot/worlds/skeleton/environment.h"

#include <charconv>
#include <optional>

#include "carnot/core/base/limits.h"

namespace carnot {
namespace {

// The world: plain values, so that clone() is a copy. Randomness comes from the instance seed alone: the same seed
// and the same actions give the same texts.
class GuessGame : public Game {
 public:
  GuessGame(int largest, std::uint64_t seed) : largest_(largest) {
    hidden_ = 1 + static_cast<int>(RandomStream(seed).below(static_cast<std::uint64_t>(largest)));
  }

  std::string board_json() const override { return std::to_string(hidden_); }

  std::string observation() const override { return hint_; }

  GameStep step(std::string_view action) override {
    const auto guess = parse(action);
    if (!guess) return {.observation = hint_, .reward = {.value = 0, .integer = true}};
    const bool right = *guess == hidden_;
    if (right)
      hint_ = "Right!";
    else
      hint_ = std::to_string(*guess) + (*guess < hidden_ ? " is too low." : " is too high.");
    return {.observation = hint_,
            .reward = {.value = right ? 1.0 : 0.0, .integer = true},
            .done = right,
            .success = right,
            .effective = true,
            .valid = true};
  }

  std::unique_ptr<Game> clone() const override { return std::make_unique<GuessGame>(*this); }

 private:
  std::optional<int> parse(std::string_view action) const {
    int number = 0;
    const char* end = action.data() + action.size();
    const auto [stop, error] = std::from_chars(action.data(), end, number);
    if (error != std::errc{} || stop != end || number < 1 || number > largest_) return std::nullopt;
    return number;
  }

  int largest_;
  int hidden_ = 0;
  std::string hint_ = "No guess yet.";
};

// The text between the first <answer> and the </answer> after it; empty if there is none.
std::string_view answer_of(std::string_view response) {
  constexpr std::string_view kOpen = "<answer>", kClose = "</answer>";
  const auto open = response.find(kOpen);
  if (open == std::string_view::npos) return {};
  const auto begin = open + kOpen.size();
  const auto end = response.find(kClose, begin);
  return end == std::string_view::npos ? std::string_view{} : response.substr(begin, end - begin);
}

// What the policy talks to: opens the conversation, reads responses, keeps the budget of turns.
class GuessEnvironment : public Environment {
 public:
  GuessEnvironment(const SkeletonOptions& options, std::uint64_t seed)
      : options_(options), seed_(seed), game_(std::make_unique<GuessGame>(options.largest, seed)) {}

  // Responses may end early at a stop string; none is needed here.
  Protocol protocol() const override { return {.max_turns = options_.max_turns, .max_response_tokens = 64}; }

  Opening open() override {
    return {.system = "You are playing a guessing game.",
            .user = "I think of a whole number from 1 to " + std::to_string(options_.largest) +
                    ". Guess it. Always answer like this: <answer>5</answer>"};
  }

  Reply step(const PolicyResponse& response) override {
    CARNOT_CHECK(!done_, "the episode is over");
    ++turns_;
    const GameStep result = game_->step(answer_of(response.text));
    done_ = result.done || turns_ == options_.max_turns;

    Reply reply;
    reply.reward = result.reward.value;
    // A penalty is part of what is learned from, but never of the score that is reported.
    reply.penalty = result.valid ? 0 : -0.1;
    reply.valid_action = result.valid;
    reply.done = done_;
    reply.outcome = result.done ? Outcome::Finished : Outcome::OutOfTurns;
    reply.success = result.success;
    if (done_)
      reply.measures["turns"] = turns_;
    else
      reply.text = result.valid ? result.observation : "That is not a guess. " + result.observation;
    return reply;
  }

  // Equal states of one task must have equal keys: the hint alone forgets earlier guesses, but not the number.
  std::string anchor() const override { return game_->anchor(); }

  std::map<std::string, std::string> info() const override { return {{"seed", std::to_string(seed_)}}; }

  // The same responses get the same answers again, so that rollouts may branch. An environment whose state is copied
  // more quickly than it is played again says Cloned and has clone(); one that can do neither says nothing.
  Branching branching() const override { return Branching::Replayed; }

 private:
  SkeletonOptions options_;
  std::uint64_t seed_;
  std::unique_ptr<Game> game_;
  int turns_ = 0;
  bool done_ = false;
};

// Demonstrations: halves the interval that the replies leave. A script may read the texts, as here, or watch the
// environment that it was made for.
class GuessAgent : public ScriptedAgent {
 public:
  explicit GuessAgent(int largest) : high_(largest) {}

  PolicyResponse respond(std::string_view observation) override {
    if (observation.find("too low") != std::string_view::npos) low_ = guess_ + 1;
    if (observation.find("too high") != std::string_view::npos) high_ = guess_ - 1;
    guess_ = (low_ + high_) / 2;
    return "<answer>" + std::to_string(guess_) + "</answer>";
  }

 private:
  int low_ = 1;
  int high_;
  int guess_ = 0;
};

class SkeletonFactory : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  // Ranges of single options are checked where they are read; here is the place for what spans several.
  Status prepare(std::uint64_t) override { return Done{}; }

  // Training and validation must not share tasks.
  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return make_instance(static_cast<std::uint64_t>(index) * 2 + (split == Split::Validation ? 1 : 0));
  }

  std::unique_ptr<Environment> make_instance(std::uint64_t seed) const override {
    return std::make_unique<GuessEnvironment>(options_, seed);
  }

  std::unique_ptr<ScriptedAgent> script(const Environment&, double, RandomStream) const override {
    return std::make_unique<GuessAgent>(options_.largest);
  }

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<GuessGame>(options_.largest, seed));
  }

 private:
  SkeletonOptions options_;
};

}  // namespace

// Listed once: recipes (`env.largest: 50`), the command line, --help and the documentation follow from this.
void SkeletonOptions::fields(FieldVisitor& visit) {
  visit.field("largest", largest, "the hidden number is between 1 and largest", between(2, 1000000));
  visit.field("max_turns", max_turns, "guesses per episode", between(1, kMaxEpisodeSteps));
}

std::unique_ptr<EnvironmentFactory> make_skeleton() { return std::make_unique<SkeletonFactory>(); }

}  // namespace carnot
