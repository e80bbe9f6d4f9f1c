#include "carnot/retrieval/dense/vector_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/retrieval/bm25/index_file.h"
#include "carnot/retrieval/dense/nearest_graph.h"
#include "reference/nearest_vectors.h"
#include "testing/trials.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::trials;

constexpr std::uint64_t kMark = 7;

class VectorFiles : public ::testing::Test {
 protected:
  VectorFiles() { fs::create_directories(folder_); }
  ~VectorFiles() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "some.vectors"; }
  fs::path graph_file() const { return folder_ / "some.graph"; }

  std::shared_ptr<const VectorFile> write(const std::vector<std::vector<float>>& rows) const {
    auto writer = VectorFileWriter::open(file(), static_cast<int>(rows[0].size()), kMark).value();
    for (const auto& row : rows) EXPECT_TRUE(writer.add(row).ok());
    EXPECT_TRUE(writer.finish().ok());
    return VectorFile::open(file()).value();
  }

  std::string problem_with(const std::string& bytes) const {
    std::ofstream(file(), std::ios::binary) << bytes;
    const auto opened = VectorFile::open(file());
    return opened.ok() ? "none" : opened.error().message;
  }

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) /
                     ("carnot_vectors_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
                      "_" + std::to_string(::getpid()));
};

std::vector<std::vector<float>> random_vectors(std::size_t count, std::size_t dimensions, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<std::vector<float>> rows(count, std::vector<float>(dimensions));
  for (auto& row : rows)
    for (float& value : row) value = static_cast<float>(random.normal());
  return rows;
}

/// Changes one byte.
void damage(std::string& bytes, RandomStream& random) {
  char& byte = bytes[random.below(bytes.size())];
  byte = static_cast<char>(byte ^ static_cast<char>(1 + random.below(255)));
}

std::vector<int> rows_of(const std::vector<SearchHit>& hits) {
  std::vector<int> rows;
  for (const SearchHit& hit : hits) rows.push_back(hit.document);
  return rows;
}

TEST_F(VectorFiles, FindTheNearestRowsAsTheSlowReferenceDoesWithAnyNumberOfThreadsAndQueries) {
  const auto rows = random_vectors(9000, 37, 1), queries = random_vectors(5, 37, 2);
  const auto vectors = write(rows);
  EXPECT_EQ(vectors->num_rows(), 9000);
  EXPECT_EQ(vectors->source_mark(), kMark);
  EXPECT_TRUE(vectors->verify().ok());
  ThreadPool one(1), three(3);
  const auto found = vectors->search(queries, 10, one);
  EXPECT_EQ(vectors->search(queries, 10, three), found);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    EXPECT_EQ(vectors->search(std::span(queries).subspan(q, 1), 10, one)[0], found[q]);
    const auto expected = reference::nearest_vectors(rows, queries[q], 10);
    ASSERT_EQ(found[q].size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[q][i].document, expected[i].first);
      EXPECT_NEAR(found[q][i].score, expected[i].second, 1e-4);
    }
  }
}

TEST_F(VectorFiles, OrderEqualScoresByRowAndPutWhatIsNoNumberLast) {
  std::vector<std::vector<float>> rows(5000, {1, 0});
  rows[1] = {2, 0};
  rows[2] = {std::numeric_limits<float>::quiet_NaN(), 0};
  const auto vectors = write(rows);
  ThreadPool three(3);
  const std::vector<std::vector<float>> query{{1, 1}};
  EXPECT_EQ(rows_of(vectors->search(query, 4, three)[0]), (std::vector{1, 0, 3, 4}));
  EXPECT_EQ(vectors->search(query, 9000, three)[0].back().document, 2);
  EXPECT_TRUE(vectors->search(query, 0, three)[0].empty());
}

TEST_F(VectorFiles, GoOnWhereAWriterWasStopped) {
  const auto rows = random_vectors(50, 8, 3);
  write(rows);
  const std::string whole = read_file(file()).value();
  {
    auto writer = VectorFileWriter::open(file(), 8, kMark).value();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(writer.add(rows[static_cast<std::size_t>(i)]).ok());
    ASSERT_TRUE(writer.sync().ok());
    ASSERT_TRUE(writer.add(rows[20]).ok()) << "not synced: added again below";
    EXPECT_THAT(VectorFileWriter::open(file(), 8, kMark).error().message, HasSubstr("another process is building it"));
  }
  EXPECT_THAT(VectorFileWriter::open(file(), 8, kMark + 1).error().message,
              HasSubstr("holds 20 vectors of other passages or of another encoder; remove it"));
  auto writer = VectorFileWriter::open(file(), 8, kMark).value();
  EXPECT_EQ(writer.num_rows(), 20);
  for (auto i = static_cast<std::size_t>(writer.num_rows()); i < rows.size(); ++i)
    ASSERT_TRUE(writer.add(rows[i]).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_TRUE(read_file(file()).value() == whole);
  EXPECT_FALSE(fs::exists(file().string() + ".partial"));
}

TEST_F(VectorFiles, CutShortOrOfAnotherVersionAreRefused) {
  write(random_vectors(50, 8, 4));
  const std::string whole = read_file(file()).value();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 3)
    EXPECT_NE(problem_with(whole.substr(0, bytes)), "none") << bytes;
  EXPECT_THAT(problem_with(whole.substr(0, 200)), HasSubstr(file().string() + ": holds 200 of 1664 bytes"));
  EXPECT_THAT(problem_with(whole + "x"), HasSubstr("written into"));
  EXPECT_THAT(problem_with("no vectors"), HasSubstr("is not a file of vectors"));
  std::string other = whole;
  other[8] = 2;
  EXPECT_THAT(problem_with(other), HasSubstr("has version 2, expected 1"));
  other = whole;
  other[17] = 1;
  EXPECT_THAT(problem_with(other), HasSubstr("damaged: the head"));
  EXPECT_EQ(problem_with(whole), "none");
}

