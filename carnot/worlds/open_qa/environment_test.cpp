#include "carnot/worlds/open_qa/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/retrieval/dense/dense_retriever.h"
#include "carnot/worlds/entries.h"
#include "carnot/worlds/open_qa/protocols.h"
#include "testing/field_settings.h"
#include "testing/local_http_server.h"
#include "testing/missing.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using Settings = std::map<std::string, std::string>;

std::unique_ptr<EnvironmentFactory> open_qa(Settings settings) {
  settings.emplace("task_source", source_path("tests/tasks/open_qa"));
  auto factory = make_open_qa();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  const Status ready = factory->prepare(1);
  EXPECT_TRUE(ready.ok()) << (ready.ok() ? "" : ready.error().message);
  return factory;
}

std::string problem_with(const Settings& settings) {
  auto factory = make_open_qa();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  const Status ready = factory->prepare(1);
  return ready.ok() ? "" : ready.error().message;
}

const RetrievedPassages kFound{{.id = "0", .contents = "\"Lima\"\nLima is in Peru.\n2nd line", .score = 2},
                               {.id = "1", .contents = "no title", .score = 1}};

TEST(SearchR1, SpeaksItsPublishedWords) {
  EXPECT_EQ(
      search_r1_prompt(" who wrote Faust "),
      "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get "
      "new information. After reasoning, if you find you lack some knowledge, you can call a search engine by "
      "<search> query </search> and it will return the top searched results between <information> and "
      "</information>. You can search as many times as your want. If you find no further external knowledge "
      "needed, you can directly provide the answer inside <answer> and </answer>, without detailed illustrations. "
      "For example, <answer> Beijing </answer>. Question: who wrote Faust?\n");
  EXPECT_TRUE(search_r1_prompt("Who?").ends_with("Question: Who?\n"));
  EXPECT_EQ(search_r1_passages(kFound), "Doc 1(Title: \"Lima\") Lima is in Peru.\n2nd line\nDoc 2(Title: no title) \n");
  EXPECT_EQ(search_r1_information(" x\n"), "\n\n<information>x</information>\n\n");
}

TEST(SearchR1, CutsAResponseAfterItsFirstSearchElseItsFirstAnswer) {
  EXPECT_EQ(search_r1_cut("<answer>a</answer><search>b</search> c"), "<answer>a</answer><search>b</search>");
  EXPECT_EQ(search_r1_cut("<answer>a</answer> c </answer>"), "<answer>a</answer>");
  EXPECT_EQ(search_r1_cut("none"), "none");
  const auto first = search_r1_action("<answer> a </answer><search>b</search>");
  EXPECT_EQ(first.action, SearchAction::Answer);
  EXPECT_EQ(first.text, "a");
  EXPECT_EQ(search_r1_action("<answer>a <search> b\n</search>").text, "b") << "a pair, whatever is open before it";
  EXPECT_EQ(search_r1_action("</search> <search> b").action, SearchAction::None);
}

TEST(SearchR1, KnowsItsFormat) {
  const std::string searched = "<think>a</think>\n<search>b</search>\n\n<information>c</information>\n\n";
  EXPECT_TRUE(is_search_r1_format("<think>a</think><answer>b</answer>"));
  EXPECT_TRUE(is_search_r1_format(searched + searched + "<think>d</think> <answer>e</answer>\n"));
  EXPECT_FALSE(is_search_r1_format(searched + "<answer>e</answer>")) << "no thought after information";
  EXPECT_FALSE(is_search_r1_format("<think>a</think>so <answer>b</answer>")) << "words between the pairs";
  EXPECT_FALSE(is_search_r1_format("<answer>b</answer>"));
  EXPECT_FALSE(is_search_r1_format("<think>a</think><search>b</search><think>c</think><answer>d</answer>"));
  EXPECT_FALSE(is_search_r1_format("<think>a</think><answer>b</answer><answer>c</answer>"));
  EXPECT_FALSE(is_search_r1_format("<think>a<think></think><answer>b</answer>"));
  EXPECT_FALSE(is_search_r1_format("<think>a</think>"));
  EXPECT_FALSE(is_search_r1_format(""));
}

