#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "carnot/core/base/file.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "testing/invented_and_published.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using Words = std::vector<std::string>;
using IndexRow = nlohmann::json;

TEST(PorterStemmer, TakesSuffixesOff) {
  // From Porter's paper, and what his two later changes make different.
  const std::unordered_map<std::string, std::string> stems = {{"caresses", "caress"},
                                                              {"ponies", "poni"},
                                                              {"caress", "caress"},
                                                              {"cats", "cat"},
                                                              {"feed", "feed"},
                                                              {"agreed", "agre"},
                                                              {"plastered", "plaster"},
                                                              {"bled", "bled"},
                                                              {"motoring", "motor"},
                                                              {"sing", "sing"},
                                                              {"conflated", "conflat"},
                                                              {"troubled", "troubl"},
                                                              {"sized", "size"},
                                                              {"hopping", "hop"},
                                                              {"tanned", "tan"},
                                                              {"falling", "fall"},
                                                              {"hissing", "hiss"},
                                                              {"fizzed", "fizz"},
                                                              {"failing", "fail"},
                                                              {"filing", "file"},
                                                              {"happy", "happi"},
                                                              {"sky", "sky"},
                                                              {"relational", "relat"},
                                                              {"conditional", "condit"},
                                                              {"vietnamization", "vietnam"},
                                                              {"operator", "oper"},
                                                              {"feudalism", "feudal"},
                                                              {"callousness", "callous"},
                                                              {"sensitiviti", "sensit"},
                                                              {"triplicate", "triplic"},
                                                              {"formative", "form"},
                                                              {"electriciti", "electr"},
                                                              {"hopeful", "hope"},
                                                              {"goodness", "good"},
                                                              {"revival", "reviv"},
                                                              {"airliner", "airlin"},
                                                              {"adjustable", "adjust"},
                                                              {"replacement", "replac"},
                                                              {"adoption", "adopt"},
                                                              {"homologou", "homolog"},
                                                              {"effective", "effect"},
                                                              {"probate", "probat"},
                                                              {"rate", "rate"},
                                                              {"cease", "ceas"},
                                                              {"controll", "control"},
                                                              {"roll", "roll"},
                                                              {"generalizations", "gener"},
                                                              {"oscillators", "oscil"},
                                                              {"possibly", "possibl"},
                                                              {"apology", "apolog"},
                                                              {"as", "as"},
                                                              {"s", "s"}};
  for (const auto& [word, stem] : stems) EXPECT_EQ(porter_stem(word), stem) << word;
}

TEST(PorterStemmer, CountsLettersRatherThanBytes) {
  EXPECT_EQ(porter_stem("\u00E9s"), "\u00E9s") << "two letters stay";
  EXPECT_EQ(porter_stem("caf\u00E9s"), "caf\u00E9");
  EXPECT_EQ(porter_stem("\xffs"), "\xffs");
}

TEST(LuceneAnalyzer, BoundsWordsAsUnicodeDoes) {
  EXPECT_EQ(lucene_english_words("finish/frame 3.5\" a.b.c d_e 1,000;2 x,y"),
            (Words{"finish", "frame", "3.5", "a.b.c", "d_e", "1,000;2", "x", "y"}));
  EXPECT_EQ(lucene_english_words("u.s.a. can't b:c 2:3 __ _x"), (Words{"u.s.a", "can't", "b:c", "2", "3", "_x"}));
  EXPECT_EQ(lucene_english_words("\u68C9 \u68C9\u5E03\u3042 \u30B3\u30C3\u30C8"),
            (Words{"\u68C9", "\u68C9", "\u5E03", "\u3042", "\u30B3\u30C3\u30C8"}));
  EXPECT_EQ(lucene_english_words("\u00A9\u00AE \u2605\u2122x"), (Words{"\u00A9", "\u00AE", "\u2605", "\u2122", "x"}));
  EXPECT_TRUE(lucene_english_words(" - \uFF9F \u00BD \xff ").empty());
}

TEST(LuceneAnalyzer, CutsWordsLongerThan255Characters) {
  const auto words = lucene_english_words(std::string(300, 'x') + " y");
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0].size(), 255u);
  EXPECT_EQ(words[1].size(), 45u);
}

TEST(LuceneAnalyzer, DropsPossessivesCaseAndStopWordsBeforeItStems) {
  EXPECT_EQ(lucene_english_words("The Men's and WOMEN\u2019S shirts are for Mike's"),
            (Words{"men", "women", "shirt", "mike"}));
  EXPECT_EQ(lucene_english_words("THIS that'S ITS"), (Words{"it"})) << "its is no stop word, but it is its stem";
}

/// Products of WebShop, with what Lucene's index of them holds: of invented ones (tools/golden/webshop.py), or of the
/// 1000 published ones, sorted by ASIN, as WebShop lists equal scores.
struct IndexedProducts {
  std::vector<std::string> ids, texts;
  std::vector<Words> words;
  IndexRow totals;
  std::map<std::string, int> lengths;        ///< as Lucene stores them, rounded
  std::map<std::string, int> exact_lengths;  ///< where they are known
};

