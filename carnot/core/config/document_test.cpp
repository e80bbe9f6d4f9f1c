#include "carnot/core/config/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "testing/parsed_recipe.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::parsed;
using ::testing::StartsWith;
using testing::value_of;

std::string error_of(std::string_view text, const RecipeSource& source = {}) {
  const auto document = Document::parse(text, "r.yaml", source);
  return document.ok() ? "no error" : document.error().message;
}

TEST(Document, KnowsEveryValueAndItsPlace) {
  const Document document = parsed("seed: 3\nenv:\n  name: sokoban\n  size: [6, 7]\n");
  EXPECT_EQ(document.find("seed")->shown(), "r.yaml:1:1: seed");
  EXPECT_EQ(document.find("env.size")->shown(), "r.yaml:4:3: env.size");
  EXPECT_EQ(value_of(document, "env.size"), "[6, 7]");
  EXPECT_EQ(value_of(document, "env.missing"), "not set");
}

TEST(Document, TakesDottedKeysAndWindowsLineEnds) {
  const Document document = parsed("env.name: sokoban\r\nenv.size: 6\r\n");
  EXPECT_EQ(value_of(document, "env.name"), "sokoban");
  EXPECT_EQ(value_of(document, "env.size"), "6");
}

TEST(Document, TakesQuotesAndAByteOrderMark) {
  const Document document = parsed(
      "\xef\xbb\xbf"
      "a: \"x \\\" y\"\nb: 'it''s'\nc: don't\n");
  EXPECT_EQ(document.find("a")->value.items[0].text, "x \" y");
  EXPECT_EQ(document.find("b")->value.items[0].text, "it's");
  EXPECT_EQ(document.find("c")->value.items[0].text, "don't");
}

TEST(Document, AnEmptyRecipeSetsNothing) {
  EXPECT_EQ(parsed("# only words\n").num_written(), 0);
  EXPECT_EQ(parsed("seed: 1\nenv: {name: a, size: 2}\n", {.overrides = {"x=1"}}).num_written(), 3);
  EXPECT_THAT(parsed("").settings(), IsEmpty());
  EXPECT_THAT(parsed("# nothing yet\n").settings(), IsEmpty());
}

TEST(Document, RemembersWhatWasQuoted) {
  EXPECT_TRUE(parsed("a: '1'").find("a")->value.items[0].quoted);
  EXPECT_FALSE(parsed("a: 1").find("a")->value.items[0].quoted);
}

TEST(Overrides, WinOverTheRecipe) {
  const Document document = parsed("env:\n  size: 6\n", {.overrides = {"env.size=8", "stops=[a, b]", "note="}});
  EXPECT_EQ(value_of(document, "env.size"), "8");
  EXPECT_EQ(document.find("env.size")->shown(), "command line: env.size");
  EXPECT_EQ(value_of(document, "stops"), "[a, b]");
  EXPECT_EQ(value_of(document, "note"), "\"\"");
}

TEST(Overrides, MayHoldEqualsSignsAndSections) {
  const Document document = parsed("", {.overrides = {"note=a=b", "env={size: 3, name: maze}"}});
  EXPECT_EQ(value_of(document, "note"), "a=b");
  EXPECT_EQ(value_of(document, "env.size"), "3");
}

TEST(Overrides, SayWhatIsWrongWithThem) {
  const Document document = parsed("", {.overrides = {"steps", "=3", "stops=[1", "extends=base.yaml", "a=&x 1"}});
  EXPECT_THAT(
      document.problems(),
      ElementsAre("command line: expected key=value, found \"steps\"", "command line: expected key=value, found \"=3\"",
                  "command line: stops: a list opens with [ and does not end with ]",
                  "command line: extends is only allowed in a recipe", HasSubstr("anchors")));
}

