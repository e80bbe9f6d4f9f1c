#include "carnot/retrieval/dense/dense_retriever.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/retrieval/bm25/index_builder.h"
#include "reference/nearest_vectors.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kDimensions = 12;
constexpr int kPassages = 700;

/// A vector of length 1 that the text alone decides.
std::vector<float> vector_of(const std::string& text) {
  RandomStream random(derive_seed(1, text));
  std::vector<float> vector;
  double square = 0;
  for (int i = 0; i < kDimensions; ++i) {
    vector.push_back(static_cast<float>(random.normal()));
    square += double{vector.back()} * double{vector.back()};
  }
  for (float& value : vector) value = static_cast<float>(double{value} / std::sqrt(square));
  return vector;
}

class DenseRetrievers : public ::testing::Test {
 protected:
  DenseRetrievers() {
    fs::create_directories(folder_);
    std::ofstream out(folder_ / "passages.jsonl");
    for (int i = 0; i < kPassages; ++i) out << "{\"contents\": \"passage " << i << "\"}\n";
    out.close();
    index_ = open_or_build_index(folder_ / "passages.jsonl", {}).value();
  }
  ~DenseRetrievers() override { fs::remove_all(folder_); }

  fs::path index_file() const { return folder_ / "passages.jsonl.bm25"; }
  fs::path vectors_file() const { return vectors_path_of(index_file()); }

  TextEncoder encoder(const std::string& mark = "a") {
    return {.encode =
                [this](std::span<const std::string> texts) {
                  encoded_ += static_cast<int>(texts.size());
                  std::vector<std::vector<float>> vectors;
                  for (const std::string& text : texts) vectors.push_back(vector_of(text));
                  return vectors;
                },
            .dimensions = kDimensions,
            .mark = mark};
  }
  std::shared_ptr<const Retriever> open(const DenseOptions& options = {}, const std::string& mark = "a") {
    return open_dense_retriever(index_, index_file(), encoder(mark), options).value();
  }
  std::string problem(const DenseOptions& options, const std::string& mark = "a") {
    const auto opened = open_dense_retriever(index_, index_file(), encoder(mark), options);
    return opened.ok() ? "none" : opened.error().message;
  }
  static std::vector<std::string> slow_best(const std::string& query, int count, const std::string& prefix = "") {
    std::vector<std::vector<float>> rows;
    for (int i = 0; i < kPassages; ++i) rows.push_back(vector_of(prefix + "passage " + std::to_string(i)));
    std::vector<std::string> ids;
    for (const auto& [row, score] : reference::nearest_vectors(rows, vector_of(query), count))
      ids.push_back(std::to_string(row));
    return ids;
  }
  static std::vector<std::string> ids_of(const RetrievedPassages& passages) {
    std::vector<std::string> ids;
    for (const RetrievedPassage& passage : passages) ids.push_back(passage.id);
    return ids;
  }
  static Tool::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

  int encoded_ = 0;
  std::shared_ptr<const Bm25File> index_;

 private:
  fs::path folder_ = fs::path(::testing::TempDir()) /
                     ("carnot_dense_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) +
                      "_" + std::to_string(::getpid()));
};

TEST_F(DenseRetrievers, FindTheNearestPassagesExactlyAndWithTheGraph) {
  const std::vector<std::string> queries{"passage 7", "another", "a third"};
  const auto exact = open()->retrieve(queries, 5, soon());
  ASSERT_EQ(exact.size(), 3u);
  for (std::size_t i = 0; i < queries.size(); ++i) EXPECT_EQ(ids_of(exact[i]), slow_best(queries[i], 5));
  EXPECT_EQ(exact[0][0].contents, "passage 7");
  EXPECT_NEAR(exact[0][0].score, 1, 1e-6);
  EXPECT_EQ(open({.threads = 3})->retrieve(queries, 5, soon()), exact);
  // With 200 candidates of 700 rows a graph misses next to nothing.
  EXPECT_EQ(open({.approximate = true})->retrieve(queries, 5, soon()), exact);
  EXPECT_EQ(open({.approximate = true, .threads = 2})->retrieve(queries, 5, soon()), exact);
}