IndexedProducts products_of(const std::string& file) {
  const std::string rows = read_maybe_compressed(file).value();
  std::map<std::string, std::string> texts;
  for (const auto line : split_lines(rows)) {
    const IndexRow row = IndexRow::parse(line);
    texts.emplace(row.at("id"), row.at("contents"));
  }
  IndexedProducts products;
  for (auto& [id, text] : texts) {
    products.ids.push_back(id);
    products.texts.push_back(text);
    products.words.push_back(lucene_english_words(text));
  }
  return products;
}

IndexedProducts invented_products() {
  IndexedProducts products = products_of(recorded_path("webshop/products.jsonl.xz"));
  products.totals = IndexRow::parse(read_file(recorded_path("webshop/index.json")).value());
  for (const IndexRow& one : products.totals.at("lengths")) products.lengths[one.at(0)] = one.at(1);
  return products;
}

IndexedProducts published_products() {
  IndexedProducts products = products_of(published_path("webshop/products.jsonl.xz"));
  products.totals = IndexRow::parse(read_file(published_path("webshop/index_stats.json")).value());
  const std::string lengths = read_file(published_path("webshop/doc_lengths.jsonl")).value();
  for (const auto line : split_lines(lengths)) {
    const IndexRow row = IndexRow::parse(line);
    products.lengths[row.at("asin")] = row.at("quantised_length");
    products.exact_lengths[row.at("asin")] = row.at("length");
  }
  return products;
}

class LuceneIndex : public testing::InventedAndPublished {
 protected:
  void SetUp() override {
    InventedAndPublished::SetUp();
    if (!IsSkipped()) products_ = published() ? published_products() : invented_products();
  }
  IndexedProducts products_{};
};
INSTANTIATE_TEST_SUITE_P(Data, LuceneIndex, ::testing::Bool(), testing::data_name);

TEST_P(LuceneIndex, HasTheWordsThatTheAnalyzerFinds) {
  std::size_t total = 0, distinct_in_documents = 0;
  std::unordered_set<std::string> terms;
  for (const Words& words : products_.words) {
    total += words.size();
    distinct_in_documents += std::unordered_set<std::string>(words.begin(), words.end()).size();
    terms.insert(words.begin(), words.end());
  }
  EXPECT_EQ(products_.words.size(), products_.totals.at("doc_count"));
  EXPECT_EQ(total, products_.totals.at("sum_total_term_freq"));
  EXPECT_EQ(distinct_in_documents, products_.totals.at("sum_doc_freq"));
  EXPECT_EQ(terms.size(), products_.totals.at("num_terms"));
}

TEST_P(LuceneIndex, CountsEveryDocumentsWordsAsTheAnalyzerDoes) {
  ASSERT_EQ(products_.lengths.size(), products_.ids.size());
  for (std::size_t i = 0; i < products_.ids.size(); ++i) {
    const std::string& id = products_.ids[i];
    const int length = static_cast<int>(products_.words[i].size());
    EXPECT_EQ(products_.lengths.at(id), lucene_length(length)) << id;
    if (published()) {
      EXPECT_EQ(products_.exact_lengths.at(id), length) << id;
    }
  }
}

Bm25Index searched(const IndexedProducts& products) {
  return {products.texts, {.k1 = 0.9, .b = 0.4, .arithmetic = Bm25Arithmetic::Lucene}, lucene_english_words};
}

TEST(LuceneScores, AreEqualToTheBit) {
  const IndexedProducts products = invented_products();
  const Bm25Index index = searched(products);
  for (const IndexRow& search : products.totals.at("searches")) {
    const auto found = index.search(search.at("query").get<std::string>(), 50);
    ASSERT_EQ(found.size(), search.at("hits").size()) << search.at("query");
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(products.ids[static_cast<std::size_t>(found[i].document)], search["hits"][i].at(0));
      EXPECT_EQ(found[i].score, search["hits"][i].at(1).get<double>());
    }
  }
}

TEST(LuceneScores, AreEqualOverThePublishedIndex) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const IndexedProducts products = published_products();
  const Bm25Index index = searched(products);
  const auto best = index.search("machine wash men's t-shirts with long sleeve", 10);
  Words ids;
  for (const SearchHit& hit : best) ids.push_back(products.ids[static_cast<std::size_t>(hit.document)]);
  EXPECT_EQ(ids, (Words{"B09QQP3356", "B09Q8RD8YN", "B09QGK5XHZ", "B09QQJJ3KM", "B09S3BN15C", "B09ND9DP7J",
                        "B09T756KQ5", "B09Q67H373", "B09R9YCM6R", "B09KLQLLT2"}));
  EXPECT_NEAR(best.at(0).score, 13.44140, 5e-6);

  const auto hoodies = index.search("women hooded sweatshirt vintage camo large machine wash cold", 3);
  const std::vector<std::pair<std::string, double>> recorded = {
      {"B01HQTWL6S", 13.84295}, {"B09QQP3356", 11.59698}, {"B09KP78G37", 9.45091}};
  ASSERT_EQ(hoodies.size(), recorded.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_EQ(products.ids[static_cast<std::size_t>(hoodies[i].document)], recorded[i].first);
    EXPECT_NEAR(hoodies[i].score, recorded[i].second, 5e-6);
  }
}

}  // namespace
}  // namespace carnot
