#include "carnot/worlds/word_problems/problem.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

using Words = std::vector<std::string_view>;

/// `{who}` and `{things}` are the story's, `{n}` the step's number.
struct Phrasings {
  Words names, things, beginnings, additions, subtractions, questions;
  /// With their factors and divisors.
  std::vector<std::pair<std::string_view, int>> multiplications, divisions;
};

const Phrasings& phrasings(Wording wording) {
  static const Phrasings training{
      .names = {"Tom",  "Mia",  "Ben",  "Zoe",  "Sam",  "Ana",  "Leo",  "Eva",   "Max",   "Ida",  "Jim",  "Lucy",
                "Paul", "Rosa", "Dan",  "Kate", "Fred", "Nina", "Bob",  "Jane",  "Ali",   "Mary", "Ken",  "Ella",
                "Omar", "Ruth", "Luke", "Amy",  "Noah", "Lily", "Adam", "Grace", "Peter", "Sara", "Jack", "Emma"},
      .things = {"apples",  "coins",  "books",  "cards",  "shells",  "stamps", "pens",    "marbles", "cups",
                 "hats",    "keys",   "nuts",   "eggs",   "flowers", "toys",   "stones",  "boxes",   "bottles",
                 "cookies", "photos", "chairs", "lemons", "shirts",  "spoons", "buttons", "balls"},
      .beginnings = {"{who} has {n} {things}.", "{who} owns {n} {things}.", "{who} starts with {n} {things}.",
                     "{n} {things} belong to {who}.", "{who} keeps {n} {things} at home.",
                     "In the morning, {who} has {n} {things}."},
      .additions = {"{who} finds {n} more.", "{who} buys {n} more.", "{who} gets {n} from a friend.",
                    "{who} wins {n} more.", "{n} more come in the mail.", "A neighbor brings {n} more.",
                    "Then {n} new ones are added.", "{who} receives {n} as a gift.",
                    "{who} borrows {n} from a teacher.", "Grandma gives {who} {n} more.",
                    "{who} collects {n} more after lunch.", "The shop sends {n} extra.",
                    "Another {n} are found in a drawer.", "{who} makes {n} more.", "Later {who} adds {n} to the pile.",
                    "The pile grows by {n}."},
      .subtractions = {"{who} loses {n}.", "{who} gives away {n}.", "{who} sells {n}.", "{who} drops {n}.",
                       "A dog runs off with {n}.", "{n} are stolen.", "{who} lends {n} to a cousin.", "{n} go missing.",
                       "{who} gives {n} to a sister.", "{who} burns {n}.", "Then {n} are taken away.",
                       "{who} returns {n} to the shop.", "{n} fall into the river.", "Rain ruins {n} of them.",
                       "{who} leaves {n} on the bus.", "The pile shrinks by {n}."},
      .questions = {"How many {things} does {who} have now?", "How many {things} are left?",
                    "How many {things} are there at the end?", "How many {things} has {who} got now?"},
      .multiplications = {{"{who} doubles the pile.", 2},
                          {"{who} ends up with 3 times as many.", 3},
                          {"The number of {things} triples.", 3},
                          {"Soon there are twice as many {things}.", 2},
                          {"{who} makes the pile 4 times as large.", 4},
                          {"A trick turns each one into 2.", 2},
                          {"The pile becomes 5 times as big.", 5},
                          {"Each of the {things} is swapped for 3 new ones.", 3}},
      .divisions = {{"{who} keeps only half of them.", 2},
                    {"{who} keeps only a third of them.", 3},
                    {"Half of the {things} are sold, and the other half stays.", 2},
                    {"Only a quarter of the pile is left.", 4},
                    {"Just one in 3 is saved.", 3},
                    {"The pile is cut in half.", 2},
                    {"{who} shares them equally among 4 people and keeps one share.", 4},
                    {"Only a fifth of them is kept.", 5}}};
  static const Phrasings held_out{
      .names = {"Olga", "Hugo", "Vera", "Carl", "Lena", "Otto", "Rita", "Emil", "Dora", "Axel"},
      .things = {"tickets", "beads", "plates", "roses", "bricks", "candles"},
      .beginnings = {"On Monday {who} counts {n} {things}.", "There are {n} {things} in the box of {who}.",
                     "{who} packs {n} {things} into a bag."},
      .additions = {"A parcel with {n} more arrives.", "{who} picks up another {n}.", "An aunt adds {n} to them.",
                    "{who} earns {n} for some work.", "{n} others turn up in the garden."},
      .subtractions = {"Then {n} of them break.", "{who} throws out {n}.", "A thief takes {n} of them.",
                       "{who} hands {n} to the class.", "{n} get lost on the way."},
      .questions = {"What is the number of {things} in the end?", "Count the {things} that {who} has at last."},
      .multiplications = {{"Overnight their number grows to 4 times as many.", 4},
                          {"A copy is made of each, so there are twice as many.", 2},
                          {"{who} now has 3 times the number.", 3}},
      .divisions = {{"Only a quarter of them remains.", 4},
                    {"{who} puts half of them back.", 2},
                    {"All but a third of them are gone.", 3}}};
  return wording == Wording::Training ? training : held_out;
}

