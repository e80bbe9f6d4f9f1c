// The environment `dataset`: rows of files, scorers with weights, a Python function as reward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "carnot/core/env/play.h"
#include "carnot/worlds/dataset/environment.h"
#include "testing/prepared_environment.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFunctions = std::string(CARNOT_SOURCE_DIR) + "/tests/process/reward_functions.py:";

class DatasetEnvironment : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CARNOT_PYTHON", CARNOT_SOURCE_DIR "/python", 1);
    folder_ = std::filesystem::path(::testing::TempDir()) / "carnot_dataset";
    std::filesystem::create_directories(folder_);
    write("train.jsonl", R"({"question": "2+2?", "answer": "4", "level": 2})"
                         "\n"
                         R"({"question": "3+3?", "answer": "6", "level": 3})"
                         "\n");
    write("test.jsonl", R"({"question": "2+2?", "answer": "4", "level": 2})"
                        "\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  Result<std::shared_ptr<EnvironmentFactory>> dataset(std::vector<std::string> settings) const {
    settings.insert(settings.begin(), {"train_file=" + (folder_ / "train.jsonl").string(),
                                       "test_file=" + (folder_ / "test.jsonl").string()});
    return testing::prepared(make_dataset(), settings);
  }

  /// The reply to a response to the validation task 2+2.
  Reply reply(const std::vector<std::string>& settings, const std::string& response) const {
    const auto environment = dataset(settings).value()->make(Split::Validation, 0);
    environment->open();
    return step_alone(*environment, response);
  }

  std::string error_of(const std::vector<std::string>& settings) const {
    const auto made = dataset(settings);
    return made ? "" : made.error().message;
  }

  /// What a step throws, or why it is an infrastructure failure.
  std::string failure_of(const std::string& function, const std::string& response) const {
    try {
      const Reply last = reply({"reward=" + kFunctions + function, "timeout=20"}, response);
      return last.outcome == Outcome::InfraFailed ? last.text : "";
    } catch (const std::runtime_error& failure) {
      return failure.what();
    }
  }

  std::filesystem::path folder_{};
};

TEST_F(DatasetEnvironment, OpensRowsByTheTemplates) {
  const auto factory = dataset({"system=level {level}", R"(prompt="{question} Use \\boxed{}.")"}).value();
  const auto environment = factory->make(Split::Validation, 5);
  const Opening opening = environment->open();
  EXPECT_EQ(opening.system, "level 2");
  EXPECT_EQ(opening.user, "2+2? Use \\boxed{}.");
  EXPECT_EQ(environment->ground_truth(), std::vector<std::string>{"4"});
}

TEST_F(DatasetEnvironment, TrainsOnEveryRowOnceAnEpoch) {
  const auto factory = dataset({}).value();
  for (std::int64_t epoch = 0; epoch < 10; ++epoch)
    EXPECT_NE(factory->make(Split::Train, 2 * epoch)->open().user,
              factory->make(Split::Train, 2 * epoch + 1)->open().user);
}

TEST_F(DatasetEnvironment, ReadsParquetByPythonOrNamesTheConverter) {
  const auto with_library = [](const std::string& name) {
    ::setenv("PYTHONPATH", (CARNOT_SOURCE_DIR "/tests/process/" + name).c_str(), 1);
  };
  // The stand-in for pyarrow reads JSON lines after the mark.
  write("train.parquet",
        "PAR1\n"
        R"({"question": "5+5?", "answer": "zehn ä"})"
        "\n");
  const std::string file = (folder_ / "train.parquet").string();
  with_library("parquet_library");
  const auto factory = dataset({"train_file=" + file}).value();
  EXPECT_EQ(factory->make(Split::Train, 0)->ground_truth(), std::vector<std::string>{"zehn ä"});
  write("train.parquet", "PAR1\nbroken\n");
  EXPECT_THAT(error_of({"train_file=" + file}), AllOf(HasSubstr("exited with status 1"), HasSubstr("JSONDecodeError")));
  with_library("no_parquet_library");
  EXPECT_THAT(error_of({"train_file=" + file}),
              AllOf(HasSubstr("env.train_file: " + file + ": is a Parquet file, and parquet_to_jsonl.py (process "),
                    HasSubstr("pyarrow is missing: pip install pyarrow; expected python3 with pyarrow, or JSON lines"),
                    HasSubstr("/python/parquet_to_jsonl.py " + file + " "), HasSubstr("train.jsonl` makes of it")));
  ::unsetenv("PYTHONPATH");
}

