#include "carnot/worlds/word_problems/problem.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

using Words = std::span<const std::string_view>;

/// A sentence that multiplies or divides, and by how much.
struct Factor {
  std::string_view phrase;
  int number;
};

/// `{who}` and `{things}` are the story's, `{n}` the step's number.
struct Phrasings {
  Words names, things, beginnings, additions, subtractions, questions;
  std::span<const Factor> multiplications, divisions;
};

constexpr std::string_view kNames[] = {
    "Tom",    "Mia",    "Ben",    "Zoe",   "Sam",    "Ana",   "Leo",    "Eva",   "Max",   "Ida",   "Jim",    "Lucy",
    "Paul",   "Rosa",   "Dan",    "Kate",  "Fred",   "Nina",  "Bob",    "Jane",  "Ali",   "Mary",  "Ken",    "Ella",
    "Omar",   "Ruth",   "Luke",   "Amy",   "Noah",   "Lily",  "Adam",   "Grace", "Peter", "Sara",  "Jack",   "Emma",
    "Ivan",   "Maya",   "Oscar",  "Clara", "Felix",  "Hanna", "Victor", "Julia", "Simon", "Laura", "Diego",  "Sofia",
    "Martin", "Alice",  "Jonas",  "Irene", "Kevin",  "Tina",  "Raj",    "Priya", "Chen",  "Yuki",  "Pablo",  "Elena",
    "Marco",  "Bianca", "Stefan", "Helga", "Ahmed",  "Leila", "Boris",  "Tanya", "Henry", "Molly", "George", "Daisy",
    "Edgar",  "Wendy",  "Arthur", "Nora",  "Gustav", "Edith", "Walter", "Stella"};
constexpr std::string_view kThings[] = {
    "apples",  "coins",   "books",     "cards",    "shells",   "stamps",  "pens",       "marbles",   "cups",
    "hats",    "keys",    "nuts",      "eggs",     "flowers",  "toys",    "stones",     "boxes",     "bottles",
    "cookies", "photos",  "chairs",    "lemons",   "shirts",   "spoons",  "buttons",    "balls",     "pencils",
    "magnets", "ribbons", "carrots",   "feathers", "badges",   "puzzles", "sandwiches", "lamps",     "baskets",
    "kites",   "bananas", "notebooks", "socks",    "whistles", "planks",  "potatoes",   "postcards", "umbrellas",
    "jars",    "medals",  "pumpkins",  "screws",   "blankets", "mirrors", "peaches",    "robots",    "drums"};
constexpr std::string_view kBeginnings[] = {"{who} has {n} {things}.",
                                            "{who} owns {n} {things}.",
                                            "{who} starts with {n} {things}.",
                                            "{n} {things} belong to {who}.",
                                            "{who} keeps {n} {things} at home.",
                                            "In the morning, {who} has {n} {things}.",
                                            "A shelf of {who} holds {n} {things}.",
                                            "{who} brought {n} {things} to the market.",
                                            "At first {who} sees {n} {things}.",
                                            "The basement of {who} is full of {n} {things}.",
                                            "Last week {who} bought {n} {things}.",
                                            "On the table of {who} lie {n} {things}."};
