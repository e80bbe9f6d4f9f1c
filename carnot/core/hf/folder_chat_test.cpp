#include "carnot/core/hf/folder_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "testing/chat_templates.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

ModelFiles with_template(const std::string& jinja, const nlohmann::json& config = nlohmann::json::object()) {
  return {{"chat_template.jinja", jinja}, {"tokenizer_config.json", config.dump()}};
}

TEST(FolderChat, IsTheKnownFormatOrTheTemplateItself) {
  EXPECT_EQ(folder_chat_name({}), std::nullopt);
  EXPECT_EQ(folder_chat_name(with_template(testing::template_text("ends"))), "template");
  EXPECT_EQ(folder_chat_name(with_template("'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
                                           "'<|im_end|>' + '\\n'")),
            "chatml");
  EXPECT_THAT(make_folder_chat("template", {}, testing::template_tokenizer()).error().message,
              HasSubstr("expected chat_template.jinja"));
}

TEST(FolderChat, ATemplateMayNameTheTokensOfBothFiles) {
  ModelFiles files = with_template("x", {{"eos_token", {{"content", "</s>"}, {"special", true}}},
                                         {"bos_token", nullptr},
                                         {"add_bos_token", true},
                                         {"model_max_length", 7}});
  files["special_tokens_map.json"] = R"({"bos_token": "<s>", "eos_token": "other", "pad_token": {"content": "<p>"}})";
  EXPECT_THAT(folder_template(files)->tokens,
              UnorderedElementsAre(Pair("eos_token", "</s>"), Pair("bos_token", "<s>"), Pair("pad_token", "<p>")));
}

TEST(FolderChat, RendersWithTheTokensOfTheFolder) {
  testing::use_source_python();
  const ModelFiles files = with_template(testing::template_text("lines"), {{"eos_token", "</s>"}});
  const auto chat = make_folder_chat("template", files, testing::template_tokenizer()).value();
  EXPECT_EQ(testing::template_tokenizer().decode(chat->render_opening(std::vector<Message>{{"user", "Hi"}}, "").tokens),
            "<|user|>\nHi</s>\n<|assistant|>\n");
  EXPECT_TRUE(check_append_only(*chat).ok());
}

TEST(FolderChat, TheNameTellsATemplateWhetherToThink) {
  testing::use_source_python();
  const ModelFiles files = with_template(testing::template_text("qwen3"), {{"eos_token", "<|im_end|>"}});
  const auto opening = [&](std::string_view name) {
    const auto chat = make_folder_chat(name, files, testing::template_tokenizer()).value();
    EXPECT_EQ(chat->name(), name);
    return testing::template_tokenizer().decode(chat->render_opening(std::vector<Message>{{"user", "Hi"}}, "").tokens);
  };
  const std::string usual = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(opening("template"), usual);
  EXPECT_EQ(opening("template_think"), usual);
  EXPECT_EQ(opening("template_no_think"), usual + "<think>\n\n</think>\n\n");
  const ModelFiles other = with_template(testing::template_text("ends"), {{"eos_token", "<|end|>"}});
  EXPECT_THAT(make_folder_chat("template_think", other, testing::template_tokenizer()).error().message,
              HasSubstr("the template cannot switch thinking"));
}

}  // namespace
}  // namespace carnot
