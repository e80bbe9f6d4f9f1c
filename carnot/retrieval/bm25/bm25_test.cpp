#include "carnot/retrieval/bm25/bm25.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "carnot/core/base/random.h"
#include "carnot/core/base/strings.h"
#include "reference/bm25.h"
#include "testing/trials.h"

namespace carnot {
namespace {

std::vector<int> documents_of(const std::vector<SearchHit>& hits) {
  std::vector<int> documents;
  for (const SearchHit& hit : hits) documents.push_back(hit.document);
  return documents;
}

// Words with a long tail: small numbers are frequent.
std::vector<std::string> random_words(RandomStream& random, int most, std::uint64_t vocabulary) {
  std::vector<std::string> words(random.below(static_cast<std::uint64_t>(most)) + 1);
  for (std::string& word : words) word = "w" + std::to_string(random.below(random.below(vocabulary) + 1));
  return words;
}

TEST(Analyzer, SplitsAtEverythingThatIsNoLetterOrDigitAndLowersCase) {
  EXPECT_EQ(alphanumeric_words("Doc 1 (Title: Caf\xc3\xa9-Bar )"),
            (std::vector<std::string>{"doc", "1", "title", "caf\xc3\xa9", "bar"}));
  EXPECT_TRUE(alphanumeric_words(" . ?").empty());
}

TEST(Bm25, RanksARareWordAboveACommonOne) {
  const std::vector<std::string> texts = {"the cat", "the dog", "the emu", "the cat"};
  const Bm25Index index(texts, {});
  EXPECT_EQ(documents_of(index.search("the emu", 2)), (std::vector<int>{2, 0}));
}

TEST(Bm25, ScoresAsTheFormulaSays) {
  const std::vector<std::string> texts = {"a a b", "c"};
  const Bm25Index index(texts, {.k1 = 1.2, .b = 0.75});
  const auto hits = index.search("a", 5);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_NEAR(hits[0].score, std::log(2.0) * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)), 1e-12);
}

TEST(Bm25, PrefersTheShorterOfTwoDocumentsUnlessLengthsAreIgnored) {
  const std::vector<std::string> texts = {"emu and much other text", "emu"};
  EXPECT_EQ(documents_of(Bm25Index(texts, {}).search("emu", 2)), (std::vector<int>{1, 0}));
  EXPECT_EQ(documents_of(Bm25Index(texts, {.b = 0}).search("emu", 2)), (std::vector<int>{0, 1}));
}

TEST(Bm25, FindsNothingForUnknownWordsEmptyQueriesAndAnEmptyIndex) {
  const std::vector<std::string> texts = {"one", ""};
  const Bm25Index index(texts, {});
  EXPECT_TRUE(index.search("two", 3).empty());
  EXPECT_TRUE(index.search("", 3).empty());
  EXPECT_TRUE(index.search("one", 0).empty());
  EXPECT_TRUE(Bm25Index().search("one", 3).empty());
  EXPECT_TRUE(Bm25Index(std::vector<std::string>{""}, {}).search("one", 3).empty());
}

TEST(Bm25, UsesTheAnalyzerItIsGiven) {
  const Analyzer whole = [](std::string_view text) { return std::vector<std::string>{std::string(text)}; };
  const std::vector<std::string> texts = {"one two"};
  const Bm25Index index(texts, {}, whole);
  EXPECT_TRUE(index.search("one", 1).empty());
  EXPECT_EQ(index.search("one two", 1).size(), 1u);
}

TEST(Bm25, RoundsLengthsAsLuceneDoes) {
  for (int length = 0; length <= 40; ++length) EXPECT_EQ(lucene_length(length), length);
  EXPECT_EQ(lucene_length(41), 40);
  EXPECT_EQ(lucene_length(53), 52);
  EXPECT_EQ(lucene_length(119), 112);  // 95 = 0b1011111 keeps 0b1011000
}

