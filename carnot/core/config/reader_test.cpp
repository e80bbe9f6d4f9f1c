#include "carnot/core/config/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

enum class Device { Cpu, Cuda };

struct OptimizerOptions {
  double learning_rate = 1e-6;
  void fields(FieldVisitor& visit) { visit.field("learning_rate", learning_rate, "step size", above(0)); }
};

struct TrainOptions {
  int steps = 100;
  std::int64_t tokens = 0;
  bool shuffle = true;
  Device device = Device::Cpu;
  std::string note = "none";
  std::vector<double> weights{1, 2};
  std::vector<std::string> stops{"</a>"};
  OptimizerOptions optimizer{};

  void fields(FieldVisitor& visit) {
    visit.field("steps", steps, "updates", at_least(1));
    visit.field("tokens", tokens, "tokens");
    visit.field("shuffle", shuffle, "mix tasks");
    enum_field(visit, "device", device, {"cpu", "cuda"}, "where");
    visit.field("note", note, "free text");
    visit.field("weights", weights, "of losses", at_least(0));
    visit.field("stops", stops, "stop strings");
    section(visit, "optimizer", optimizer, "of the weights");
  }
};

struct NameOptions {
  std::string name = "sokoban";
  void fields(FieldVisitor& visit) { visit.field("name", name, "which"); }
};

struct SizeOptions {
  int size = 6;
  void fields(FieldVisitor& visit) { visit.field("size", size, "of the board", between(3, 20)); }
};

/// Reads `text` into train options below "train"; returns the problems, a line each.
std::vector<std::string> problems(const std::string& text, const std::vector<std::string>& overrides = {},
                                  TrainOptions* out = nullptr) {
  const auto document = Document::parse(text, "r.yaml", {.overrides = overrides});
  if (!document.ok()) return {document.error().message};
  ConfigReader reader(*document);
  TrainOptions options;
  reader.read("train", options);
  if (out != nullptr) *out = options;
  const Status status = reader.finish();
  std::vector<std::string> lines;
  std::string rest = status.ok() ? "" : status.error().message;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return lines;
}

TEST(ConfigReader, FillsEveryTypeOfField) {
  TrainOptions options;
  EXPECT_THAT(problems("train:\n  steps: 1e3\n  tokens: 5000000000\n  shuffle: no\n  device: cuda\n  note: yes\n"
                       "  weights: [0.5, 2]\n  stops: ['1', two]\n  optimizer:\n    learning_rate: 3e-4\n",
                       {}, &options),
              ElementsAre());
  EXPECT_EQ(options.steps, 1000);
  EXPECT_EQ(options.tokens, 5000000000);
  EXPECT_FALSE(options.shuffle);
  EXPECT_EQ(options.device, Device::Cuda);
  EXPECT_EQ(options.note, "yes");
  EXPECT_THAT(options.weights, ElementsAre(0.5, 2));
  EXPECT_THAT(options.stops, ElementsAre("1", "two"));
  EXPECT_EQ(options.optimizer.learning_rate, 3e-4);
}

TEST(ConfigReader, AListOfOneItemNeedsNoBracketsAndAnEmptyStringIsAnEmptyList) {
  TrainOptions options;
  EXPECT_THAT(problems("train: {weights: 0.5, stops: two}\n", {}, &options), ElementsAre());
  EXPECT_THAT(options.weights, ElementsAre(0.5));
  EXPECT_THAT(options.stops, ElementsAre("two"));
  EXPECT_THAT(problems("train: {stops: two}\n", {"train.stops="}, &options), ElementsAre());
  EXPECT_THAT(options.stops, ElementsAre());
  EXPECT_THAT(problems("train: {weights: many}\n"),
              ElementsAre("r.yaml:1:9: train.weights: expected a list [...], each a number at least 0, found many"));
}

TEST(ConfigReader, KeepsDefaultsOfKeysThatAreNotGiven) {
  TrainOptions options;
  EXPECT_THAT(problems("train:\n", {}, &options), ElementsAre());
  EXPECT_EQ(options.steps, 100);
  EXPECT_EQ(options.note, "none");
}

