#include "carnot/worlds/search_qa/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace carnot {
namespace {

SearchWorld make_world(std::uint64_t seed, const SearchWorldOptions& options = {}) {
  return SearchWorld(options, SearchNames(options), seed);
}

std::vector<std::string> texts_of(const SearchWorld& world) {
  std::vector<std::string> texts;
  for (const Passage& passage : world.passages())
    texts.push_back(world.name(passage.subject) + " " + passage.predicate);
  return texts;
}

// What a world says about regions and capitals, by name.
std::map<std::string, std::string> geography(const SearchWorld& world) {
  std::map<std::string, std::string> facts;
  for (const Passage& passage : world.passages())
    if (passage.relation >= 0 && relations()[passage.relation].geography)
      facts[world.name(passage.subject)] = world.name(passage.object);
  return facts;
}

TEST(SearchNames, AreManyDifferentWordsAndLongerListsBeginWithShorterOnes) {
  std::set<std::string> all;
  for (auto kind : {NameKind::FirstName, NameKind::LastName, NameKind::Town, NameKind::Region, NameKind::Company}) {
    const auto names = invent_names(kind, kMostNames);
    all.insert(names.begin(), names.end());
    const auto few = invent_names(kind, 30);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), names.begin()));
  }
  EXPECT_EQ(all.size(), 5u * kMostNames);
}

TEST(SearchRelations, LeaveEightFifteenAndTwentyNinePaths) {
  EXPECT_EQ(relation_paths(1).size(), 8u);
  EXPECT_EQ(relation_paths(2).size(), 15u);
  EXPECT_EQ(relation_paths(3).size(), 29u);
}

TEST(SearchRelations, HaveKeywordsOfTheirOwn) {
  std::set<std::string_view> keywords;
  for (const Relation& relation : relations())
    for (const Phrasing& phrasing : relation.phrasings) EXPECT_TRUE(keywords.insert(phrasing.keyword).second);
  EXPECT_EQ(keywords.size(), 16u);
}

TEST(SearchWorld, HoldsOnePassageForEveryFactAndFiller) {
  const SearchWorld world = make_world(1);
  EXPECT_EQ(world.num_entities(), 60 + 24 + 6 + 16);
  EXPECT_EQ(world.passages().size(), 2u * (60 + 24 + 6 + 16) + 2 * 60 + 24 + 6 + 16);
  std::set<std::pair<Entity, int>> facts;
  for (const Passage& passage : world.passages()) {
    if (passage.relation < 0) continue;
    EXPECT_TRUE(facts.emplace(passage.subject, passage.relation).second);
    EXPECT_EQ(world.object_of(passage.subject, passage.relation), passage.object);
    EXPECT_EQ(world.kind(passage.object), relations()[passage.relation].object);
    EXPECT_NE(passage.predicate.find(world.name(passage.object) + " ."), std::string::npos);
  }
}

TEST(SearchWorld, IsAFunctionOfItsSeed) {
  EXPECT_EQ(texts_of(make_world(4)), texts_of(make_world(4)));
  EXPECT_NE(texts_of(make_world(4)), texts_of(make_world(5)));
}

TEST(SearchWorld, KeepsGeographyFixedUnlessToldOtherwise) {
  std::map<std::string, std::set<std::string>> fixed, loose;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    for (const auto& [place, in] : geography(make_world(seed))) fixed[place].insert(in);
    for (const auto& [place, in] : geography(make_world(seed, {.fixed_geography = false}))) loose[place].insert(in);
  }
  EXPECT_EQ(fixed.size(), 9u + 36u) << "12 worlds of 6 regions should meet all 9";
  for (const auto& [place, in] : fixed) EXPECT_EQ(in.size(), 1u) << place;
  EXPECT_GT(std::ranges::count_if(loose, [](const auto& entry) { return entry.second.size() > 1; }), 30);
}

TEST(SearchWorld, AsksQuestionsWhoseEntitiesDifferAndFollowFromFacts) {
  const SearchWorld world = make_world(2);
  RandomStream random(3);
  for (int i = 0; i < 300; ++i) {
    const int hops = 1 + i % 3;
    const Question question = world.sample_question(hops, random);
    ASSERT_EQ(question.hops(), hops);
    for (int hop = 0; hop < hops; ++hop) {
      const auto at = static_cast<std::size_t>(hop);
      EXPECT_EQ(world.object_of(question.entities[at], question.path[at]), question.entities[at + 1]);
    }
    EXPECT_EQ(std::set<Entity>(question.entities.begin(), question.entities.end()).size(), question.entities.size());
    EXPECT_TRUE(question.text.ends_with(" of " + world.name(question.entities.front()) + " ?")) << question.text;
    EXPECT_TRUE(question.text.starts_with(world.kind(question.answer()) == EntityKind::Person ? "Who is the "
                                                                                              : "What is the "));
  }
}

TEST(SearchWorld, FindsAFactByNameAndItsKeywordAndMostlyNotByTheOtherKeyword) {
  const SearchWorld world = make_world(6);
  int with_keyword = 0, with_other = 0, facts = 0;
  for (std::size_t i = 0; i < world.passages().size(); ++i) {
    const Passage& passage = world.passages()[i];
    if (passage.relation < 0) continue;
    ++facts;
    for (const Phrasing& phrasing : relations()[passage.relation].phrasings) {
      const auto found = world.search(world.name(passage.subject) + " " + std::string(phrasing.keyword), 2);
      const bool hit = std::ranges::count(found, static_cast<int>(i)) > 0;
      const std::string word = " " + std::string(phrasing.keyword) + " ";
      const bool its_own = (" " + passage.predicate).find(word) != std::string::npos;
      (its_own ? with_keyword : with_other) += hit;
    }
  }
  EXPECT_EQ(facts, 212);
  EXPECT_GE(with_keyword, 0.97 * facts);
  EXPECT_LE(with_other, 0.6 * facts);
}

TEST(SearchWorld, ShowsPassagesWithBlanksAroundEveryWord) {
  const SearchWorld world = make_world(1);
  const Passage& passage = world.passage(7);
  EXPECT_EQ(format_passages(world, {7, 7}), "Doc 1 (Title: " + world.name(passage.subject) + " ) " + passage.predicate +
                                                "\nDoc 2 (Title: " + world.name(passage.subject) + " ) " +
                                                passage.predicate);
  EXPECT_EQ(format_passages(world, {}), "No results found .");
  for (const std::string& text : texts_of(world)) {
    EXPECT_TRUE(text.ends_with(" .")) << text;
    EXPECT_EQ(text.find("  "), std::string::npos) << text;
  }
}

TEST(SearchWorld, NamesSizesThatDoNotFitTogether) {
  EXPECT_TRUE(SearchWorldOptions{}.problems().empty());
  const auto problems = SearchWorldOptions{.people = 300, .towns = 25}.problems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("env.people"), std::string::npos);
  EXPECT_NE(problems[1].find("env.towns"), std::string::npos);
}

}  // namespace
}  // namespace carnot
