// `carnot retriever` as a program: it builds an index once, answers Search-R1's API, ends on a signal, refuses bad
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/http/client.h"
#include "program.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoPassages =
    "{\"id\": \"7\", \"contents\": \"\\\"Lima\\\"\\nLima is the capital of Peru.\"}\n"
    "{\"title\": \"Quito\", \"text\": \"Quito is the capital of Ecuador.\"}\n";

/// What `POST /retrieve` answers, once there is an answer.
bool retrieve_from(int port, const std::string& body, nlohmann::json& answer) {
  const std::string address = "http://127.0.0.1:" + std::to_string(port) + "/retrieve";
  const auto got = http_exchange({.method = "POST", .url = parse_url(address).value(), .body = body});
  if (!got) return false;
  answer = nlohmann::json::parse(got->body, nullptr, false);
  return true;
}

TEST(RetrieverCommand, ServesPassagesAndTheirIndexAlikeAndEndsWithStatusZero) {
  const ScratchFolder scratch;
  const std::string passages = scratch.write("passages.jsonl", kTwoPassages);
  const auto built = run_carnot({"retriever", passages, "--build", "--verify"});
  EXPECT_EQ(built.exit, 0) << built.err;
  EXPECT_THAT(built.out, HasSubstr("2 passages, 5 words"));
  nlohmann::json answers[2];
  int number = 0;
  for (const std::string& file : {passages, passages + ".bm25"}) {
    const int port = free_port();
    const auto served = interrupt_carnot({"retriever", file, "--port", std::to_string(port)}, [&] {
      return retrieve_from(port, R"({"queries": ["capitals of Peru", "zebra"], "topk": 1, "return_scores": true})",
                           answers[number]);
    });
    EXPECT_EQ(served.exit, 0) << served.err;
    EXPECT_EQ(served.out, "http://127.0.0.1:" + std::to_string(port) + "/retrieve\n");
    ++number;
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0]["result"].size(), 2u);
  EXPECT_EQ(answers[0]["result"][0][0]["document"],
            (nlohmann::json{{"id", "7"}, {"contents", "\"Lima\"\nLima is the capital of Peru."}}));
  EXPECT_TRUE(answers[0]["result"][1].empty());
}

TEST(RetrieverCommand, RanksAsTheToolOnTheCommandLineDoes) {
  const ScratchFolder scratch;
  const std::string passages = scratch.write("passages.jsonl", kTwoPassages);
  const auto by_hand = run_carnot({"tool", "bm25", passages, "--json"},
                                  "{\"query\": \"capitals of Peru\", \"topk\": 1}\n{\"query\": \"zebra\"}\n");
  EXPECT_EQ(by_hand.exit, 0) << by_hand.err;
  const int port = free_port();
  nlohmann::json answer;
  interrupt_carnot({"retriever", passages, "--port", std::to_string(port)}, [&] {
    return retrieve_from(port, R"({"queries": ["capitals of Peru", "zebra"], "topk": 1, "return_scores": true})",
                         answer);
  });
  const auto end = by_hand.out.find('\n');
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(by_hand.out.substr(0, end))["result"], answer["result"][0]);
  EXPECT_EQ(by_hand.out.substr(end + 1), "{\"result\":[]}\n");
}

TEST(RetrieverCommand, AnInvalidLineIsAnsweredWithTheProblemAndTheNextOneIsAnsweredToo) {
  const ScratchFolder scratch;
  const std::string passages = scratch.write("passages.jsonl", kTwoPassages);
  const auto answered =
      run_carnot({"tool", "bm25", passages, "--json"}, "{\"query\": 1}\nnothing\n{\"query\": \"zebra\"}\n");
  EXPECT_EQ(answered.exit, 0) << answered.err;
  std::istringstream lines(answered.out);
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  std::getline(lines, third);
  EXPECT_EQ(first, "{\"error\":\"line 1: query: expected a string\"}");
  EXPECT_THAT(second, HasSubstr("{\"error\":\"line 2"));
  EXPECT_EQ(third, "{\"result\":[]}");
}