TEST(ConfigReader, ReportsAllProblemsAtOnceWithPlaceFindingAndExpectation) {
  TrainOptions options;
  EXPECT_THAT(problems("train:\n  steps: 0\n  tokens: many\n  shuffle: maybe\n  device: gpu\n  note: [a]\n"
                       "  weights: [1, -1]\n  stops: x\n  optimizer:\n    learning_rate: '0.1'\n  step: 5\n",
                       {}, &options),
              ElementsAre("r.yaml:2:3: train.steps: expected an integer at least 1, found 0",
                          "r.yaml:3:3: train.tokens: expected an integer, found many",
                          "r.yaml:4:3: train.shuffle: expected true or false, found maybe",
                          "r.yaml:5:3: train.device: expected one of cpu | cuda, found gpu",
                          "r.yaml:6:3: train.note: expected a string, found [a]",
                          "r.yaml:7:3: train.weights: expected a list [...], each a number at least 0, found [1, -1]",
                          "r.yaml:10:5: train.optimizer.learning_rate: expected a number above 0, found \"0.1\"",
                          "r.yaml:11:3: train.step: unknown key; did you mean train.steps?"));
  EXPECT_EQ(options.steps, 100);
}

TEST(ConfigReader, RefusesCountsThatOverflow) {
  for (const std::string count : {"2147483647", "3000000000", "99999999999999999999"})
    EXPECT_THAT(
        problems("train.steps: " + count + "\n"),
        ElementsAre("r.yaml:1:1: train.steps: expected an integer at least 1 and at most 1000000000, found " + count));
}

TEST(ConfigReader, RefusesInfinity) {
  EXPECT_THAT(problems("train.optimizer.learning_rate: .inf\n"),
              ElementsAre("r.yaml:1:1: train.optimizer.learning_rate: expected a finite number above 0, found .inf"));
  EXPECT_THAT(problems("train.weights: [1, -.inf]\n"), SizeIs(1));
}

TEST(ConfigReader, RefusesASeedThatDoesNotFit) {
  struct SeedOptions {
    std::int64_t seed = 0;
    void fields(FieldVisitor& visit) { visit.field("seed", seed, "", at_least(0)); }
  } options;
  const auto document = Document::parse("seed: 18446744073709551616\n", "r.yaml");
  ConfigReader reader(*document);
  reader.read("", options);
  EXPECT_EQ(reader.finish().error().message,
            "r.yaml:1:1: seed: expected an integer at least 0, below 2^63, found 18446744073709551616");
}

TEST(ConfigReader, RefusesAKeyWithoutAValue) {
  EXPECT_THAT(problems("train:\n  steps:\n"),
              ElementsAre("r.yaml:2:3: train.steps: expected an integer at least 1, found nothing"));
}

TEST(UnknownKeys, AreAnsweredWithTheNearestKnownOne) {
  EXPECT_THAT(problems("train:\n  stpes: 3\n"),
              ElementsAre("r.yaml:2:3: train.stpes: unknown key; did you mean train.steps?"));
  EXPECT_THAT(problems("trian.steps: 3\n"), ElementsAre(HasSubstr("did you mean train.steps?")));
  EXPECT_THAT(problems("", {"train.optimizer.learning_rat=1"}),
              ElementsAre("command line: train.optimizer.learning_rat: unknown key; did you mean "
                          "train.optimizer.learning_rate?"));
}

TEST(UnknownKeys, InTheWrongSectionAreSentToTheRightOne) {
  EXPECT_THAT(problems("train.learning_rate: 1\n"),
              ElementsAre(HasSubstr("did you mean train.optimizer.learning_rate?")));
}

TEST(UnknownKeys, WithNoNeighbourAreAnsweredWithTheSection) {
  EXPECT_THAT(problems("train.optimizer.momentum: 1\n"),
              ElementsAre(HasSubstr("unknown key; known here: learning_rate")));
}

TEST(UnknownKeys, BelowAValueOrInPlaceOfASectionAreExplained) {
  EXPECT_THAT(problems("train:\n  steps:\n    first: 3\n"),
              ElementsAre("r.yaml:3:5: train.steps.first: train.steps takes a value, it is no section"));
  EXPECT_THAT(problems("train: 3\n"), ElementsAre("r.yaml:1:1: train: expected a section with its own keys, found 3"));
}

TEST(ConfigReader, ReportsAliasesByTheNameTheUserWrote) {
  const auto document = Document::parse("actor_rollout_ref.actor.optim.lr: fast\n", "r.yaml");
  ConfigReader reader(*document);
  OptimizerOptions options;
  reader.read("train", options);
  EXPECT_EQ(reader.finish().error().message,
            "r.yaml:1:1: actor_rollout_ref.actor.optim.lr: expected a number above 0, found fast");
}