TEST(SearchR1, TakesTheLastAnswer) {
  EXPECT_EQ(last_tagged_answer("<answer>a</answer> <answer> b </answer> <answer>").text, "b");
  EXPECT_FALSE(last_tagged_answer("<answer>a").found);
  EXPECT_TRUE(last_tagged_answer("<answer></answer>").found);
}

TEST(VerlAgentSearch, SpeaksItsPublishedWords) {
  const std::string turn =
      "\n\nNow it's your turn to respond for the current step.\nYou should first conduct reasoning process. This "
      "process "
      "MUST be enclosed within <think> </think> tags. \nAfter completing your reasoning, choose only one of the "
      "following actions (do not perform both):\n(1) If you find you lack some knowledge, you can call a search engine "
      "to get more external information using format: <search> your query </search>.\n(2) If you have enough knowledge "
      "to answer the question confidently, provide your final answer within <answer> </answer> tags, without detailed "
      "illustrations. For example, <answer>Beijing</answer>.\n";
  const std::string head =
      "\nYou are an expert agent tasked with answering the given question step-by-step.\nYour question: Who?";
  EXPECT_EQ(verl_agent_search_prompt("Who?", {}, 4), head + turn);
  const std::vector<SearchStep> steps{{.action = "<search>a</search>", .information = "<information>x</information>"},
                                      {},
                                      {.action = "<search>b</search>", .information = "<information>y</information>"}};
  EXPECT_EQ(verl_agent_search_prompt("Who?", steps, 2),
            head +
                "\n\nPrior to this step, you have already taken 3 step(s). Below is the interaction history where "
                "<search> </search> wrapped your past search queries and <information> </information> wrapped the "
                "corresponding search results returned by the external search engine. History:\nStep 2: \n\nStep "
                "3:<search>b</search> <information>y</information>\n" +
                turn);
  EXPECT_EQ(verl_agent_search_prompt("Who?", steps, 0), head + turn);
  EXPECT_EQ(verl_agent_information({{.contents = " \"L\u00E9o\"\n\u4E2D\U0001F600 "}}),
            "<information>{\"result\": \"Doc 1: \\\"L\\u00e9o\\\"\\n\\u4e2d\\ud83d\\ude00\\n\"}</information>");
  EXPECT_EQ(verl_agent_information({}), "<information>{\"result\": \"\"}</information>");
}

TEST(VerlAgentSearch, ReadsActionsAsItsProjectionDoes) {
  const auto read = [](std::string_view response) {
    const auto action = read_verl_agent_search(response);
    return action.text + (action.valid ? "" : " (not valid)");
  };
  EXPECT_EQ(read("<think>a</think> <search> b </search> c"), "<search>b</search>");
  EXPECT_EQ(read("<ANSWER> B </answer>"), "<answer>B</answer>");
  EXPECT_EQ(read("<answer>a</answer> <search>b</search>"), "<search>b</search> (not valid)") << "both";
  EXPECT_EQ(read("<search>a</search> <search>b</search>"), "<search>a</search> (not valid)") << "twice";
  EXPECT_EQ(read("<answer>a"), " (not valid)");
  EXPECT_EQ(read(""), " (not valid)");
}

TEST(OpenQa, AnswersSearchesOfSearchR1Inline) {
  const auto factory = open_qa({{"passages", "2"}});
  const auto environment = factory->make(Split::Validation, 0);
  EXPECT_EQ(environment->open().user, search_r1_prompt("Who founded the capital of Peru?"));
  EXPECT_EQ(environment->protocol().max_turns, 5);
  Reply reply = environment->step("<think>a</think> <search> capital of Peru </search>");
  EXPECT_EQ(reply.form, ReplyForm::Inline);
  EXPECT_EQ(reply.text,
            "\n\n<information>Doc 1(Title: \"Lima\") Lima is the capital of Peru. It was founded in 1535 by Francisco "
            "Pizarro.\nDoc 2(Title: \"Quito\") Quito is the capital of Ecuador.</information>\n\n");
  EXPECT_EQ(reply.status, "ok");
  EXPECT_EQ(environment->anchor(), "Who founded the capital of Peru? | 0 3");
  reply = environment->step("I do not know");
  EXPECT_THAT(reply.text, HasSubstr("My previous action is invalid."));
  EXPECT_FALSE(reply.valid_action);
  reply = environment->step("<think>b</think> <answer>The Pizarro.</answer>");
  EXPECT_TRUE(reply.done && reply.success);
  EXPECT_EQ(reply.reward, 1);
  EXPECT_EQ(reply.measures.at("exact_match"), 1);
  EXPECT_EQ(reply.measures.at("searches"), 1);
  EXPECT_EQ(reply.measures.at("format"), 0) << "words outside the tags";
  EXPECT_EQ(reply.answer, "pizarro");
}