TEST(RetrieverCommand, SearchesByVectorsExactlyAndApproximately) {
  const ScratchFolder scratch;
  const std::string passages = scratch.write("passages.jsonl", kTwoPassages);
  const std::string encoder = source_path("tests/golden/sentence_encoder");
  nlohmann::json answers[2];
  for (int approximate = 0; approximate < 2; ++approximate) {
    const int port = free_port();
    std::vector<std::string> arguments{"retriever", passages, "--dense", encoder, "--port", std::to_string(port)};
    if (approximate == 1) arguments.push_back("--approximate");
    const auto served = interrupt_carnot(arguments, [&] {
      return retrieve_from(
          port, R"({"queries": ["\"Lima\" Lima is the capital of Peru."], "topk": 2, "return_scores": true})",
          answers[approximate]);
    });
    EXPECT_EQ(served.exit, 0) << served.err;
  }
  EXPECT_EQ(answers[0], answers[1]);
  ASSERT_EQ(answers[0]["result"][0].size(), 2u);
  EXPECT_EQ(answers[0]["result"][0][0]["document"]["id"], "7") << "a passage is nearest to itself";
  EXPECT_NEAR(answers[0]["result"][0][0]["score"].get<double>(), 1, 1e-5);
  EXPECT_TRUE(std::filesystem::exists(passages + ".bm25.vectors"));
  EXPECT_TRUE(std::filesystem::exists(passages + ".bm25.graph"));
}

TEST(RetrieverCommand, ContinuesEncodingWhereItWasInterrupted) {
  const ScratchFolder scratch;
  std::string rows;
  for (int i = 0; i < 20'000; ++i) rows += "{\"contents\": \"passage " + std::to_string(i) + "\"}\n";
  const std::string passages = scratch.write("passages.jsonl", rows);
  const std::vector<std::string> arguments{"retriever", passages,  "--build",
                                           "--verify",  "--dense", source_path("tests/golden/sentence_encoder")};
  const auto encodes = [](const std::string& err) { return err.find("passages encoded") != std::string::npos; };
  const auto stopped = signal_carnot(arguments, {{.ready = encodes}});
  EXPECT_EQ(stopped.exit, 1);
  EXPECT_THAT(stopped.err, HasSubstr("passages; the same call continues from there"));
  EXPECT_FALSE(std::filesystem::exists(passages + ".bm25.vectors"));
  const auto finished = run_carnot(arguments);
  EXPECT_EQ(finished.exit, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("passages.jsonl.bm25.vectors: continues after"));
  EXPECT_THAT(finished.out, HasSubstr("20000 passages, "));
  EXPECT_THAT(finished.out, HasSubstr("vectors: " + std::to_string(64 + 20'000 * 24 * 4) + " bytes\n"));
}

TEST(RetrieverCommand, SaysWhatIsWrongWithVectorsAndTheirOptions) {
  const ScratchFolder scratch;
  const std::string passages = scratch.write("passages.jsonl", kTwoPassages);
  const std::string encoder = source_path("tests/golden/sentence_encoder");
  const auto alone = run_carnot({"retriever", passages, "--approximate"});
  EXPECT_EQ(alone.exit, 2);
  EXPECT_THAT(alone.err, HasSubstr("expected --dense too"));
  EXPECT_THAT(run_carnot({"retriever", passages, "--dense", scratch.path("nowhere")}).err, HasSubstr("--dense: "));
  EXPECT_FALSE(std::filesystem::exists(passages + ".bm25")) << "the encoder is opened first";
  ASSERT_EQ(run_carnot({"retriever", passages, "--build", "--dense", encoder}).exit, 0);
  const auto prefixed = run_carnot({"retriever", passages, "--build", "--dense", encoder, "--passage-prefix", "p: "});
  EXPECT_EQ(prefixed.exit, 1);
  EXPECT_THAT(prefixed.err, HasSubstr("passages.jsonl.bm25.vectors: holds vectors of other passages"));
  const std::string whole = read_file(passages + ".bm25.vectors").value();
  scratch.write("passages.jsonl.bm25.vectors", whole.substr(0, whole.size() - 1) + "x");
  EXPECT_EQ(run_carnot({"retriever", passages, "--build", "--dense", encoder}).exit, 0);
  const auto damaged = run_carnot({"retriever", passages, "--build", "--verify", "--dense", encoder});
  EXPECT_EQ(damaged.exit, 1);
  EXPECT_THAT(damaged.err, HasSubstr("damaged: the vectors; remove the file"));
}

TEST(RetrieverCommand, SaysWhatIsWrongWithAFile) {
  const ScratchFolder scratch;
  const auto bad = run_carnot({"retriever", scratch.write("bad.jsonl", "{\"text\": 5}\n")});
  EXPECT_EQ(bad.exit, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.jsonl:1: expected a string under contents"));
  const std::string passages = scratch.write("passages.jsonl", kTwoPassages);
  ASSERT_EQ(run_carnot({"retriever", passages, "--build"}).exit, 0);
  const std::string index = read_file(passages + ".bm25").value();
  const auto cut = run_carnot({"retriever", scratch.write("cut.bm25", index.substr(0, index.size() - 1))});
  EXPECT_EQ(cut.exit, 1);
  EXPECT_THAT(cut.err, HasSubstr("it was cut short or written into"));
  EXPECT_EQ(run_carnot({"retriever"}).exit, 2);
}

}  // namespace
}  // namespace carnot::testing