TEST(Bm25, EqualsItsDefinitionOnRandomCorpora) {
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    RandomStream random(derive_seed(3, "bm25", trial));
    std::vector<std::vector<std::string>> documents(1 + random.below(60));
    std::vector<std::string> texts;
    for (auto& document : documents) texts.push_back(join(document = random_words(random, 20, 40)));
    const double k1 = random.uniform() * 2, b = random.uniform();
    const Bm25Index index(texts, {.k1 = k1, .b = b});
    for (int i = 0; i < 10; ++i) {
      const auto query = random_words(random, 6, 40);
      const int k = static_cast<int>(random.below(12));
      const auto expected = reference::bm25_top(documents, query, k, k1, b);
      const auto hits = index.search(join(query), k);
      ASSERT_EQ(hits.size(), expected.size());
      for (std::size_t rank = 0; rank < hits.size(); ++rank)
        EXPECT_NEAR(hits[rank].score, expected[rank].second, 1e-9) << "trial " << trial << " rank " << rank;
      for (std::size_t rank = 0; rank + 1 < hits.size(); ++rank) {
        // Rounding may order documents of mathematically equal scores differently; clear differences it may not.
        const bool clear = expected[rank].second - expected[rank + 1].second > 1e-9 &&
                           (rank == 0 || expected[rank - 1].second - expected[rank].second > 1e-9);
        if (clear) {
          EXPECT_EQ(hits[rank].document, expected[rank].first);
        }
      }
    }
  }
}

TEST(Bm25, EqualsLucenesArithmeticToTheBitOnRandomCorpora) {
  for (std::uint64_t trial = 0; trial < std::uint64_t{testing::trials(60)}; ++trial) {
    RandomStream random(derive_seed(4, "lucene_bm25", trial));
    std::vector<std::vector<std::string>> documents(1 + random.below(60));
    std::vector<std::string> texts;
    for (auto& document : documents) texts.push_back(join(document = random_words(random, 120, 40)));
    const double k1 = random.uniform() * 2, b = random.uniform();
    const Bm25Index index(texts, {.k1 = k1, .b = b, .arithmetic = Bm25Arithmetic::Lucene});
    for (int i = 0; i < 10; ++i) {
      // Words of one query are added in its order, here as there.
      const auto query = random_words(random, 6, 40);
      const int k = static_cast<int>(random.below(12));
      const auto expected =
          reference::lucene_bm25_top(documents, query, k, static_cast<float>(k1), static_cast<float>(b));
      const auto hits = index.search(join(query), k);
      ASSERT_EQ(hits.size(), expected.size());
      for (std::size_t rank = 0; rank < hits.size(); ++rank) {
        EXPECT_EQ(hits[rank].document, expected[rank].first) << "trial " << trial << " rank " << rank;
        EXPECT_EQ(hits[rank].score, expected[rank].second) << "trial " << trial << " rank " << rank;
      }
    }
  }
}

TEST(Bm25, AnswersSeveralThreadsAsItAnswersOne) {
  RandomStream random(5);
  std::vector<std::string> texts, queries;
  for (int i = 0; i < 300; ++i) texts.push_back(join(random_words(random, 20, 100)));
  for (int i = 0; i < 200; ++i) queries.push_back(join(random_words(random, 5, 100)));
  const Bm25Index index(texts, {});
  const auto answer_all = [&] {
    std::vector<std::vector<SearchHit>> answers;
    for (const auto& query : queries) answers.push_back(index.search(query, 4));
    return answers;
  };
  const auto alone = answer_all();
  std::vector<std::vector<std::vector<SearchHit>>> together(3);
  std::vector<std::thread> threads;
  for (auto& answers : together) threads.emplace_back([&] { answers = answer_all(); });
  for (auto& thread : threads) thread.join();
  for (const auto& answers : together) EXPECT_EQ(answers, alone);
}

}  // namespace
}  // namespace carnot