TEST(ConfigReader, ReadsASectionInSeveralPasses) {
  const auto document = Document::parse("env:\n  name: maze\n  size: 9\n", "r.yaml");
  ConfigReader reader(*document);
  NameOptions name;
  SizeOptions size;
  reader.read("env", name);
  reader.read("env", size);
  EXPECT_TRUE(reader.finish().ok());
  EXPECT_EQ(name.name, "maze");
  EXPECT_EQ(size.size, 9);
}

TEST(ConfigReader, ReportsAProblemOnceHoweverOftenItIsRead) {
  const auto document = Document::parse("env.size: 99\n", "r.yaml");
  ConfigReader reader(*document);
  SizeOptions size;
  reader.read("env", size);
  reader.read("env", size);
  EXPECT_EQ(reader.finish().error().message,
            "r.yaml:1:1: env.size: expected an integer at least 3 and at most 20, found 99");
}

TEST(ConfigReader, AppliesOneSectionOnTopOfTheOptions) {
  const auto document = Document::parse("train.steps: 7\n", "r.yaml");
  ConfigReader reader(*document);
  TrainOptions options{.steps = 1, .note = "set by the method"};
  reader.read("train", options);
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.note, "set by the method");
}

TEST(ConfigReader, TakesASectionWrittenAsItsName) {
  const auto document = Document::parse("env: maze\n", "r.yaml");
  ConfigReader reader(*document);
  NameOptions name;
  reader.read("env", name);
  EXPECT_TRUE(reader.finish().ok());
  EXPECT_EQ(name.name, "maze");
}

TEST(ConfigReader, DoesNotBlameKeysThatItCannotCheck) {
  const auto document = Document::parse("env:\n  name: mazze\n  size: 9\nenvy: 1\n", "r.yaml");
  ConfigReader reader(*document);
  NameOptions name;
  reader.read("env", name);
  reader.refuse("env.name", "no environment \"mazze\"");
  EXPECT_TRUE(reader.skip("env"));
  EXPECT_FALSE(reader.skip("environment"));
  const std::string message = reader.finish().error().message;
  EXPECT_THAT(message, HasSubstr("r.yaml:2:3: env.name: no environment \"mazze\""));
  EXPECT_THAT(message, Not(HasSubstr("env.size")));
  EXPECT_THAT(message, HasSubstr("envy"));
}

TEST(ConfigReader, AddsTheDocumentsOwnProblems) {
  const auto lines = problems("train.steps: 0\n", {"oops"});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("expected key=value"), HasSubstr("train.steps")));
}

TEST(ConfigReader, RefusesKeysThatNothingReadsUnlessTheyChangeNothing) {
  const auto document = Document::parse("train: {steps: 100, tokens: 5, speed: 1}\n", "r.yaml");
  ConfigReader reader(*document);
  TrainOptions options;
  reader.read("train", options);
  for (const std::string key : {"train.steps", "train.tokens", "train.speed", "train.note"})
    reader.unread(key, "shuffle is true");
  EXPECT_EQ(reader.finish().error().message,
            "r.yaml:1:21: train.tokens: has no effect: shuffle is true\n"
            "r.yaml:1:32: train.speed: has no effect: shuffle is true");
}

TEST(ConfigReader, PassesOverKeysThatNothingReadsInARecordedDocumentButNotInOverrides) {
  const auto document = Document::parse("train: {steps: 7, tokens: 0, note: b}", "r.yaml",
                                        {.overrides = {"train.note=c", "train.shuffle=false"}});
  ConfigReader reader(*document, Unread::PassedOver);
  TrainOptions options;
  reader.read("train", options);
  for (const char* key : {"train.steps", "train.tokens", "train.note"}) reader.unread(key, "why not");
  ASSERT_EQ(reader.passed_over().size(), 1u);
  EXPECT_EQ(reader.passed_over()[0].key, "train.steps");
  EXPECT_EQ(reader.passed_over()[0].message, "r.yaml:1:9: train.steps: has no effect: why not");
  const Status status = reader.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "command line: train.note: has no effect: why not");
}

TEST(ConfigReader, KnowsWhichKeysWereGiven) {
  const auto document = Document::parse("env: maze\n", "r.yaml");
  const ConfigReader reader(*document);
  EXPECT_TRUE(reader.given("env.name"));
  EXPECT_FALSE(reader.given("env.size"));
}

}  // namespace
}  // namespace carnot
