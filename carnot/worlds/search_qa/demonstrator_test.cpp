#include "carnot/worlds/search_qa/demonstrator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "carnot/worlds/entries.h"
#include "carnot/worlds/search_qa/environment.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {
namespace {

struct Demonstration {
  int hops = 0;
  std::vector<std::string> responses{};
  std::string message{};  // the whole assistant message
  int words = 0;          // of question and message
  Reply last{};

  bool operator==(const Demonstration& other) const { return message == other.message; }
};

Demonstration play(SearchQa& qa, ScriptedAgent& agent) {
  Demonstration played{.hops = qa.task().question.hops()};
  while (!played.last.done) {
    played.responses.push_back(agent.respond(played.last.text).text);
    played.last = qa.step(played.responses.back());
    played.message += played.responses.back() + played.last.text;
  }
  const std::string all = qa.open().system + " " + qa.open().user + " " + played.message;
  for (std::size_t i = 0; i < all.size(); ++i)
    played.words += all[i] != ' ' && all[i] != '\n' && (i == 0 || all[i - 1] == ' ' || all[i - 1] == '\n');
  return played;
}

class SearchDemonstratorTest : public ::testing::Test {
 protected:
  SearchDemonstratorTest() : factory_(make_search_qa()) { EXPECT_TRUE(factory_->prepare(1).ok()); }

  std::vector<Demonstration> demonstrate(const SearchDemonstrationOptions& options, int count) const {
    std::vector<Demonstration> all;
    for (std::int64_t index = 0; index < count; ++index) {
      const auto environment = factory_->make(Split::Train, index);
      auto& qa = dynamic_cast<SearchQa&>(*environment);
      const auto agent = make_search_demonstrator(qa, options, RandomStream(static_cast<std::uint64_t>(index)));
      all.push_back(play(qa, *agent));
    }
    return all;
  }

