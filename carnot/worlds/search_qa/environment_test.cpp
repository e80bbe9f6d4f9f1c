#include "carnot/worlds/search_qa/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "carnot/worlds/entries.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/search_qa/protocol.h"
#include "testing/field_settings.h"
#include "testing/prepared_environment.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::prepared;

std::string search_for(const std::string& query) { return "<think> x </think> <search> " + query + " </search>"; }
std::string answer_with(const std::string& text) {
  return "<think> x </think> <answer> \\boxed{ " + text + " } </answer>";
}

class SearchQaTest : public ::testing::Test {
 protected:
  SearchQaTest() : factory_(make_search_qa()) { EXPECT_TRUE(factory_->prepare(1).ok()); }

  std::unique_ptr<SearchQa> task(std::int64_t index) const {
    auto environment = factory_->make(Split::Train, index);
    return std::unique_ptr<SearchQa>(dynamic_cast<SearchQa*>(environment.release()));
  }

  std::unique_ptr<EnvironmentFactory> factory_;
};

TEST_F(SearchQaTest, AnswersASearchInlineAndGoesOn) {
  const auto qa = task(0);
  const Reply reply = qa->step(search_for(qa->task().answer()));
  EXPECT_FALSE(reply.done);
  EXPECT_EQ(reply.form, ReplyForm::Inline);
  EXPECT_EQ(reply.reward, 0);
  EXPECT_EQ(reply.tool, "search");
  EXPECT_EQ(reply.status, "ok");
  EXPECT_TRUE(reply.text.starts_with(" <result>\nDoc 1 (Title: ")) << reply.text;
  EXPECT_TRUE(reply.text.ends_with(" .\n</result>")) << reply.text;
  EXPECT_EQ(qa->found().size(), 2u);
}

TEST_F(SearchQaTest, MayHoldOutItsNames) {
  const auto factory = make_search_qa();
  testing::FieldSettings settings(std::map<std::string, std::string>{{"held_out_names", "true"}});
  factory->fields(settings);
  ASSERT_TRUE(factory->prepare(1).ok());
  const auto names = [&](const EnvironmentFactory& from, Split split) {
    std::set<std::string> all;
    for (std::int64_t index = 0; index < 64; ++index) {
      const auto environment = from.make(split, index);
      const SearchWorld& world = *dynamic_cast<const SearchQa&>(*environment).task().world;
      for (int entity = 0; entity < world.num_entities(); ++entity) all.insert(world.name(entity));
    }
    return all;
  };
  const auto training = names(*factory, Split::Train);
  EXPECT_EQ(training, names(*factory_, Split::Train)) << "training worlds do not depend on it";
  for (const std::string& name : names(*factory, Split::Validation)) EXPECT_FALSE(training.contains(name)) << name;
}

TEST_F(SearchQaTest, SaysWhereThereAreNotEnoughNamesToHoldOut) {
  SearchQaOptions options{.held_out_names = true};
  options.world.companies = 900;
  ASSERT_EQ(options.problems().size(), 1u);
  EXPECT_NE(options.problems()[0].find("env.held_out_names: "), std::string::npos);
}

TEST_F(SearchQaTest, SaysWhenASearchFindsNothing) {
  const auto qa = task(0);
  const Reply reply = qa->step(search_for("xyzzy"));
  EXPECT_EQ(reply.status, "empty");
  EXPECT_EQ(reply.text, " <result>\nNo results found .\n</result>");
}

TEST_F(SearchQaTest, PaysOneForTheBoxedAnswerHoweverItIsSpaced) {
  for (const char* spaced : {"\\boxed{ % }", "\\boxed{%}", "So \\boxed{ The %. }"}) {
    const auto qa = task(3);
    std::string box = spaced;
    box.replace(box.find('%'), 1, qa->task().answer());
    const Reply reply = qa->step("<think>x</think><answer>" + box + "</answer>");
    EXPECT_TRUE(reply.done && reply.success);
    EXPECT_EQ(reply.outcome, Outcome::Finished);
    EXPECT_EQ(reply.reward, 1);
    EXPECT_EQ(reply.measures.at("exact_match"), 1);
    EXPECT_EQ(reply.measures.at("format"), 1);
    EXPECT_EQ(reply.measures.at("searches"), 0);
    EXPECT_EQ(reply.answer, normalize_answer(qa->task().answer()));
    EXPECT_EQ(reply.measures.at("hops"), qa->task().question.hops());
  }
}