struct Story {
  std::string_view who, things;

  /// `phrase` with its placeholders filled.
  std::string tell(std::string_view phrase, std::int64_t number) const {
    std::string text;
    while (!phrase.empty()) {
      const auto open = std::min(phrase.find('{'), phrase.size());
      text += phrase.substr(0, open);
      phrase.remove_prefix(open);
      if (phrase.empty()) break;
      const auto close = phrase.find('}');
      const std::string_view name = phrase.substr(1, close - 1);
      text += name == "who" ? std::string(who) : name == "things" ? std::string(things) : std::to_string(number);
      phrase.remove_prefix(close + 1);
    }
    return text;
  }
};

enum class Operation : std::uint8_t { Add, Subtract, Multiply, Divide };

constexpr std::int64_t kLargestTerm = 60;

/// A step of this kind from a pile of `value`; empty where its result would not be whole or out of bounds.
std::optional<StoryStep> make_step(Operation operation, const Story& story, const Phrasings& words, std::int64_t value,
                                   RandomStream& random) {
  const auto term = [&](std::int64_t largest) {
    return 2 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(largest - 1)));
  };
  const auto step = [&](std::string_view phrase, char sign, std::int64_t number, std::int64_t result) {
    return StoryStep{.sentence = story.tell(phrase, number),
                     .expression = std::to_string(value) + " " + sign + " " + std::to_string(number),
                     .value = result};
  };
  switch (operation) {
    case Operation::Add: {
      if (value + kLargestTerm > kLargestPile) return std::nullopt;
      const std::int64_t n = term(kLargestTerm);
      return step(random.pick(words.additions), '+', n, value + n);
    }
    case Operation::Subtract: {
      if (value < 4) return std::nullopt;
      const std::int64_t n = term(std::min(kLargestTerm, value - 1));
      return step(random.pick(words.subtractions), '-', n, value - n);
    }
    case Operation::Multiply: {
      const auto& [phrase, factor] = random.pick(words.multiplications);
      if (value * factor > kLargestPile) return std::nullopt;
      return step(phrase, '*', factor, value * factor);
    }
    case Operation::Divide: {
      const auto& [phrase, divisor] = random.pick(words.divisions);
      if (value % divisor != 0) return std::nullopt;
      return step(phrase, '/', divisor, value / divisor);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string WordProblem::text() const {
  std::string text = beginning;
  for (const StoryStep& step : steps) text += " " + step.sentence;
  return text + " " + question;
}

WordProblem invent_problem(Wording wording, int operations, RandomStream& random) {
  CARNOT_CHECK_GE(operations, 1);
  constexpr std::array kOperations{Operation::Add,      Operation::Add,      Operation::Subtract,
                                   Operation::Subtract, Operation::Multiply, Operation::Divide};
  const Phrasings& words = phrasings(wording);
  const Story story{.who = random.pick(words.names), .things = random.pick(words.things)};
  std::int64_t value = 10 + static_cast<std::int64_t>(random.below(51));
  WordProblem problem{.beginning = story.tell(random.pick(words.beginnings), value)};
  while (std::ssize(problem.steps) < operations) {
    auto step = make_step(random.pick(kOperations), story, words, value, random);
    if (!step) continue;
    value = step->value;
    problem.steps.push_back(std::move(*step));
  }
  problem.question = story.tell(random.pick(words.questions), value);
  return problem;
}

}  // namespace carnot