TEST(Shorthand, ASectionWrittenAsAWordIsItsName) {
  EXPECT_EQ(value_of(parsed("method: grpo + aem\n"), "method.name"), "grpo + aem");
  EXPECT_EQ(value_of(parsed("method:\n  name: ppo\n", {.overrides = {"method=grpo"}}), "method.name"), "grpo");
  EXPECT_EQ(value_of(parsed("method: ppo\n", {.overrides = {"method.name=grpo"}}), "method.name"), "grpo");
}

TEST(Shorthand, KeepsTheOtherKeysOfTheSection) {
  const Document document = parsed("method:\n  name: ppo\n  gae:\n    lambda: 0.9\n", {.overrides = {"method=grpo"}});
  EXPECT_EQ(value_of(document, "method.gae.lambda"), "0.9");
}

TEST(Overrides, TheLastValueOfAKeyWins) {
  const Document document = parsed("a: 0\n", {.overrides = {"a=1", "a=2"}});
  EXPECT_THAT(document.problems(), IsEmpty());
  EXPECT_EQ(value_of(document, "a"), "2");
  EXPECT_EQ(value_of(parsed("", {.overrides = {"rollout.group_size=4", "actor_rollout_ref.rollout.n=8"}}),
                     "rollout.group_size"),
            "8");
}

TEST(Contradictions, InARecipeAreProblems) {
  EXPECT_THAT(parsed("method: grpo\nmethod.name: ppo\n").problems(), ElementsAre(HasSubstr("contradicts")));
}

struct BadYaml {
  const char* text;
  const char* message;
};

class Refused : public ::testing::TestWithParam<BadYaml> {};

TEST_P(Refused, WithOneMessageThatSaysWhere) {
  const std::string message = error_of(GetParam().text);
  EXPECT_THAT(message, StartsWith(GetParam().message)) << GetParam().text;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, Refused,
    ::testing::Values(
        BadYaml{"a: 1\nb: [1, 2\nc: 3\n", "r.yaml:3:2: not valid YAML: "},
        BadYaml{"a: \"open\n", "r.yaml:1:4: a quote opens here and does not close"},
        BadYaml{"é: 1\na: 'it''s\n", "r.yaml:2:4: a quote opens here and does not close"},
        BadYaml{"a: \xff\n", "r.yaml:1:4: not UTF-8 text"}, BadYaml{"a: \xcb", "r.yaml:1:4: not UTF-8 text"},
        BadYaml{"a: 1\n b: 2\n", "r.yaml:2:3: not valid YAML: "},
        BadYaml{"a:\n\tb: 1\n", "r.yaml:2:1: indented with a tab"},
        BadYaml{"a: 1\nb: 2\na: 1\n", "r.yaml:3:1: key \"a\" is set a second time; first on line 1"},
        BadYaml{"a: &x 1\n", "r.yaml:1:4: YAML anchors"}, BadYaml{"a: &x [1, 2]\nb: *x\n", "r.yaml:1:4: YAML anchors"},
        BadYaml{"a: *x\n", "r.yaml:1:4: "}, BadYaml{"<<: {a: 1}\n", "r.yaml:1:1: YAML merge keys"},
        BadYaml{"a: !!int 1\n", "r.yaml:1:4: YAML tags"}, BadYaml{"a: \"\\N\"\n", "r.yaml:1:4: the escapes"},
        BadYaml{"a: [[1], [2]]\n", "r.yaml:1:5: a list inside a list"},
        BadYaml{"a:\n  - b: 1\n", "r.yaml:2:5: a section inside a list"},
        BadYaml{"a: [1, ~]\n", "r.yaml:1:8: a list has an empty entry"},
        BadYaml{"- a\n", "r.yaml:1:1: the recipe is a list"},
        BadYaml{"just words\n", "r.yaml:1:1: the recipe is a single value"},
        BadYaml{"? [a, b]\n: 1\n", "r.yaml:1:3: a key is a list"},
        BadYaml{"? {a: b}\n: 1\n", "r.yaml:1:3: a key is a section"}, BadYaml{"~: 1\n", "r.yaml:1:1: a key is empty"},
        BadYaml{"\"\": 1\n", "r.yaml:1:1: a key is empty"},
        BadYaml{"a: 1\n---\nb: 2\n", "r.yaml:1:1: several YAML documents"}));