TEST_F(SearchQaTest, PaysNothingForAWrongAnswer) {
  const auto qa = task(3);
  qa->step(search_for("x"));
  const Reply reply = qa->step(answer_with("nobody"));
  EXPECT_TRUE(reply.done);
  EXPECT_FALSE(reply.success);
  EXPECT_EQ(reply.reward, 0);
  EXPECT_EQ(reply.measures.at("searches"), 1);
}

TEST_F(SearchQaTest, TakesOneAwayForABrokenFormatAnywhereInTheMessage) {
  const auto early = task(3);
  EXPECT_EQ(early->step("<think> x <search> y </search>").reward, 0);
  const Reply reply = early->step(answer_with(early->task().answer()));
  EXPECT_EQ(reply.reward, -1);
  EXPECT_FALSE(reply.success);
  EXPECT_EQ(reply.measures.at("exact_match"), 1);
  EXPECT_EQ(reply.measures.at("format"), 0);

  const auto unboxed = task(3);
  EXPECT_EQ(unboxed->step("<think> x </think> <answer> " + unboxed->task().answer() + " </answer>").reward, -1);
}

TEST_F(SearchQaTest, EndsUnparsableWhereAResponseIsNeitherSearchNorAnswer) {
  const Reply reply = task(0)->step("<think> who knows </think>");
  EXPECT_TRUE(reply.done);
  EXPECT_EQ(reply.outcome, Outcome::Unparsable);
  EXPECT_FALSE(reply.valid_action);
  EXPECT_EQ(reply.reward, -1);
}

TEST_F(SearchQaTest, EndsAtOneSearchTooMany) {
  const auto qa = task(0);
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(qa->step(search_for("x")).done);
  const Reply reply = qa->step(search_for("x"));
  EXPECT_TRUE(reply.done);
  EXPECT_EQ(reply.outcome, Outcome::OutOfTurns);
  EXPECT_EQ(reply.reward, -1);
  EXPECT_EQ(reply.measures.at("searches"), 6);
}

TEST_F(SearchQaTest, PaysF1WhereAsked) {
  SearchQaOptions options;
  options.reward = AnswerReward::F1;
  for (std::int64_t index = 0;; ++index) {
    const SearchTask found = task(index)->task();
    if (found.answer().find(' ') == std::string::npos) continue;
    SearchQa qa(found, options);
    EXPECT_NEAR(qa.step(answer_with(found.answer() + " junior")).reward, 0.8, 1e-12);
    return;
  }
}

TEST_F(SearchQaTest, AnchorIsTheSameForTheSamePassagesInAnyOrder) {
  const auto first = task(5), second = task(5);
  const std::string start = first->anchor();
  const auto& names = first->task();
  const std::string one = names.world->name(0), two = names.world->name(40);
  first->step(search_for(one));
  const std::string half = first->anchor();
  first->step(search_for(two));
  second->step(search_for(two));
  second->step(search_for("xyzzy"));
  second->step(search_for(one));
  EXPECT_EQ(first->anchor(), second->anchor());
  EXPECT_NE(first->anchor(), half);
  EXPECT_NE(half, start);
  EXPECT_NE(task(6)->anchor(), start);
}

TEST_F(SearchQaTest, DrawsHopsByTheirSharesAndWorldsOfItsSplitOnly) {
  std::array<int, 3> hops{};
  std::set<const SearchWorld*> train, held_out;
  for (std::int64_t index = 0; index < 2000; ++index) {
    const auto qa = task(index);
    ++hops[qa->task().question.hops() - 1];
    train.insert(qa->task().world.get());
    const auto validation = factory_->make(Split::Validation, index);
    held_out.insert(dynamic_cast<SearchQa&>(*validation).task().world.get());
  }
  EXPECT_NEAR(hops[0], 800, 100);
  EXPECT_NEAR(hops[1], 800, 100);
  EXPECT_NEAR(hops[2], 400, 80);
  EXPECT_EQ(train.size(), 64u);
  EXPECT_EQ(held_out.size(), 16u);
  for (const auto* world : train) EXPECT_FALSE(held_out.contains(world));
}