TEST_F(DatasetEnvironment, WithoutATestFileRowsAreHeldOutByTheSeed) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += R"({"question": "q)" + std::to_string(i) + R"(", "answer": "a"})" + "\n";
  write("train.jsonl", lines);
  const auto questions = [](const EnvironmentFactory& factory, Split split, int count) {
    std::set<std::string> found;
    for (int i = 0; i < count; ++i) found.insert(factory.make(split, i)->open().user);
    return found;
  };
  const auto factory = dataset({"test_file=", "held_out_share=0.23"}).value();
  EXPECT_EQ(factory->num_validation_tasks(), 5);
  const auto test = questions(*factory, Split::Validation, 5), train = questions(*factory, Split::Train, 15);
  EXPECT_EQ(test.size() + train.size(), 20u);
  for (const std::string& question : test) EXPECT_FALSE(train.contains(question)) << question;
  EXPECT_EQ(questions(*dataset({"test_file=", "held_out_share=0.23"}).value(), Split::Validation, 5), test);
  EXPECT_EQ(dataset({"test_file="}).value()->num_validation_tasks(), 2);
  EXPECT_THAT(error_of({"held_out_share=0.5"}), HasSubstr("env.held_out_share: has no effect"));
  write("train.jsonl", R"({"question": "q", "answer": "a"})");
  EXPECT_THAT(error_of({"test_file="}), HasSubstr("env.train_file has one row; expected a second one to hold out"));
}

TEST_F(DatasetEnvironment, AddsUpItsScorersByWeight) {
  const Reply right = reply({"scorers=[maths, 0.5 * format, -0.25 * length]", "answer_in=tag", "length=1000"},
                            "<think>so</think><answer>\\frac{8}{2}</answer>");
  EXPECT_DOUBLE_EQ(right.reward, 1 + 0.5 - 0.25);
  EXPECT_TRUE(right.success);
  EXPECT_EQ(right.measures, (std::map<std::string, double>{{"format", 1}, {"length", 1}, {"maths", 1}}));
  EXPECT_EQ(right.answer, "\\frac{8}{2}");
  const Reply wrong = reply({"scorers=[maths, 0.5 * format]", "answer_in=tag"}, "<think>so</think><answer>5</answer>");
  EXPECT_DOUBLE_EQ(wrong.reward, 0.5);
  EXPECT_FALSE(wrong.success);
  const Reply none = reply({"scorers=[maths]", "answer_in=tag"}, "4");
  EXPECT_EQ(none.reward, 0);
  EXPECT_FALSE(none.valid_action);
  EXPECT_EQ(none.answer, std::nullopt);
}

TEST_F(DatasetEnvironment, IsScoredByAPythonFunctionOfTwoLines) {
  EXPECT_EQ(reply({"reward=" + kFunctions + "contains"}, "it is 4").reward, 1);
  EXPECT_EQ(reply({"reward=" + kFunctions + "contains"}, "it is 5").reward, 0);
  EXPECT_EQ(reply({"reward=" + kFunctions + "uses_columns"}, "any").reward, 0.5);
  EXPECT_EQ(reply({"reward=" + kFunctions + "contains", "scorers=[0.5 * python, number]"}, "4").reward, 1.5);
}

TEST_F(DatasetEnvironment, IsScoredByAFunctionWrittenForVerl) {
  const std::string file = std::string(CARNOT_SOURCE_DIR) + "/tests/process/verl_reward.py";
  EXPECT_EQ(reply({"reward=" + file}, "it is 4").reward, 1);
  EXPECT_EQ(reply({"reward=" + file}, "it is 5").reward, -1);
  write("test.jsonl", R"({"question": "2+2?", "answer": ["4", "four"], "data_source": "sums",)"
                      R"( "extra_info": {"split": "train"}})");
  EXPECT_EQ(reply({"reward=" + file + ":of_one_source"}, "any").reward, 1);
}

TEST_F(DatasetEnvironment, AFunctionThatFailsGivesNoReward) {
  EXPECT_THAT(failure_of("raises_for_five", "5"), HasSubstr("): ValueError: not five (reward_functions.py, line 20)"));
  EXPECT_THAT(failure_of("dies_for_five", "5"), HasSubstr("exited with status 1"));
  EXPECT_THAT(failure_of("not_finite", "4"), HasSubstr("returned the score nan; expected a finite number"));
  EXPECT_THAT(failure_of("too_few", "4"), HasSubstr("too_few returned 0 scores for 1 response"));
}

TEST_F(DatasetEnvironment, QueuedResponsesAreScoredInOneCallAndAnInvalidScoreFailsOnlyItsResponse) {
  const auto score = [&](EnvironmentFactory& factory, const std::string& response) {
    const auto environment = factory.make(Split::Validation, 0);
    environment->open();
    const Reply last = step_alone(*environment, response);
    return last.outcome == Outcome::InfraFailed ? -1.0 : last.reward;
  };
  const auto slow = dataset({"reward=" + kFunctions + "slow_each_call"}).value();
  const auto picky = dataset({"reward=" + kFunctions + "none_for_five"}).value();
  constexpr int kCallers = 8;
  std::vector<double> sizes(kCallers), scores(kCallers);
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c)
    callers.emplace_back([&, c] {
      sizes[c] = score(*slow, "4");
      scores[c] = score(*picky, c % 4 == 0 ? "5" : "4");
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), 1) << "every call had one response";
  for (int c = 0; c < kCallers; ++c) EXPECT_EQ(scores[c], c % 4 == 0 ? -1 : 2) << c;
}