  std::unique_ptr<EnvironmentFactory> factory_;
};

double success_rate(const std::vector<Demonstration>& all, int hops) {
  double tried = 0, succeeded = 0;
  for (const Demonstration& one : all) {
    if (hops != 0 && one.hops != hops) continue;
    ++tried;
    succeeded += one.last.success;
  }
  return succeeded / tried;
}

double mean_words(const std::vector<Demonstration>& all) {
  double sum = 0;
  for (const Demonstration& one : all) sum += one.words;
  return sum / static_cast<double>(all.size());
}

double mean_searches(const std::vector<Demonstration>& all) {
  double sum = 0;
  for (const Demonstration& one : all) sum += one.last.measures.at("searches");
  return sum / static_cast<double>(all.size());
}

void report(const char* name, const std::vector<Demonstration>& all) {
  ::testing::Test::RecordProperty(
      name, "success " + std::to_string(success_rate(all, 0)) + " by hops " + std::to_string(success_rate(all, 1)) +
                " " + std::to_string(success_rate(all, 2)) + " " + std::to_string(success_rate(all, 3)) + ", words " +
                std::to_string(mean_words(all)) + ", searches " + std::to_string(mean_searches(all)));
}

TEST_F(SearchDemonstratorTest, WithoutMistakesIsNearlyAlwaysRightWithinTheSearches) {
  const auto all = demonstrate(SearchDemonstrationOptions{}.clean(), 3000);
  report("clean", all);
  EXPECT_GE(success_rate(all, 1), 0.99);
  EXPECT_GE(success_rate(all, 2), 0.95);
  EXPECT_GE(success_rate(all, 3), 0.90);
}

TEST_F(SearchDemonstratorTest, WithItsMistakesSucceedsInAboutAQuarterOfTheTasks) {
  const auto all = demonstrate({}, 4000);
  report("imperfect", all);
  EXPECT_NEAR(success_rate(all, 0), 0.25, 0.04);
  EXPECT_GT(success_rate(all, 1), success_rate(all, 2) + 0.1);
  EXPECT_GT(success_rate(all, 2), success_rate(all, 3));
}

TEST_F(SearchDemonstratorTest, KeepsTheFormatButForTagErrors) {
  SearchDemonstrationOptions options;
  options.tag_error = 0;
  for (const Demonstration& one : demonstrate(options, 500)) {
    EXPECT_EQ(format_problem(one.message), "") << one.message;
    EXPECT_EQ(one.last.outcome, Outcome::Finished);
  }
  options.tag_error = 1;
  for (const Demonstration& one : demonstrate(options, 100)) EXPECT_EQ(one.last.reward, -1) << one.message;
}

// Information gain measures answers after the prefix; an answer of another kind there would teach it the wrong thing.
TEST_F(SearchDemonstratorTest, ReservesTheAnswerPrefixForRightAnswersAndGuessesOfTheAskedKind) {
  SearchDemonstrationOptions options;
  options.tag_error = 0;
  int with_prefix = 0, right_with_prefix = 0, right = 0;
  for (std::int64_t index = 0; index < 2000; ++index) {
    const auto environment = factory_->make(Split::Train, index);
    auto& qa = dynamic_cast<SearchQa&>(*environment);
    const auto agent = make_search_demonstrator(qa, options, RandomStream(static_cast<std::uint64_t>(index)));
    const Demonstration one = play(qa, *agent);
    const std::string& last = one.responses.back();
    right += one.last.success;
    if (!last.starts_with(kSearchAnswerPrefix)) continue;
    ++with_prefix;
    right_with_prefix += one.last.success;
    const auto& world = *qa.task().world;
    bool right_kind = false;
    for (Entity entity = 0; entity < world.num_entities(); ++entity)
      right_kind |= world.kind(entity) == world.kind(qa.task().question.answer()) &&
                    last == std::string(kSearchAnswerPrefix) + " " + world.name(entity) + " } </answer>";
    EXPECT_TRUE(right_kind) << last;
  }
  EXPECT_GT(with_prefix, 500);
  EXPECT_NEAR(right_with_prefix, 0.25 * right, 0.08 * right);
}

TEST_F(SearchDemonstratorTest, SearchesWithWordsOfTheMessageSoFar) {
  const auto environment = factory_->make(Split::Train, 0);
  auto& qa = dynamic_cast<SearchQa&>(*environment);
  const auto agent = make_search_demonstrator(qa, SearchDemonstrationOptions{}.clean(), RandomStream(1));
  const std::string response = agent->respond("").text;
  const auto& question = qa.task().question;
  const std::string& start = qa.task().world->name(question.entities[0]);
  const std::string relation(relations()[question.path[0]].name);
  EXPECT_TRUE(
      response.starts_with("<think> I need the " + relation + " of " + start + " . </think> <search> " + start + " "))
      << response;
}

TEST_F(SearchDemonstratorTest, IsAFunctionOfTaskAndDraws) { EXPECT_EQ(demonstrate({}, 50), demonstrate({}, 50)); }

TEST_F(SearchDemonstratorTest, FollowsTheCurriculum) {
  const auto demonstrate_at = [&](double progress) {
    std::vector<Demonstration> all;
    for (std::int64_t index = 0; index < 400; ++index) {
      const auto environment = factory_->make_demonstrated(index, progress);
      const auto agent = factory_->script(*environment, progress, RandomStream(static_cast<std::uint64_t>(index)));
      all.push_back(play(dynamic_cast<SearchQa&>(*environment), *agent));
    }
    return all;
  };
  const auto one_hop = demonstrate_at(0.1), clean = demonstrate_at(0.4), imperfect = demonstrate_at(1);
  EXPECT_TRUE(std::ranges::all_of(one_hop, [](const Demonstration& one) { return one.hops == 1; }));
  EXPECT_GE(success_rate(one_hop, 0), 0.98);
  EXPECT_GT(mean_searches(one_hop), 1.4) << "some first queries are bad or miss the phrasing";
  EXPECT_TRUE(std::ranges::any_of(clean, [](const Demonstration& one) { return one.hops == 3; }));
  EXPECT_GE(success_rate(clean, 0), 0.95);
  EXPECT_LE(success_rate(imperfect, 0), 0.4);
}

}  // namespace
}  // namespace carnot