TEST(Refused, DeepNestingWhereverItComesFrom) {
  EXPECT_THAT(error_of("a: " + std::string(100000, '[')), HasSubstr("nested too deep"));
  std::string text;
  for (int depth = 0; depth < 40; ++depth) text += std::string(depth, ' ') + "k:\n";
  EXPECT_THAT(error_of(text), StartsWith("r.yaml:17:"));
  EXPECT_THAT(error_of(std::string(5000, '-') + " a"), StartsWith("r.yaml:"));
  std::string dashes;
  for (int i = 0; i < 20000; ++i) dashes += "- ";
  EXPECT_THAT(error_of(dashes), StartsWith("r.yaml:"));
}

TEST(Refused, WhatIsNotText) {
  EXPECT_THAT(error_of(std::string("a: 1\n\0", 6)), StartsWith("r.yaml:2:1: a zero byte"));
  EXPECT_THAT(error_of("a: " + std::string(2 << 20, 'x')), HasSubstr("larger than 1 MiB"));
}

class Extends : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("carnot_extends_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "inner");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file_atomically(folder_ / name, text).ok());
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

TEST_F(Extends, AppliesTheRecipeOverItsBase) {
  write("base.yaml", "seed: 1\nenv:\n  name: maze\n  size: 6\n");
  const auto path = write("inner/own.yaml", "extends: ../base.yaml\nenv:\n  size: 9\n");
  const auto document = Document::load(path);
  ASSERT_TRUE(document.ok()) << document.error().message;
  EXPECT_EQ(value_of(*document, "env.size"), "9");
  EXPECT_EQ(value_of(*document, "env.name"), "maze");
  EXPECT_THAT(document->find("seed")->place, HasSubstr("base.yaml:1:1"));
  EXPECT_EQ(value_of(*document, "extends"), "not set");
}

TEST_F(Extends, NamesAMissingBaseAndWhoAsked) {
  const auto path = write("own.yaml", "seed: 1\nextends: none.yaml\n");
  const auto document = Document::load(path);
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().message, StartsWith(path + ":2: extends: "));
  EXPECT_THAT(document.error().message, HasSubstr("No such file"));
}

TEST_F(Extends, NoticesACycle) {
  const auto path = write("a.yaml", "extends: b.yaml\n");
  write("b.yaml", "extends: a.yaml\n");
  const auto document = Document::load(path);
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().message, HasSubstr("extends itself"));
}

TEST_F(Extends, AMissingRecipeIsNamed) {
  const auto document = Document::load(folder_ / "none.yaml");
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().message, HasSubstr("none.yaml: cannot open: No such file or directory"));
}

TEST(Damage, NeverEndsInAnythingButAValueOrAMessage) {
  const std::string good =
      "seed: 3\nenv:\n  name: 'a b'\n  sizes: [1, 2.5, -3e4]\nmethod: grpo + aem\nnote: |\n  text\n";
  constexpr std::string_view kBytes = ":-[]{}&*!|>'\"%@`#?, \n\t~ax1\\\xff";
  RandomStream random(4);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = good;
    for (std::uint64_t change = 0; change <= random.below(4); ++change) {
      const auto at = static_cast<std::size_t>(random.below(text.size()));
      switch (random.below(3)) {
        case 0: text[at] = random.pick(kBytes); break;
        case 1: text.insert(at, 1, random.pick(kBytes)); break;
        default: text.erase(at, 1 + random.below(5)); break;
      }
      if (text.empty()) text = "a";
    }
    const auto document = Document::parse(text, "r.yaml");
    if (!document.ok()) {
      EXPECT_THAT(document.error().message, StartsWith("r.yaml:")) << text;
    }
  }
}

}  // namespace
}  // namespace carnot
