#include "carnot/retrieval/bm25/index_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/retrieval/bm25/index_builder.h"
#include "carnot/retrieval/bm25/postings_block.h"
#include "reference/bm25.h"
#include "testing/missing.h"
#include "testing/paths.h"
#include "testing/trials.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::trials;

/// A folder for the files of one test.
class IndexFiles : public ::testing::Test {
 protected:
  IndexFiles() { fs::create_directories(folder_); }
  ~IndexFiles() override { fs::remove_all(folder_); }

  fs::path write_passages(const std::vector<std::string>& texts) const {
    std::ofstream out(source());
    for (const std::string& text : texts) out << "{\"contents\": \"" << text << "\"}\n";
    return source();
  }
  fs::path source() const { return folder_ / "passages.jsonl"; }
  fs::path index() const { return folder_ / "passages.jsonl.bm25"; }

  std::shared_ptr<const Bm25File> build(const IndexBuildOptions& options) const {
    const Status built = build_index_file(source(), index(), options);
    EXPECT_TRUE(built.ok()) << (built.ok() ? "" : built.error().message);
    return Bm25File::open(index()).value();
  }

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) /
                     ("carnot_index_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
                      "_" + std::to_string(::getpid()));
};

/// Few words, some in nearly every text and some in one: every kind of list of postings.
std::vector<std::string> random_texts(std::size_t count, RandomStream& random) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text;
    for (auto left = random.below(60); left > 0; --left) {
      const double draw = random.uniform();
      text += "w" + std::to_string(static_cast<int>(400 * draw * draw * draw)) + " ";
    }
    texts.push_back(text);
  }
  return texts;
}

std::string random_query(RandomStream& random) {
  std::string query;
  for (auto left = 1 + random.below(9); left > 0; --left) {
    const double draw = random.uniform();
    query += "w" + std::to_string(static_cast<int>(410 * draw * draw)) + " ";
  }
  return query;
}

IndexBuildOptions plain_words() { return {.words = IndexWords::Alphanumeric}; }

TEST_F(IndexFiles, RankAndScoreAsTheIndexInMemoryDoesToTheBit) {
  RandomStream random(1);
  for (const std::size_t count : {1, 7, 300, 5000}) {
    const auto texts = random_texts(count, random);
    write_passages(texts);
    const Bm25Options options{.k1 = 1.2, .b = 0.75, .arithmetic = Bm25Arithmetic::Lucene};
    auto build_options = plain_words();
    build_options.k1 = options.k1;
    build_options.b = options.b;
    const auto file = build(build_options);
    const Bm25Index memory(texts, options);
    ASSERT_EQ(file->num_passages(), memory.num_documents());
    ASSERT_TRUE(file->verify().ok());
    for (int i = 0; i < trials(200); ++i) {
      const std::string query = random_query(random);
      const int k = 1 + static_cast<int>(random.below(20));
      EXPECT_EQ(file->search(query, k), memory.search(query, k)) << count << " texts, best " << k << ": " << query;
    }
    for (std::size_t i = 0; i < texts.size(); i += 97)
      EXPECT_EQ(file->passage(static_cast<std::int64_t>(i)).contents, texts[i]);
  }
}

TEST_F(IndexFiles, RankAndScoreAsTheSlowReference) {
  RandomStream random(2);
  const auto texts = random_texts(150, random);
  write_passages(texts);
  const auto file = build(plain_words());
  std::vector<std::vector<std::string>> documents;
  for (const std::string& text : texts) documents.push_back(alphanumeric_words(text));
  for (int i = 0; i < trials(12); ++i) {
    const std::string query = random_query(random);
    std::vector<SearchHit> expected;
    for (const auto& [document, score] :
         reference::lucene_bm25_top(documents, alphanumeric_words(query), 5, 0.9f, 0.4f))
      expected.push_back({.document = document, .score = score});
    EXPECT_EQ(file->search(query, 5), expected) << query;
  }
}