constexpr std::string_view kAdditions[] = {"{who} finds {n} more.",
                                           "{who} buys {n} more.",
                                           "{who} gets {n} from a friend.",
                                           "{who} wins {n} more.",
                                           "{n} more come in the mail.",
                                           "A neighbor brings {n} more.",
                                           "Then {n} new ones are added.",
                                           "{who} receives {n} as a gift.",
                                           "{who} borrows {n} from a teacher.",
                                           "Grandma gives {who} {n} more.",
                                           "{who} collects {n} more after lunch.",
                                           "The shop sends {n} extra.",
                                           "Another {n} are found in a drawer.",
                                           "{who} makes {n} more.",
                                           "Later {who} adds {n} to the pile.",
                                           "The pile grows by {n}.",
                                           "A truck delivers {n} more of them.",
                                           "{who} discovers {n} under the bed.",
                                           "An uncle sends {who} {n} by post.",
                                           "On the way home {who} spots {n} more.",
                                           "{n} are put on top by a brother.",
                                           "The school donates {n} to {who}.",
                                           "{who} trades a bike for {n} of them.",
                                           "A box with {n} inside is opened.",
                                           "Two friends bring along {n} in all.",
                                           "{who} orders {n} more online.",
                                           "{who} picks {n} more from a heap.",
                                           "{n} others arrive by boat.",
                                           "{who} earns {n} at the fair.",
                                           "A parcel from home holds {n}.",
                                           "An old lady adds {n} of hers.",
                                           "{n} more turn up behind the sofa.",
                                           "{who} gains {n} in a bet.",
                                           "A colleague drops off {n} more.",
                                           "{who} brings back {n} from the cellar.",
                                           "The stock rises by {n}."};
constexpr std::string_view kSubtractions[] = {"{who} loses {n}.",
                                              "{who} gives away {n}.",
                                              "{who} sells {n}.",
                                              "{who} drops {n}.",
                                              "A dog runs off with {n}.",
                                              "{n} are stolen.",
                                              "{who} lends {n} to a cousin.",
                                              "{n} go missing.",
                                              "{who} gives {n} to a sister.",
                                              "{who} burns {n}.",
                                              "Then {n} are taken away.",
                                              "{who} returns {n} to the shop.",
                                              "{n} fall into the river.",
                                              "Rain ruins {n} of them.",
                                              "{who} leaves {n} on the bus.",
                                              "The pile shrinks by {n}.",
                                              "A storm blows {n} away.",
                                              "{who} mails {n} to an aunt in Spain.",
                                              "The baby swallows {n} of them.",
                                              "Because of a hole in the bag, {n} vanish.",
                                              "A museum asks {who} for {n} of them.",
                                              "{n} rot in the cellar.",
                                              "{who} pays with {n} for a coffee.",
                                              "The boss of {who} confiscates {n}.",
                                              "Mice eat {n} during the night.",
                                              "{who} forgets {n} in the train.",
                                              "A raccoon takes {n} from the porch.",
                                              "{who} throws {n} into the bin.",
                                              "{n} break on the floor.",
                                              "{who} hands {n} to a waiter.",
                                              "{n} get wet and are useless.",
                                              "A pickpocket takes {n} out of the bag.",
                                              "{who} gets rid of {n}.",
                                              "{n} are handed out to children.",
                                              "The customs keep {n} of them.",
                                              "The stock falls by {n}."};
constexpr std::string_view kQuestions[] = {"How many {things} does {who} have now?",
                                           "How many {things} are left?",
                                           "How many {things} are there at the end?",
                                           "How many {things} has {who} got now?",
                                           "How large is the pile of {things} today?",
                                           "Tell how many {things} remain with {who}.",
                                           "What number of {things} is that now?",
                                           "Work out how many {things} {who} owns.",
                                           "Find the final number of {things}.",
                                           "So what is left of the {things} of {who}?",
                                           "Name the size of the pile of {things}.",
                                           "Please compute how many {things} there are by now.",
                                           "Give the number of {things} that {who} still has.",
                                           "What does {who} have left?",
                                           "To how many {things} does this lead?",
                                           "Determine the {things} left for {who}."};
constexpr Factor kMultiplications[] = {{"{who} doubles the pile.", 2},
                                       {"{who} ends up with 3 times as many.", 3},
                                       {"The number of {things} triples.", 3},
                                       {"Soon there are twice as many {things}.", 2},
                                       {"{who} makes the pile 4 times as large.", 4},
                                       {"A trick turns each one into 2.", 2},
                                       {"The pile becomes 5 times as big.", 5},
                                       {"Each of the {things} is swapped for 3 new ones.", 3},
                                       {"By Friday there are 4 times as many {things}.", 4},
                                       {"A wizard multiplies them by 3.", 3},
                                       {"{who} goes on until there are 5 times as many.", 5},
                                       {"For every one {who} is given 1 more, so the pile doubles.", 2},
                                       {"A printer copies all {things}, and now there are twice as many.", 2},
                                       {"Within a week there are 3 times as many.", 3},
                                       {"In spring their number is 4 times as large.", 4},
                                       {"Now {who} owns 5 times as many.", 5}};