TEST_F(DenseRetrievers, EncodeEachPassageOnceAndKeepItsVectorFromAnotherEncoder) {
  open();
  EXPECT_EQ(encoded_, kPassages);
  open({.approximate = true});
  open({.approximate = true});
  EXPECT_EQ(encoded_, kPassages);
  const std::string held =
      "holds vectors of other passages, of another encoder or with another prefix; remove the file";
  EXPECT_THAT(problem({}, "b"), HasSubstr(vectors_file().string() + ": " + held));
  EXPECT_THAT(problem({.passage_prefix = "passage: "}), HasSubstr(held));
  EXPECT_EQ(problem({.query_prefix = "query: "}), "none") << "no vector of a passage depends on it";
  fs::remove(vectors_file());
  const std::vector<std::string> query{"x"};
  const auto found = open({.query_prefix = "query: ", .passage_prefix = "passage: "}, "b")->retrieve(query, 3, soon());
  EXPECT_EQ(ids_of(found[0]), slow_best("query: x", 3, "passage: "));
  EXPECT_EQ(encoded_, 2 * kPassages + 1);
}

TEST_F(DenseRetrievers, GoOnWhereABuildWasStopped) {
  const auto stop_at = [this](std::int64_t passages, const std::string& mark) {
    return open_dense_retriever(index_, index_file(), encoder(mark), {},
                                [=](const DenseProgress& now) { return now.passages < passages; })
        .error()
        .message;
  };
  EXPECT_THAT(stop_at(300, "a"), HasSubstr("the same call continues from there"));
  EXPECT_LT(encoded_, kPassages);
  EXPECT_THAT(stop_at(600, "b"), HasSubstr("vectors of other passages or of another encoder; remove it"));
  EXPECT_THAT(stop_at(600, "a"), HasSubstr("stopped after 608 passages"));
  const std::vector<std::string> query{"passage 650"};
  EXPECT_EQ(open()->retrieve(query, 1, soon())[0][0].id, "650");
  EXPECT_EQ(encoded_, kPassages + 1) << "no passage twice";
}

TEST_F(DenseRetrievers, SayWhichFileIsDamaged) {
  open({.approximate = true});
  const fs::path graph = graph_path_of(index_file());
  std::string bytes = read_file(graph).value();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(graph, std::ios::binary) << bytes;
  EXPECT_THAT(problem({.approximate = true}), HasSubstr(graph.string() + ": damaged"));
  EXPECT_EQ(problem({}), "none") << "an exact search does without";
  fs::remove(graph);
  EXPECT_EQ(problem({.approximate = true}), "none") << "rebuilt";

  const std::string whole = read_file(vectors_file()).value();
  bytes = whole;
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(vectors_file(), std::ios::binary) << bytes;
  EXPECT_EQ(problem({}), "none") << "not looked for";
  EXPECT_THAT(problem({.verify = true}),
              HasSubstr(vectors_file().string() + ": damaged: the vectors; remove the file"));
  std::ofstream(vectors_file(), std::ios::binary) << whole;
  EXPECT_EQ(problem({.verify = true}), "none");

  const auto retriever = open();
  fs::resize_file(vectors_file(), 1000);
  EXPECT_THROW(retriever->retrieve(std::vector<std::string>{"x"}, 1, soon()), RetrieverFailure);
  EXPECT_THAT(problem({}), HasSubstr(vectors_file().string() + ": holds 1000 of"));
}

TEST_F(DenseRetrievers, FailInTimeWhereTheEncoderIsBusy) {
  std::atomic<bool> begun = false, ends = false;
  auto waiting = encoder();
  waiting.encode = [&, plain = waiting.encode](std::span<const std::string> texts) {
    begun = texts[0] == "waits";
    while (begun && !ends) std::this_thread::yield();
    return plain(texts);
  };
  const auto retriever = open_dense_retriever(index_, index_file(), waiting, {}).value();
  std::thread first([&] { retriever->retrieve(std::vector<std::string>{"waits"}, 1, soon()); });
  while (!begun) std::this_thread::yield();
  const auto now = std::chrono::steady_clock::now();
  EXPECT_THROW(retriever->retrieve(std::vector<std::string>{"x"}, 1, now), RetrieverFailure);
  ends = true;
  first.join();
}

TEST(TextEncoders, AreOpenedByWhatTheProgramSetAndElseRefused) {
  EXPECT_THAT(open_text_encoder("model").error().message,
              HasSubstr("model: this program computes no sentence encoders"));
  set_text_encoder_opener([](const std::string& model) -> Result<TextEncoder> { return TextEncoder{.mark = model}; });
  EXPECT_EQ(open_text_encoder("model").value().mark, "model");
  EXPECT_TRUE(set_text_encoder_opener({}));
  EXPECT_FALSE(open_text_encoder("model").ok());
}

}  // namespace
}  // namespace carnot