TEST_F(SearchQaTest, TellsAboutItsTask) {
  const auto qa = task(2);
  EXPECT_EQ(qa->ground_truth(), std::vector<std::string>{qa->task().answer()});
  EXPECT_EQ(qa->open().user, qa->info().at("question"));
  EXPECT_EQ(qa->info().at("hops"), std::to_string(qa->task().question.hops()));
  EXPECT_EQ(qa->protocol().stop_strings, std::vector<std::string>{"</search>"});
}

TEST_F(SearchQaTest, IsPlayedBareWithSearchAndAnswerLines) {
  const auto made = factory_->make_game(4);
  ASSERT_TRUE(made.ok());
  Game& game = **made;
  const auto environment = factory_->make_instance(4);
  const auto& qa = dynamic_cast<SearchQa&>(*environment);
  EXPECT_NE(game.observation().find(qa.task().question.text), std::string::npos);
  EXPECT_NE(game.observation().find("search QUERY (6 left)"), std::string::npos);
  EXPECT_FALSE(game.step("look").valid);
  EXPECT_FALSE(game.step("search").valid);
  const GameStep searched = game.step("search " + qa.task().answer());
  EXPECT_TRUE(searched.valid && searched.effective && !searched.done);
  EXPECT_NE(searched.observation.find("Doc 1 (Title: "), std::string::npos);
  const GameStep wrong = game.clone()->step("answer nobody");
  EXPECT_TRUE(wrong.done && !wrong.success);
  const GameStep right = game.step("answer " + qa.task().answer());
  EXPECT_TRUE(right.done && right.success);
  EXPECT_EQ(python_number(right.reward), "1");
}

TEST_F(SearchQaTest, OffersATokenizerAllItsWords) {
  const auto words = factory_->tokenizer_words();
  const std::set<std::string> known(words.begin(), words.end());
  EXPECT_LE(known.size(), 260u) << "keeps the vocabulary small";
  for (auto word : {"Doc", "Title", "mayor", "birthplace", "born", "remember", "Then", "answer", "What", "Who"})
    EXPECT_TRUE(known.contains(word)) << word;
  for (std::int64_t index = 0; index < 50; ++index) {
    const auto validation = factory_->make(Split::Validation, index);
    const auto& world = *dynamic_cast<SearchQa&>(*validation).task().world;
    for (Entity entity = 0; entity < world.num_entities(); ++entity)
      for (const std::string& word : alphanumeric_words(world.name(entity))) {
        std::string capital = word;
        capital[0] = static_cast<char>(capital[0] - 'a' + 'A');
        EXPECT_TRUE(known.contains(capital)) << capital;
      }
  }
  const auto texts = factory_->tokenizer_texts();
  EXPECT_EQ(texts, factory_->tokenizer_texts());
  EXPECT_GT(texts.size(), 100u);
}

TEST(SearchQaFactory, RefusesSharesOfHopsThatAreNone) {
  for (const std::string key : {"hop_shares", "demonstrated_shares"})
    for (const std::string shares : {"[0, 0]", "[1, 1, 1, 1]"})
      EXPECT_THAT(prepared(make_search_qa(), {key + "=" + shares}).error().message, HasSubstr("env." + key));
  EXPECT_THAT(prepared(make_search_qa(), {"hop_shares=[]"}).error().message, HasSubstr("env.hop_shares"));
}

TEST(SearchQaFactory, AsksOnlyForTheHopsThatHaveAShare) {
  const auto factory = prepared(make_search_qa(), {"hop_shares=[0, 0, 1]"}).value();
  for (std::int64_t index = 0; index < 20; ++index) {
    EXPECT_EQ(factory->make(Split::Train, index)->info().at("hops"), "3");
    EXPECT_EQ(factory->make_demonstrated(index, 0)->info().at("hops"), "3");
  }
}

TEST(SearchQaFactory, MayDemonstrateFewerHopsThanTasksHave) {
  const auto factory = prepared(make_search_qa(), {"hop_shares=[0, 0, 1]", "demonstrated_shares=[1, 1]"}).value();
  std::set<std::string> demonstrated;
  for (std::int64_t index = 0; index < 50; ++index) {
    EXPECT_EQ(factory->make(Split::Train, index)->info().at("hops"), "3");
    EXPECT_EQ(factory->make_demonstrated(index, 0)->info().at("hops"), "1") << "before one_hop_until";
    demonstrated.insert(factory->make_demonstrated(index, 0.5)->info().at("hops"));
  }
  EXPECT_THAT(demonstrated, ElementsAre("1", "2"));
}

}  // namespace
}  // namespace carnot
