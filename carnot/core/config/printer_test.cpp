#include "carnot/core/config/printer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "carnot/core/base/random.h"
#include "carnot/core/config/reader.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

struct InnerOptions {
  double rate = 1e-6;
  std::vector<std::string> stops{};
  void fields(FieldVisitor& visit) {
    visit.field("rate", rate, "step size");
    visit.field("stops", stops, "stop strings");
  }
  bool operator==(const InnerOptions&) const = default;
};

struct Options {
  int count = 3;
  std::int64_t large = 0;
  bool on = true;
  std::string text = "plain words";
  std::vector<double> numbers{};
  InnerOptions inner{};

  void fields(FieldVisitor& visit) {
    visit.field("count", count, "how many | how often", at_least(1));
    visit.field("large", large, "a large one");
    section(visit, "inner", inner, "inside");
    visit.field("on", on, "whether");
    visit.field("text", text, "free text");
    visit.field("numbers", numbers, "some numbers");
  }
  bool operator==(const Options&) const = default;
};

std::string random_text(RandomStream& random) {
  constexpr std::string_view kBytes = " ab1.:-#'\"\\\n\t\r{}[],&*!|>%@`~=\x01\x1f\x7f";
  static const std::vector<std::string> kWords = {"true", "null", "~",         "1e3", "0x1", ".inf",
                                                  "é",    "漢字", "</search>", "---", "..."};
  std::string text;
  for (std::uint64_t i = random.below(8); i > 0; --i) {
    if (random.chance(0.3)) {
      text += random.pick(kWords);
    } else {
      text += random.pick(kBytes);
    }
  }
  return text;
}

double random_number(RandomStream& random) {
  const double value = std::bit_cast<double>(random.bits());
  return std::isnan(value) ? 0 : value;
}

Options random_options(RandomStream& random) {
  Options options{.count = 1 + static_cast<int>(random.below(1000)),
                  .large = static_cast<std::int64_t>(random.bits()),
                  .on = random.chance(0.5),
                  .text = random_text(random)};
  for (std::uint64_t i = random.below(4); i > 0; --i) options.numbers.push_back(random_number(random));
  options.inner.rate = random_number(random);
  for (std::uint64_t i = random.below(4); i > 0; --i) options.inner.stops.push_back(random_text(random));
  return options;
}

TEST(ToYaml, ReadsBackToEqualOptions) {
  RandomStream random(5);
  for (int trial = 0; trial < 1000; ++trial) {
    Options written = random_options(random);
    FieldTable table;
    table.add("train", written);
    const std::string yaml = to_yaml(table);
    const auto document = Document::parse(yaml, "config.yaml");
    ASSERT_TRUE(document.ok()) << document.error().message << "\n" << yaml;
    ConfigReader reader(*document);
    Options read;
    reader.read("train", read);
    const Status status = reader.finish();
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << yaml;
    EXPECT_EQ(read, written) << yaml;
  }
}

TEST(ToYaml, NestsSectionsAndQuotesOnlyWhatCouldBeMisread) {
  Options options{.text = "no"};
  options.inner.stops = {"</a>", "plain"};
  FieldTable table;
  table.add("train", options);
  EXPECT_EQ(to_yaml(table),
            "train:\n  count: 3\n  large: 0\n  inner:\n    rate: 1e-06\n    stops: [\"</a>\", plain]\n  on: true\n"
            "  text: \"no\"\n  numbers: []\n");
}

TEST(ToYaml, JoinsThePassesOfOneSection) {
  struct Name {
    std::string name = "maze";
    void fields(FieldVisitor& visit) { visit.field("name", name, "which"); }
  } name;
  InnerOptions inner;
  FieldTable table;
  table.add("env", name);
  table.add("", name);
  table.add("env", inner);
  name.name = "sokoban";
  table.add("env", name);
  EXPECT_EQ(to_yaml(table), "env:\n  name: sokoban\n  rate: 1e-06\n  stops: []\nname: maze\n");
}

TEST(Help, ShowsKeyTypeDefaultLimitsAndMeaning) {
  Options options;
  FieldTable table;
  table.add("train", options);
  EXPECT_THAT(help_text(table), HasSubstr("  train.count=3  (int, at least 1)\n      how many | how often\n"));
}

TEST(Help, BreaksLongLines) {
  struct Long {
    bool on = false;
    std::string help;
    void fields(FieldVisitor& visit) { visit.field("on", on, help); }
  } options;
  for (int i = 0; i < 60; ++i) options.help += "word ";
  FieldTable table;
  table.add("", options);
  std::size_t longest = 0;
  std::string text = help_text(table);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    longest = std::max(longest, text.find('\n', at) - at);
  EXPECT_LE(longest, 100u);
  EXPECT_GT(longest, 90u);
}

}  // namespace
}  // namespace carnot