TEST_F(VectorFiles, DamagedAnywhereAreRefusedOrFailTheirChecksum) {
  write(random_vectors(50, 8, 5));
  const std::string whole = read_file(file()).value();
  RandomStream random(6);
  for (int i = 0; i < trials(300); ++i) {
    std::string bytes = whole;
    damage(bytes, random);
    if (problem_with(bytes) != "none") continue;
    EXPECT_THAT(VectorFile::open(file()).value()->verify().error().message, HasSubstr("damaged: the vectors"));
  }
}

TEST_F(VectorFiles, CutShortWhileTheyAreOpenAreDamaged) {
  const auto vectors = write(random_vectors(50, 8, 4));
  fs::resize_file(file(), 200);
  ThreadPool one(1);
  EXPECT_THROW(vectors->search(random_vectors(1, 8, 5), 3, one), DamagedIndex);
  EXPECT_THROW(vectors->row(3), DamagedIndex);
}

TEST_F(VectorFiles, AreSearchedByAGraphThatMissesFewOfTheNearest) {
  const auto rows = random_vectors(testing::kSanitized ? 1000 : 3000, 24, 7), queries = random_vectors(40, 24, 8);
  const auto vectors = write(rows);
  const auto graph = NearestGraph::open_or_build(graph_file(), vectors).value();
  const auto again = NearestGraph::open_or_build(graph_file(), vectors).value();
  ThreadPool one(1);
  const auto exact = vectors->search(queries, 10, one);
  int found = 0;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto hits = graph->search(queries[q], 10);
    ASSERT_EQ(hits.size(), 10u);
    EXPECT_EQ(again->search(queries[q], 10), hits) << "read from its file";
    for (const SearchHit& hit : hits)
      if (std::ranges::find(exact[q], hit) != exact[q].end()) ++found;
  }
  EXPECT_GE(found, 380) << "of 400, with the scores of the exact search";
}

TEST_F(VectorFiles, HaveTheSameGraphAfterABuildThatWasStoppedAgainAndAgain) {
  constexpr int kRows = testing::kSanitized ? 1300 : 2600;
  const auto vectors = write(random_vectors(kRows, 8, 9));
  ASSERT_TRUE(NearestGraph::open_or_build(graph_file(), vectors).ok());
  const std::string whole = read_file(graph_file()).value();
  fs::remove(graph_file());
  int stops = 0;
  std::int64_t last = 0;
  for (;; ++stops) {
    const auto built = NearestGraph::open_or_build(graph_file(), vectors, [&](std::int64_t rows) {
      EXPECT_GT(rows, last) << "no row twice";
      last = rows;
      return false;
    });
    if (built.ok()) break;
    EXPECT_THAT(built.error().message, HasSubstr("the same call continues from there"));
    EXPECT_FALSE(fs::exists(graph_file()));
    ASSERT_LT(stops, 100);
  }
  EXPECT_GE(stops, kRows / 650);
  EXPECT_TRUE(read_file(graph_file()).value() == whole);
  EXPECT_FALSE(fs::exists(graph_file().string() + ".partial"));
}

TEST_F(VectorFiles, HaveAGraphThatIsRefusedWhereItIsNotWhatWasWritten) {
  const auto vectors = write(random_vectors(300, 8, 10));
  const auto problem = [&] {
    const auto opened = NearestGraph::open_or_build(graph_file(), vectors);
    return opened.ok() ? std::string("none") : opened.error().message;
  };
  EXPECT_EQ(problem(), "none");
  const std::string whole = read_file(graph_file()).value();
  RandomStream random(11);
  for (int i = 0; i < trials(20); ++i) {
    std::string bytes = whole;
    damage(bytes, random);
    std::ofstream(graph_file(), std::ios::binary) << bytes;
    EXPECT_THAT(problem(), HasSubstr(graph_file().string() + ": damaged"));
  }
  std::ofstream(graph_file(), std::ios::binary) << whole.substr(0, whole.size() - 1);
  EXPECT_THAT(problem(), HasSubstr("damaged"));
  const fs::path description = graph_file().string() + ".json";
  std::ofstream(description) << "{";
  EXPECT_THAT(problem(), HasSubstr(description.string()));
  fs::remove(description);
  EXPECT_EQ(problem(), "none") << "rebuilt";
  EXPECT_TRUE(read_file(graph_file()).value() == whole);
  write(random_vectors(301, 8, 10));
  EXPECT_TRUE(NearestGraph::open_or_build(graph_file(), VectorFile::open(file()).value()).ok())
      << "of other vectors: rebuilt";
  EXPECT_FALSE(read_file(graph_file()).value() == whole);
}

}  // namespace
}  // namespace carnot