TEST_F(IndexFiles, AreTheSameWhateverTheMemoryAndTheThreads) {
  RandomStream random(3);
  write_passages(random_texts(trials(20'000), random));
  build(plain_words());
  const std::string whole = read_file(index()).value();
  auto options = plain_words();
  options.memory = 1 << 16;
  options.threads = 3;
  build(options);
  EXPECT_TRUE(read_file(index()).value() == whole);
}

TEST_F(IndexFiles, AreTheSameAfterABuildThatWasStoppedAgainAndAgain) {
  RandomStream random(4);
  write_passages(random_texts(20'000, random));
  build(plain_words());
  const std::string whole = read_file(index()).value();
  fs::remove(index());
  int stops = 0;
  std::uint64_t last = 0;
  for (;; ++stops) {
    const Status built = build_index_file(source(), index(), plain_words(), [&](const IndexProgress& now) {
      EXPECT_GE(now.passages, last) << "nothing is read twice";
      const bool more = now.passages == last;
      last = now.passages;
      return more || now.merging;
    });
    if (built.ok()) break;
    EXPECT_THAT(built.error().message, HasSubstr("the same call continues from there"));
    EXPECT_FALSE(fs::exists(index()));
    ASSERT_LT(stops, 100);
  }
  EXPECT_GE(stops, 3);
  EXPECT_TRUE(read_file(index()).value() == whole);
  EXPECT_FALSE(fs::exists(index().string() + ".partial"));
}

TEST_F(IndexFiles, CutShortAnywhereAreRefused) {
  RandomStream random(5);
  write_passages(random_texts(300, random));
  build(plain_words());
  const std::string whole = read_file(index()).value();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 3) {
    std::ofstream(index(), std::ios::binary) << whole.substr(0, bytes);
    const auto opened = Bm25File::open(index());
    ASSERT_FALSE(opened.ok()) << bytes;
    EXPECT_THAT(opened.error().message, HasSubstr(index().string() + ": "));
  }
  std::ofstream(index(), std::ios::binary) << whole << "x";
  EXPECT_THAT(Bm25File::open(index()).error().message, HasSubstr("written into"));
}

TEST_F(IndexFiles, DamagedAnywhereAreRefusedOrSayThatTheyAreDamagedOrAnswer) {
  RandomStream random(6);
  write_passages(random_texts(600, random));
  build(plain_words());
  const std::string whole = read_file(index()).value();
  int damaged = 0;
  for (int i = 0; i < trials(500); ++i) {
    std::string bytes = whole;
    for (auto flips = 1 + random.below(4); flips > 0; --flips)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    std::ofstream(index(), std::ios::binary) << bytes;
    const auto opened = Bm25File::open(index());
    if (!opened.ok()) continue;
    EXPECT_EQ((*opened)->verify().ok(), bytes == whole);
    try {
      for (const SearchHit& hit : (*opened)->search("w0 w1 w2 w7 w30 w200", 10)) (*opened)->passage(hit.document);
    } catch (const DamagedIndex& error) {
      EXPECT_THAT(error.what(), HasSubstr(index().string() + ": damaged: "));
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 0);
}

TEST_F(IndexFiles, CutShortWhileTheyAreOpenAreDamaged) {
  RandomStream random(7);
  write_passages(random_texts(300, random));
  const auto file = build(plain_words());
  fs::resize_file(index(), 1000);
  EXPECT_THROW(file->search("w1", 3), DamagedIndex);
  EXPECT_THROW(file->passage(3), DamagedIndex);
}

TEST_F(IndexFiles, AreBuiltOnceAndAgainForAnotherSource) {
  write_passages({"one two", "two three"});
  EXPECT_EQ(open_or_build_index(source(), plain_words()).value()->num_passages(), 2);
  const auto written = fs::last_write_time(index());
  EXPECT_EQ(open_or_build_index(source(), plain_words()).value()->num_passages(), 2);
  EXPECT_EQ(fs::last_write_time(index()), written);
  EXPECT_EQ(open_or_build_index(index(), {}).value()->num_passages(), 2) << "its own settings";
  write_passages({"one two", "two three", "four"});
  EXPECT_EQ(open_or_build_index(source(), plain_words()).value()->num_passages(), 3);
  EXPECT_EQ(open_or_build_index(source(), {}).value()->search("THREES", 1).size(), 1u) << "stemmed now";
  fs::resize_file(index(), 300);
  EXPECT_THAT(open_or_build_index(source(), {}).error().message, HasSubstr("remove it"));
}

TEST_F(IndexFiles, SayWhichLinesAreNoPassages) {
  std::ofstream(source()) << "{\"id\": 7, \"title\": \"Lima\", \"text\": \"in Peru\"}\n\n{\"id\": \"a\", "
                             "\"contents\": \"x\"}\n{\"text\": \"y\"}\n";
  const auto file = build({});
  EXPECT_EQ(file->passage(0).id, "7");
  EXPECT_EQ(file->passage(0).contents, "\"Lima\"\nin Peru");
  EXPECT_EQ(file->passage(1).id, "a");
  EXPECT_EQ(file->passage(2).id, "3") << "its line, counted from 0";
  std::ofstream(source()) << "{\"text\": \"x\"}\n{\"text\": 5}\n[1]\n";
  const Status built = build_index_file(source(), index(), {});
  EXPECT_THAT(built.error().message, HasSubstr("passages.jsonl:2: expected a string under contents"));
  EXPECT_THAT(built.error().message, HasSubstr("passages.jsonl:3"));
  std::ofstream(source()) << "\n\n";
  EXPECT_THAT(build_index_file(source(), index(), {}).error().message, HasSubstr("no passages"));
}

TEST_F(IndexFiles, ThatArePipesAndPassagesThatAreAreRefusedAndNotWaitedFor) {
  for (const std::string name : {"pipe.jsonl", "pipe.bm25"}) {
    const fs::path pipe = source().parent_path() / name;
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const auto opened = open_or_build_index(pipe, {}, {});
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().message, HasSubstr(name + ": is not a regular file"));
  }
}

TEST_F(IndexFiles, FindTheGoldPassagesOfQuestions) {
  std::ofstream(source()) << read_file(source_path("tests/tasks/open_qa/titled_passages.jsonl")).value();
  const auto file = open_or_build_index(source(), {}).value();
  const std::string questions = read_file(source_path("tests/tasks/open_qa/oracle.jsonl")).value();
  for (const auto line : split_lines(questions)) {
    const auto row = parse_json(line, "oracle").value();
    const auto hits = file->search(row.at("question").get<std::string>(), 3);
    ASSERT_FALSE(hits.empty()) << row;
    EXPECT_EQ(file->passage(hits[0].document).contents,
              "\"" + row.at("title").get<std::string>() + "\"\n" + row.at("text").get<std::string>());
  }
}

TEST_F(IndexFiles, FindTheGoldPassagesOfRealQuestions) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  std::ofstream(source()) << read_maybe_compressed(published_path("qa/2wiki_corpus.jsonl.xz")).value();
  const auto file = open_or_build_index(source(), {}).value();
  EXPECT_EQ(file->num_passages(), 6119);
  const auto hits = file->search("When did Lothair Ii's mother die?", 3);
  ASSERT_EQ(hits.size(), 3u);
  EXPECT_THAT(std::string(file->passage(hits[0].document).contents), HasSubstr("Lothair II"));
}

TEST(PostingsBlock, HoldsAnyPostings) {
  RandomStream random(8);
  for (int i = 0; i < trials(500); ++i) {
    PostingsBlock block;
    block.size = 1 + random.below(kBlockPostings);
    std::int64_t before = static_cast<std::int64_t>(random.below(1000)) - 1, document = before;
    const std::uint64_t gap = 1 + random.below(std::uint64_t{1} << random.below(24));
    for (std::size_t j = 0; j < block.size; ++j) {
      document += static_cast<std::int64_t>(1 + random.below(gap));
      block.documents[j] = static_cast<std::uint32_t>(document);
      block.counts[j] = static_cast<std::uint32_t>(1 + random.below(std::uint64_t{1} << random.below(20)));
    }
    std::string bytes;
    pack_postings(block, before, bytes);
    bytes.append(kBlockPadding, '\0');
    PostingsBlock read;
    const auto last = block.documents[block.size - 1];
    ASSERT_TRUE(unpack_postings(bytes, before, last, block.size, read));
    EXPECT_TRUE(std::equal(block.documents.begin(), block.documents.begin() + block.size, read.documents.begin()));
    EXPECT_TRUE(std::equal(block.counts.begin(), block.counts.begin() + block.size, read.counts.begin()));
    EXPECT_FALSE(unpack_postings(bytes, before, last + 1, block.size, read));
    EXPECT_FALSE(unpack_postings(std::string_view(bytes).substr(0, bytes.size() - 1), before, last, block.size, read));
  }
}

/// Four significant bits of what exceeds 24 (SmallFloat.intToByte4), without a table.
int with_four_bits(int length) {
  constexpr int kExact = 24;
  if (length < kExact) return length;
  const auto rest = static_cast<unsigned>(length - kExact);
  const int shift = std::max(0, static_cast<int>(std::bit_width(rest)) - 4);
  return kExact + static_cast<int>(rest >> shift << shift);
}

TEST(LuceneNorm, CodesAreTheLengthsThatLuceneReadsBack) {
  for (int length = 0; length < 100'000; ++length) ASSERT_EQ(lucene_length(length), with_four_bits(length)) << length;
  EXPECT_EQ(lucene_length_code(2147483647), 255);
}

}  // namespace
}  // namespace carnot