TEST_F(DatasetEnvironment, AGroupIsScoredInOneCall) {
  const auto factory =
      dataset({"reward=" + kFunctions + "longest_of_group", "scorers=[python, 0.5 * contains]"}).value();
  std::vector<Reply> replies;
  std::unique_ptr<Environment> environment;
  for (const char* response : {"4", "it is 4", "five", "5 is it"}) {
    environment = factory->make(Split::Validation, 0);
    environment->open();
    replies.push_back(environment->step(response));
    EXPECT_TRUE(replies.back().done);
    EXPECT_EQ(replies.back().unscored, response);
  }
  environment->score_group(replies);
  std::vector<double> rewards;
  for (const Reply& reply : replies) rewards.push_back(reply.reward);
  EXPECT_EQ(rewards, (std::vector<double>{0.5, 1.5, 0, 1}));
  EXPECT_EQ(replies[1].measures, (std::map<std::string, double>{{"contains", 1}, {"python", 1}}));
  EXPECT_TRUE(replies[3].success);
  EXPECT_FALSE(replies[0].success);
}

TEST_F(DatasetEnvironment, SeveralFunctionsAddUpByWeightAndEachIsAMeasure) {
  const std::string both = "reward=[" + kFunctions + "contains, " + kFunctions + "none_for_five]";
  const Reply right = reply({both, "reward_weights=[1, 0.25]"}, "it is 4");
  EXPECT_DOUBLE_EQ(right.reward, 1 + 0.25 * 2);
  EXPECT_EQ(right.measures,
            (std::map<std::string, double>{{"python", 1.5}, {"python/contains", 1}, {"python/none_for_five", 2}}));
  EXPECT_EQ(reply({both}, "4").reward, 3);
  const Reply skipped = reply({both}, "4 or 5");
  EXPECT_EQ(skipped.reward, 1) << "a function without a score for a response leaves it to the others";
  EXPECT_EQ(skipped.measures, (std::map<std::string, double>{{"python", 1}, {"python/contains", 1}}));
  EXPECT_THAT(failure_of("none_for_five", "5"), HasSubstr("returned the score None; expected a finite number"));
  EXPECT_THAT(error_of({both, "reward_weights=[1]"}),
              HasSubstr("env.reward_weights: has 1, and env.reward has 2 functions; expected one weight of each"));
  EXPECT_THAT(error_of({"reward=[" + kFunctions + "contains, " + kFunctions + "contains]"}), HasSubstr("twice"));
  EXPECT_THAT(error_of({"reward_weights=[1]"}), HasSubstr("env.reward_weights: has no effect without env.reward"));
}

TEST_F(DatasetEnvironment, ToolsCanBeCalledByHand) {
  const auto factory = dataset({"tools=[calculator]"}).value();
  std::istringstream in(R"({"name": "calculator", "arguments": {"expression": "12 * 34"}})"
                        "\n"
                        R"({"name": "calculator", "arguments": 3})"
                        "\n"
                        R"({"name": "calculator)"
                        "\n4\n");
  std::ostringstream out;
  ASSERT_TRUE(play(*factory, {.name = "dataset", .prompt = true}, in, out).ok());
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("[tool] {\"type\":\"function\",\"function\":{\"name\":\"calculator\""),
                    HasSubstr("[tool]\n408\n"), HasSubstr("[tool]\nError: expected {\"name\": "),
                    HasSubstr("[tool]\nError: the call of a tool: "), ::testing::EndsWith("finished, success]\n")));
}

TEST_F(DatasetEnvironment, SaysWhatIsWrongBeforeTheRun) {
  EXPECT_THAT(error_of({"scorers=[mats]"}), HasSubstr("env.scorers: there is no scorer 'mats'; did you mean 'maths'?"));
  EXPECT_THAT(error_of({"scorers=[x * maths]"}), HasSubstr("env.scorers: \"x * maths\": expected a weight"));
  EXPECT_THAT(error_of({"scorers=[python]"}), HasSubstr("env.reward: expected FILE:FUNCTION"));
  EXPECT_THAT(error_of({"reward=x.py:f", "scorers=[maths]"}), HasSubstr("env.reward: has no effect"));
  EXPECT_THAT(error_of({"reward=/nowhere.py:f"}), HasSubstr("env.reward: /nowhere.py: no such file"));
  EXPECT_THAT(error_of({"reward=" + kFunctions + "nothing"}), HasSubstr("has no function nothing"));
  EXPECT_THAT(error_of({"reward=" + kFunctions + "wants_more"}),
              HasSubstr("wants_more asks for mood; the rows have answer, level, question"));
  EXPECT_THAT(error_of({"answer=gold"}), HasSubstr("gold: no such column"));
  std::filesystem::remove(folder_ / "test.jsonl");
  EXPECT_THAT(error_of({}), AllOf(HasSubstr("env.test_file: "), HasSubstr("test.jsonl")));
}

}  // namespace
}  // namespace carnot