TEST(OpenQa, EndsSearchR1AfterFourTurnsAndOneWithoutASearch) {
  const auto factory = open_qa({});
  const auto environment = factory->make(Split::Validation, 1);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(environment->step("<search>wool</search>").done);
  const Reply reply = environment->step("<search>wool</search>");
  EXPECT_TRUE(reply.done);
  EXPECT_EQ(reply.outcome, Outcome::OutOfTurns);
  EXPECT_EQ(reply.measures.at("searches"), 4);
}

TEST(OpenQa, ScoresTheFormatOfSearchR1) {
  const auto factory = open_qa({{"format_scores", "true"}});
  const auto reward = [&](const char* response) { return factory->make(Split::Validation, 1)->step(response).reward; };
  EXPECT_EQ(reward("<think>a</think><answer>A llama</answer>"), 1);
  EXPECT_EQ(reward("<answer>A llama</answer>"), 0.8);
  EXPECT_EQ(reward("<think>a</think><answer>sheep</answer>"), 0.2);
  EXPECT_EQ(reward("<answer>sheep</answer>"), 0.1);
}

TEST(OpenQa, RewardsWordsInCommonOrContained) {
  const auto reward = [&](const char* kind) {
    return open_qa({{"reward", kind}})->make(Split::Validation, 1)->step("<answer>the brown llama</answer>").reward;
  };
  EXPECT_EQ(reward("exact_match"), 0);
  EXPECT_DOUBLE_EQ(reward("f1"), 2.0 / 3);
  EXPECT_EQ(reward("contains"), 1);
}

TEST(OpenQa, AnswersSearchesOfArpoInline) {
  const auto factory = open_qa({{"protocol", "arpo"}, {"passages", "1"}});
  const auto environment = factory->make(Split::Validation, 0);
  EXPECT_EQ(environment->open().system, arpo_search_prompt());
  EXPECT_EQ(environment->open().user, "Who founded the capital of Peru?");
  Reply reply = environment->step("<think>a</think> <search> capital of Peru </search>");
  EXPECT_EQ(reply.text,
            " <result>\nDoc 1 (Title: \"Lima\")\nLima is the capital of Peru. It was founded in 1535 by Francisco "
            "Pizarro.\n</result>");
  reply = environment->step("<think>b</think> <search>zebra</search>");
  EXPECT_EQ(reply.text, " <result>\nTool(search) returned empty output.\n</result>");
  EXPECT_EQ(reply.status, "empty");
  const auto copy = environment->clone();
  reply = environment->step("<think>b</think><answer>It is \\boxed{Francisco Pizarro}</answer>");
  EXPECT_EQ(reply.reward, 1);
  EXPECT_TRUE(reply.success);
  reply = copy->step("<answer>It is \\boxed{Francisco Pizarro}</answer><answer></answer>");
  EXPECT_EQ(reply.reward, -1);
  EXPECT_FALSE(reply.success);
}