constexpr Factor kDivisions[] = {{"{who} keeps only half of them.", 2},
                                 {"{who} keeps only a third of them.", 3},
                                 {"Half of the {things} are sold, and the other half stays.", 2},
                                 {"Only a quarter of the pile is left.", 4},
                                 {"Just one in 3 is saved.", 3},
                                 {"The pile is cut in half.", 2},
                                 {"{who} shares them equally among 4 people and keeps one share.", 4},
                                 {"Only a fifth of them is kept.", 5},
                                 {"A flood leaves {who} with one third of the {things}.", 3},
                                 {"They are packed into 5 equal bags, and {who} takes one bag.", 5},
                                 {"One in 4 passes the test, the others are thrown away.", 4},
                                 {"{who} splits them evenly with a twin.", 2},
                                 {"Only half of the {things} remain.", 2},
                                 {"A third of them survives the winter, no more.", 3},
                                 {"All but a quarter are given back.", 4},
                                 {"One fifth remains after the fire.", 5}};
constexpr Phrasings kTraining{.names = kNames,
                              .things = kThings,
                              .beginnings = kBeginnings,
                              .additions = kAdditions,
                              .subtractions = kSubtractions,
                              .questions = kQuestions,
                              .multiplications = kMultiplications,
                              .divisions = kDivisions};

constexpr std::string_view kHeldOutNames[] = {"Olga", "Hugo", "Vera", "Carl", "Lena",
                                              "Otto", "Rita", "Emil", "Dora", "Axel"};
constexpr std::string_view kHeldOutThings[] = {"tickets", "beads", "plates", "roses", "bricks", "candles"};
constexpr std::string_view kHeldOutBeginnings[] = {"On Monday {who} counts {n} {things}.",
                                                   "There are {n} {things} in the box of {who}.",
                                                   "{who} packs {n} {things} into a bag."};
constexpr std::string_view kHeldOutAdditions[] = {"A parcel with {n} more arrives.", "{who} picks up another {n}.",
                                                  "An aunt adds {n} to them.", "{who} earns {n} for some work.",
                                                  "{n} others turn up in the garden."};
constexpr std::string_view kHeldOutSubtractions[] = {"Then {n} of them break.", "{who} throws out {n}.",
                                                     "A thief takes {n} of them.", "{who} hands {n} to the class.",
                                                     "{n} get lost on the way."};
constexpr std::string_view kHeldOutQuestions[] = {
    "What is the number of {things} in the end?",    "Count the {things} that {who} has at last.",
    "How many {things} does {who} end up with?",     "What is the final count of {things}?",
    "Say how many {things} are with {who} by then.", "How big is the pile of {things} when all is done?",
    "With how many {things} does {who} go home?",    "Now how many {things} make up the pile of {who}?"};
constexpr Factor kHeldOutMultiplications[] = {{"Overnight their number grows to 4 times as many.", 4},
                                              {"A copy is made of each, so there are twice as many.", 2},
                                              {"{who} now has 3 times the number.", 3}};
constexpr Factor kHeldOutDivisions[] = {{"Only a quarter of them remains.", 4},
                                        {"{who} puts half of them back.", 2},
                                        {"All but a third of them are gone.", 3}};
constexpr Phrasings kHeldOut{.names = kHeldOutNames,
                             .things = kHeldOutThings,
                             .beginnings = kHeldOutBeginnings,
                             .additions = kHeldOutAdditions,
                             .subtractions = kHeldOutSubtractions,
                             .questions = kHeldOutQuestions,
                             .multiplications = kHeldOutMultiplications,
                             .divisions = kHeldOutDivisions};

const Phrasings& phrasings(Wording wording) { return wording == Wording::Training ? kTraining : kHeldOut; }

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
