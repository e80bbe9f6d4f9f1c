// Whole conversations as files that a reader can check. UPDATE_PLAYTHROUGHS=1 rewrites them; review the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/env/environment.h"
#include "testing/field_settings.h"
#include "testing/paths.h"

namespace carnot {
namespace {

struct Playthrough {
  std::string env;
  std::uint64_t seed = 0;
  std::vector<std::string> responses;             ///< after the assistant prefix
  std::map<std::string, std::string> settings{};  ///< of the environment
};

std::string verdict(const Reply& reply) {
  std::string text = "reward " + python_number({.value = reply.reward}) + ", penalty " +
                     python_number({.value = reply.penalty}) + (reply.valid_action ? ", valid" : ", not valid");
  if (!reply.tool.empty()) text += ", " + reply.tool + " " + reply.status;
  if (reply.done) text += ", " + std::string(name_of(reply.outcome)) + (reply.success ? ", success" : ", no success");
  return text;
}

std::string heading(const std::string& text) { return "-------- " + text + "\n"; }

std::string ended(std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

std::string heading_of(ReplyForm form) {
  if (form == ReplyForm::FreshPrompt) return "user, in a new context";
  return form == ReplyForm::Inline ? "inline" : "user";
}

std::string transcript(const Playthrough& playthrough) {
  const auto factory = make_environment_factory(playthrough.env).value();
  testing::FieldSettings settings(playthrough.settings);
  factory->fields(settings);
  EXPECT_TRUE(factory->prepare(0).ok());
  const auto environment = factory->make_instance(playthrough.seed);
  const Opening opening = environment->open();
  std::string text = heading("system") + ended(opening.system) + heading("user") + ended(opening.user);
  bool done = false;
  for (const auto& response : playthrough.responses) {
    EXPECT_FALSE(done);
    text += heading("assistant") + opening.assistant_prefix + response + "\n";
    const Reply reply = environment->step(opening.assistant_prefix + response);
    done = reply.done;
    text += heading(verdict(reply));
    if (done) continue;
    text += heading(heading_of(reply.form)) + ended(shown_text(reply));
  }
  EXPECT_TRUE(done) << "a playthrough ends with its episode";
  return text;
}

class Playthroughs : public ::testing::TestWithParam<Playthrough> {};

TEST_P(Playthroughs, MatchTheirFiles) {
  const auto path =
      source_path("tests/playthroughs/") + GetParam().env + "_" + std::to_string(GetParam().seed) + ".txt";
  const std::string text = transcript(GetParam());
  if (std::getenv("UPDATE_PLAYTHROUGHS") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, text).ok());
    return;
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ(*expected, text);
}

const std::vector<Playthrough> kPlaythroughs = {
    {.env = "sokoban",
     .seed = 142,
     .responses = {"The target is below the box. Down twice.",
                   "I can jump over the box.</think><answer>Jump || Right</answer>",
                   "Back to the left, then push. </think>\n<answer> left || DOWN || Down </answer>",
                   "Once more.</think><answer>Down || Down</answer>"}},
    {.env = "frozen_lake",
     .seed = 142,
     .responses = {"The goal is at the bottom left.</think><answer>Left || Left</answer>",
                   "Let me see what is above.</think><answer>Up</answer>",
                   "I slid to the left.</think><answer>Jump</answer>",
                   "The goal is below me.</think><answer>Down</answer>"}},
    {.env = "sudoku",
     .seed = 142,
     .responses = {"Row 2.</think><answer>place 2 at row 2 col 2 || 2,3,1</answer>",
                   "Hm.</think><answer>place 9 at row 1 col 1 || hello</answer>", "What now? <answer>2,4,3</answer>",
                   "Corners.</think><answer>place 1 at row 1 col 1 || place 3 at row 3 col 1</answer>",
                   "Row 2, row 3.</think><answer>3 at 2,4 || (3,1,2) || 3,4,1</answer>",
                   "The rest.</think><answer>Place 1 at (3,4) || place 1 at 4,1</answer>"}},
    {.env = "search_qa",
     .seed = 2,
     .responses =
         {"<think> I need the mayor of Linwich . </think> <search> Linwich mayor </search>",
          "<think> Nothing here . I need the mayor of Linwich . </think> <search> Linwich managed </search>",
          "<think> The mayor of Linwich is Similo Vengate . I need the birthplace of Similo Vengate . </think> "
          "<search> Similo Vengate born </search>",
          "<think> The birthplace of Similo Vengate is Kelwich . I need the mayor of Kelwich . </think> "
          "<search> managed </search>",
          "<think> That lacks the name . </think> <search> Kelwich managed </search>",
          "<think> Then answer . </think> <answer> \\boxed{ Wilwin Kelstrand } </answer>"}},
    {.env = "word_problems",
     .seed = 1,
     .responses = {"A thief takes 49 of them. <calculator>54 - 49</calculator>",
                   "A copy is made of each, so there are twice as many. <calculator>5 * 2</calculator>",
                   "Carl picks up another 14. <calculator>ten + 14</calculator>",
                   "Carl picks up another 14. <calculator>10 + 14</calculator>",
                   "Overnight their number grows to 4 times as many. <calculator>24 * 4</calculator>",
                   "<answer>96</answer>"}},
    {.env = "open_qa",
     .seed = 0,
     .responses = {"<think> I need the capital. </think> <search> capital of Peru </search>",
                   "<think> It is Lima, and its founder is named. </think> <search> zebra </search>", "What now?",
                   "<think> I know enough. </think> <answer> Pizarro </answer>"},
     .settings = {{"task_source", source_path("tests/tasks/open_qa")}, {"passages", "2"}, {"format_scores", "true"}}},
    {.env = "open_qa",
     .seed = 1,
     .responses = {"<think> Which animal? </think> <search> animal wool </search>", "Which one?",
                   "<think> The llama. </think> <answer> llama </answer>"},
     .settings = {{"task_source", source_path("tests/tasks/open_qa")}, {"passages", "1"}, {"protocol", "verl_agent"}}},
    {.env = "open_qa",
     .seed = 2,
     .responses = {"<think> Who founded the capital? </think> <search> capital of Peru </search>",
                   "<think> And its animals? </think> <search> zebra </search>",
                   "<think> I know enough. </think> <answer> It is \\boxed{Pizarro} </answer>"},
     .settings = {{"task_source", source_path("tests/tasks/open_qa")}, {"passages", "2"}, {"protocol", "arpo"}}},
    {.env = "alfworld",
     .seed = 0,
     .responses = {"<think>A mug may be in a cabinet.</think><action>go to cabinet 2</action>",
                   "<think>I open it.</think><action>open cabinet 2</action>",
                   "<think>Only a plate. I look at the other one.</think><action>go to cabinet 1</action>",
                   "open cabinet 1", "<think>There is one.</think><action>take mug 2 from cabinet 1</action>",
                   "<think>Now it must become hot.</think><action>Heat mug 2</action>",
                   "<think>I have to go there.</think><action>go to microwave 1</action>",
                   "<think>It need not be open.</think><action>heat mug 2 with microwave 1</action>",
                   "<think>Back.</think><action>go to cabinet 1</action>",
                   "<think>It is still open.</think>\n<action> move mug 2 to cabinet 1 </action>"},
     .settings = {{"task_source", source_path("tests/tasks/alfworld")}}},
    {.env = "webshop",
     .seed = 10,
     .responses = {"I look for a mug.</think><answer>search[dishwasher safe mugs]</answer>",
                   "The first one.</think><answer>click[B000000001]</answer>",
                   "What is it like?</think> <answer>click[features]</answer>", "Back, please.",
                   "Back.</think><answer>click[< prev]</answer>",
                   "Both at once.</think><answer>click[blue] || click[500 ml]</answer>",
                   "One by one, then.</think><answer>click[500 ml]</answer>",
                   "That is it.</think><answer>click[buy now]</answer>"},
     .settings = {{"task_source", source_path("tests/tasks/webshop")}, {"goal", "10"}}},
    {.env = "webshop",
     .seed = 11,
     .responses = {"<think>I look for a mug.</think><action>search[dishwasher safe mugs]</action>",
                   "<think>There is one.</think>\n<action> Click[B000000001] </action>",
                   "It has to be blue, so: click[blue]", "<think>And large.</think><action>click[xxl]</action>",
                   "<think>What is it like?</think><action>click[description]</action>",
                   "<think>A mug.</think><action>click[< prev]</action>", "<action>click[500 ml]</action>",
                   "<think>That is it.</think><action>click[buy now]</action>"},
     .settings = {{"task_source", source_path("tests/tasks/webshop")},
                  {"goal", "10"},
                  {"style", "verl_agent"},
                  {"splits", "verl_agent"}}},
    {.env = "swe",
     .seed = 0,
     .responses = {"Let me look around.\n<function=file_editor>\n<parameter=command>view</parameter>\n"
                   "<parameter=path>/testbed</parameter>\n</function>",
                   "<function=search>\n<parameter=search_term>self.number</parameter>\n</function>",
                   "I reproduce it.\n<function=execute_bash>\n<parameter=cmd>\npython -c 'from counter import Counter\n"
                   "print(Counter(5).next())'\n</parameter>\n</function>",
                   "It counts before it answers.",
                   "<function=file_editor>\n<parameter=command>str_replace</parameter>\n"
                   "<parameter=path>/testbed/counter.py</parameter>\n<parameter=old_str>self.number</parameter>\n"
                   "<parameter=new_str>number</parameter>\n</function>",
                   "More of it.\n<function=file_editor>\n<parameter=command>str_replace</parameter>\n"
                   "<parameter=path>/testbed/counter.py</parameter>\n<parameter=old_str>\n        self.number += 1\n"
                   "        return self.number\n</parameter>\n<parameter=new_str>\n        self.number += 1\n"
                   "        return self.number - 1\n</parameter>\n</function>",
                   "<function=execute_bash>\n<parameter=cmd>python reproduce.py</parameter>\n</function>",
                   "Done.\n<function=finish>\n<parameter=command>submit</parameter>\n</function>"},
     .settings = {{"task_source", source_path("tests/tasks/swe")},
                  {"sandbox.least", "limited"},
                  {"sandbox.interpreter", "/usr/bin/python3"}}},
};

INSTANTIATE_TEST_SUITE_P(Files, Playthroughs, ::testing::ValuesIn(kPlaythroughs),
                         [](const auto& info) { return info.param.env + "_" + std::to_string(info.param.seed); });

}  // namespace
}  // namespace carnot