TEST(OpenQa, GivesVerlAgentAFreshPromptForEachStep) {
  const auto factory = open_qa({{"protocol", "verl_agent"}, {"passages", "1"}});
  const auto environment = factory->make(Split::Validation, 0);
  Reply reply = environment->step("<think>a</think> <search> Quito </search>");
  EXPECT_EQ(reply.form, ReplyForm::FreshPrompt);
  const SearchStep first{
      .action = "<search>Quito</search>",
      .information =
          "<information>{\"result\": \"Doc 1: \\\"Quito\\\"\\nQuito is the capital of Ecuador.\\n\"}</information>"};
  EXPECT_EQ(reply.prompt.user, verl_agent_search_prompt("Who founded the capital of Peru?", {first}, 4));
  EXPECT_EQ(reply.penalty, 0);
  reply = environment->step("no action");
  EXPECT_EQ(reply.penalty, -0.01);
  EXPECT_EQ(reply.prompt.user, verl_agent_search_prompt("Who founded the capital of Peru?", {first, {}}, 4));
  reply = environment->step("<answer>Pizarro</answer>");
  EXPECT_TRUE(reply.done && reply.success);
  EXPECT_EQ(reply.reward, 1);
}

TEST(OpenQa, SplitsJoinedAnswersAndScriptsARightEpisode) {
  for (const char* protocol : {"search_r1", "arpo", "verl_agent"}) {
    const auto factory = open_qa({{"protocol", protocol}});
    for (int i = 0; i < 2; ++i) {
      const auto environment = factory->make(Split::Train, i);
      if (environment->info().at("question").starts_with("Where")) {
        EXPECT_EQ(environment->ground_truth(), (std::vector<std::string>{"Trujillo", "Trujillo, Extremadura"}));
      }
      const auto agent = factory->script(*environment, 1, RandomStream(1));
      Reply reply;
      while (!reply.done) reply = environment->step(agent->respond(shown_text(reply)));
      EXPECT_TRUE(reply.success) << protocol;
      EXPECT_EQ(reply.measures.at("format"), 1);
      EXPECT_EQ(reply.measures.at("searches"), 1);
    }
  }
}

TEST(OpenQa, CutsALongResult) {
  const auto factory = open_qa({{"passages", "2"}, {"longest_result", "20"}});
  EXPECT_EQ(factory->make(Split::Validation, 0)->step("<search>Lima</search>").text,
            "\n\n<information>Doc 1(Title: \"Lima\")</information>\n\n");
}

/// How often each letter occurs, as a vector of length 1: texts of the same letters are nearest to each other.
TextEncoder letters_encoder(const std::string& model) {
  const auto vector_of = [](const std::string& text) {
    std::vector<float> vector(26);
    for (const char c : text)
      if (c >= 'a' && c <= 'z') ++vector[static_cast<std::size_t>(c - 'a')];
    float square = 0;
    for (const float count : vector) square += count * count;
    for (float& count : vector) count /= std::sqrt(square);
    return vector;
  };
  return {.encode =
              [vector_of](std::span<const std::string> texts) {
                std::vector<std::vector<float>> vectors;
                for (const std::string& text : texts) vectors.push_back(vector_of(text));
                return vectors;
              },
          .dimensions = 26,
          .mark = model};
}

TEST(OpenQa, FindsPassagesByTheVectorsOfASentenceEncoder) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "carnot_open_qa_vectors";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(source_path("tests/tasks/open_qa"), folder);
  set_text_encoder_opener([](const std::string& model) -> Result<TextEncoder> {
    return model == "letters" ? Result(letters_encoder(model)) : Error{model + ": no such model"};
  });
  for (const char* approximate : {"false", "true"}) {
    const auto factory = open_qa({{"task_source", folder.string()},
                                  {"encoder", "letters"},
                                  {"approximate", approximate},
                                  {"passage_prefix", "passage: "},
                                  {"query_prefix", "passage: "},
                                  {"passages", "1"}});
    const Reply reply =
        factory->make(Split::Validation, 0)->step("<search> is the capital of cuador: uito, uito </search>");
    EXPECT_THAT(reply.text, HasSubstr("Doc 1(Title: \"Quito\") Quito is the capital of Ecuador."));
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "passages.jsonl.bm25.vectors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "passages.jsonl.bm25.graph"));
  const auto problem = [&](Settings settings) {
    settings.emplace("task_source", folder.string());
    return problem_with(settings);
  };
  EXPECT_THAT(problem({{"encoder", "words"}}), HasSubstr("env.encoder: words: no such model"));
  EXPECT_THAT(problem({{"encoder", "letters"}, {"retriever", "http://127.0.0.1:1"}}),
              HasSubstr("env.encoder: expected none"));
  EXPECT_THAT(problem({{"approximate", "true"}}), HasSubstr("expected env.encoder too"));
  EXPECT_THAT(problem({{"encoder", "letters"}}),
              HasSubstr("passages.jsonl.bm25.vectors: holds vectors of other passages"))
      << "without the prefix";
  set_text_encoder_opener({});
  EXPECT_THAT(problem({{"encoder", "letters"}}), HasSubstr("computes no sentence encoders"));
  std::filesystem::remove_all(folder);
}

