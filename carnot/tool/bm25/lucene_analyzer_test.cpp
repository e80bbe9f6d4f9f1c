#include "carnot/tool/bm25/lucene_analyzer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "carnot/base/file.h"
#include "carnot/tool/bm25/bm25.h"
#include "carnot/tool/bm25/porter_stemmer.h"
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

/// The 1000 products of WebShop that the published Lucene index was built from.
struct PublishedIndex {
  std::vector<std::string> ids, texts;
  std::vector<Words> words;
};

const PublishedIndex& published() {
  static const PublishedIndex index = [] {
    PublishedIndex all;
    const auto text = read_maybe_compressed(data_path("webshop/products.jsonl.xz"));
    EXPECT_TRUE(text.ok()) << text.error().message;
    for (const auto line : split_lines(*text)) {
      const IndexRow row = IndexRow::parse(line);
      all.ids.push_back(row.at("id"));
      all.texts.push_back(row.at("contents"));
      all.words.push_back(lucene_english_words(all.texts.back()));
    }
    return all;
  }();
  return index;
}

TEST(LuceneAnalyzer, FindsTheWordsOfThePublishedIndex) {
  const auto stats = IndexRow::parse(read_file(data_path("webshop/index_stats.json")).value());
  std::size_t total = 0, distinct_in_documents = 0;
  std::unordered_set<std::string> terms;
  for (const Words& words : published().words) {
    total += words.size();
    distinct_in_documents += std::unordered_set<std::string>(words.begin(), words.end()).size();
    terms.insert(words.begin(), words.end());
  }
  EXPECT_EQ(published().words.size(), stats.at("doc_count"));
  EXPECT_EQ(total, stats.at("sum_total_term_freq"));
  EXPECT_EQ(distinct_in_documents, stats.at("sum_doc_freq"));
  EXPECT_EQ(terms.size(), stats.at("num_terms"));
}

TEST(LuceneAnalyzer, CountsEveryDocumentsWordsAsThePublishedIndexDoes) {
  const auto text = read_file(data_path("webshop/doc_lengths.jsonl"));
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto lines = split_lines(*text);
  ASSERT_EQ(lines.size(), published().ids.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const IndexRow row = IndexRow::parse(lines[i]);
    EXPECT_EQ(row.at("asin"), published().ids[i]);
    const int length = static_cast<int>(published().words[i].size());
    EXPECT_EQ(row.at("length"), length) << published().ids[i];
    EXPECT_EQ(row.at("quantised_length"), lucene_length(length)) << published().ids[i];
  }
}

TEST(LuceneAnalyzer, ScoresAsRecordedOverThePublishedIndex) {
  const Bm25Index index(published().texts, {.k1 = 0.9, .b = 0.4, .arithmetic = Bm25Arithmetic::Lucene},
                        lucene_english_words);
  const auto best = index.search("machine wash men's t-shirts with long sleeve", 10);
  Words ids;
  for (const SearchHit& hit : best) ids.push_back(published().ids[static_cast<std::size_t>(hit.document)]);
  EXPECT_EQ(ids, (Words{"B09QQP3356", "B09Q8RD8YN", "B09QGK5XHZ", "B09QQJJ3KM", "B09S3BN15C", "B09ND9DP7J",
                        "B09T756KQ5", "B09Q67H373", "B09R9YCM6R", "B09KLQLLT2"}));
  EXPECT_NEAR(best.at(0).score, 13.44140, 5e-6);

  const auto hoodies = index.search("women hooded sweatshirt vintage camo large machine wash cold", 3);
  const std::vector<std::pair<std::string, double>> recorded = {
      {"B01HQTWL6S", 13.84295}, {"B09QQP3356", 11.59698}, {"B09KP78G37", 9.45091}};
  ASSERT_EQ(hoodies.size(), recorded.size());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_EQ(published().ids[static_cast<std::size_t>(hoodies[i].document)], recorded[i].first);
    EXPECT_NEAR(hoodies[i].score, recorded[i].second, 5e-6);
  }
}

}  // namespace
}  // namespace carnot