TEST(OpenQa, ThrowsWhereTheRetrieverIsAway) {
  auto away = open_qa({{"retriever", "http://127.0.0.1:9"}, {"timeout", "2"}});
  const auto environment = away->make(Split::Train, 0);
  EXPECT_THROW(environment->step("<search>Lima</search>"), RetrieverFailure);

  testing::LocalHttpServer server([](const testing::ReceivedRequest& request) -> testing::GivenAnswer {
    EXPECT_EQ(request.body, R"({"queries":["Lima"],"topk":3,"return_scores":true})");
    return {.body = R"({"result": [[{"document": {"id": "9", "contents": "\"T\"\nx"}, "score": 1.0}]]})"};
  });
  const auto there = open_qa({{"retriever", server.url("/retrieve")}});
  EXPECT_EQ(there->make(Split::Train, 0)->step("<search> Lima </search>").text,
            "\n\n<information>Doc 1(Title: \"T\") x</information>\n\n");
}

TEST(OpenQa, SaysWhatIsMissing) {
  EXPECT_THAT(problem_with({}), HasSubstr("env.train_file: names no file"));
  EXPECT_THAT(problem_with({}), HasSubstr("env.retriever: names neither passages nor a server"));
  const std::string questions = source_path("tests/tasks/open_qa/train.jsonl");
  EXPECT_THAT(problem_with({{"train_file", questions}, {"retriever", "/nowhere.jsonl"}}),
              HasSubstr("env.retriever: /nowhere.jsonl"));
  EXPECT_THAT(problem_with({{"train_file", questions}, {"retriever", "http://"}}), HasSubstr("env.retriever: "));
}

TEST(OpenQa, ReadsQuestionsWithTheirPassagesAndPassagesWithTitles) {
  const std::string folder = source_path("tests/tasks/open_qa/");
  const auto factory = open_qa(
      {{"train_file", folder + "oracle.jsonl"}, {"answer", ""}, {"retriever", folder + "titled_passages.jsonl"}});
  std::map<std::string, std::vector<std::string>> answers;
  for (int i = 0; i < 3; ++i) {
    const auto environment = factory->make(Split::Train, i);
    answers[environment->info().at("question")] = environment->ground_truth();
  }
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers["who was the first warden of the lighthouse at skarn"],
            (std::vector<std::string>{"Ada Tolle", "Tolle"}));
  const auto environment = factory->make(Split::Validation, 0);
  EXPECT_THAT(environment->step("<search>Ingrid Tolle died</search>").text,
              HasSubstr("Doc 1(Title: \"Ingrid Tolle\") Ingrid Tolle was a boat builder."));
}

TEST(OpenQa, ReadsTheSevenSetsAndARealCorpus) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const auto factory = open_qa({{"test_file", published_path("qa/igpo_test_half.jsonl")},
                                {"train_file", published_path("qa/nq_oracle.jsonl.xz")},
                                {"answer", ""},
                                {"retriever", published_path("qa/2wiki_corpus.jsonl.xz")}});
  const auto environment = factory->make(Split::Validation, 0);
  EXPECT_EQ(environment->info().at("question"),
            "What is the date of birth of Millicent Leveson-Gower, Duchess Of Sutherland's husband?");
  EXPECT_EQ(environment->ground_truth(), std::vector<std::string>{"20 July 1851"});
  EXPECT_THAT(environment->step("<search>Lothair II mother</search>").text, HasSubstr("Lothair II"));
  EXPECT_EQ(factory->make(Split::Validation, 1598)->info().at("question"), environment->info().at("question"));
}

}  // namespace
}  // namespace carnot
