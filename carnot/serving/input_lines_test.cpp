#include "carnot/serving/input_lines.h"

#include <gtest/gtest.h>

#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat_families.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

const ChatFamily& chat() {
  static const auto family = make_chat_family("chatml", small_tokenizer()).value();
  return *family;
}

InputFormat format(const ChatFamily* family) {
  return {.tokenizer = &small_tokenizer(), .chat = family, .vocab_size = 300, .max_positions = 64};
}

std::string decoded(const InputLine& line) { return small_tokenizer().decode(line.tokens); }

TEST(PromptLines, SayWhichTextTheSplitPatternDoesNotGetAlongWith) {
  const auto family = make_chat_family("chatml", testing::backtracking_tokenizer()).value();
  InputFormat chat_format = format(family.get()), raw = format(nullptr);
  chat_format.tokenizer = raw.tokenizer = &testing::backtracking_tokenizer();
  for (const InputFormat& read : {chat_format, raw}) {
    const auto lines = prompt_lines("\"task\"\n{\"prompt\": \"" + testing::kBacktracks + "\"}", read, "file");
    ASSERT_FALSE(lines.ok());
    EXPECT_TRUE(lines.error().message.starts_with("file:2: ")) << lines.error().message;
    EXPECT_NE(lines.error().message.find("the split pattern takes more than"), std::string::npos);
  }
}

TEST(PromptLines, AndTextsBeginAsTheTokenizerBeginsATextButConversationsAsTheirFormatDoes) {
  Json file = Json::parse(small_tokenizer().json());
  const auto part = [](const char* kind, const char* id) { return Json{{kind, {{"id", id}, {"type_id", 0}}}}; };
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {part("SpecialToken", "<|im_end|>"), part("Sequence", "A")}}};
  const auto tokenizer = Tokenizer::parse(file.dump(), "begins").value();
  const auto family = make_chat_family("chatml", tokenizer).value();
  InputFormat raw = format(nullptr), conversation = format(family.get());
  raw.tokenizer = conversation.tokenizer = &tokenizer;
  const auto text = [&](const Result<std::vector<InputLine>>& lines) { return decoded(lines.value().at(0)); };
  EXPECT_EQ(text(prompt_lines("\"task\"", raw, "in")), "<|im_end|>task");
  EXPECT_EQ(text(prompt_lines("\"<|im_end|>task\"", raw, "in")), "<|im_end|>task");
  EXPECT_EQ(text(sequence_lines("{\"text\": \"task\"}", raw, "in")), "<|im_end|>task");
  EXPECT_TRUE(text(prompt_lines("\"task\"", conversation, "in")).starts_with("<|im_start|>user"));
}

TEST(PromptLines, SayWhichMessagesTheChatFormatCannotWrite) {
  const auto json = train_byte_level_bpe(std::vector<std::string>{"a"},
                                         {.vocab_size = 270, .added_tokens = {"<s>", "</s>", "[INST]", "[/INST]"}});
  const auto tokenizer = Tokenizer::parse(*json, "small").value();
  const auto family = make_chat_family("mistral", tokenizer).value();
  const InputFormat read{.tokenizer = &tokenizer, .chat = family.get(), .vocab_size = 300, .max_positions = 64};
  const auto lines = prompt_lines(
      "\"Hi\"\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"U\"}, {\"role\": \"system\", \"content\": \"S\"}]}",
      read, "in.jsonl");
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().message,
            "in.jsonl:2: messages: chat format mistral knows a system message at the start only; message 2 is another; "
            "expected messages that the chat format can write");
}

TEST(PromptLines, ReadStringsPromptsMessagesAndIds) {
  const auto lines = prompt_lines(
      "\"task\"\n"
      "  \n"
      "{\"id\": {\"a\": [1, \"x\"]}, \"prompt\": \"task\"}\n"
      "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": \"U\"}]}\r\n"
      "{\"ids\": [5, 6], \"id\": 7}",
      format(&chat()), "file");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  ASSERT_EQ(lines->size(), 4u);
  EXPECT_EQ(decoded((*lines)[0]), "<|im_start|>user\ntask<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ((*lines)[1].tokens, (*lines)[0].tokens);
  EXPECT_EQ((*lines)[1].id, "{\"a\":[1,\"x\"]}");
  EXPECT_EQ(decoded((*lines)[2]),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ((*lines)[3].tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ((*lines)[3].id, "7");
}

TEST(PromptLines, RawPromptsAreTheirTextAndTheSystemMessageStandsFirst) {
  EXPECT_EQ(decoded(prompt_input("task", format(nullptr), "p").value()), "task");
  InputFormat with_system = format(&chat());
  with_system.system = "S";
  EXPECT_TRUE(decoded(prompt_input("U", with_system, "p").value()).starts_with("<|im_start|>system\nS<|im_end|>\n"));
  const std::string own = "[{\"role\": \"system\", \"content\": \"own\"}, {\"role\": \"user\", \"content\": \"U\"}]";
  EXPECT_TRUE(
      decoded(messages_input(own, with_system, "m").value()).starts_with("<|im_start|>system\nown<|im_end|>\n"));
}

TEST(PromptLines, EveryProblemNamesItsLine) {
  const std::string text =
      "{\"prompt\": \n"
      "3\n"
      "{\"promt\": \"x\"}\n"
      "{\"prompt\": \"x\", \"ids\": [1]}\n"
      "{\"id\": 1}\n"
      "{\"ids\": [1, 300]}\n"
      "{\"ids\": []}\n"
      "{\"messages\": [{\"role\": \"robot\", \"content\": \"x\"}]}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": 3}]}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", \"content\": \"y\"}]}\n"
      "{\"prompt\": \"" +
      std::string(200, '!') + "\"}\n";
  const auto lines = prompt_lines(text, format(&chat()), "in.jsonl");
  ASSERT_FALSE(lines.ok());
  const std::string& message = lines.error().message;
  for (const char* part :
       {"in.jsonl:1: not JSON", "in.jsonl:2: expected a JSON string or an object, found 3",
        "in.jsonl:3: promt: unknown key; expected prompt, messages, ids or id",
        "in.jsonl:4: prompt: given together with ids; expected one of prompt, messages, ids",
        "in.jsonl:5: has none of the keys prompt, messages, ids",
        "in.jsonl:6: ids[1]: expected a token id below 300, found 300", "in.jsonl:7: has no token",
        "in.jsonl:8: messages[0].role: expected system, user, assistant or tool, found \"robot\"",
        "in.jsonl:9: messages[0]: expected an object with the texts role and content",
        "in.jsonl:10: messages: the last one is the assistant's", "in.jsonl:11: has 2", "positions for 63"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\nin\n" << message;
}

TEST(PromptLines, MessagesNeedAChatFormat) {
  const auto lines = prompt_lines("{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}", format(nullptr), "f");
  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().message, "f:1: messages: need a chat format; expected a prompt, or --chat");
}

TEST(SequenceLines, TakeTextsAndIdsOfAnyLengthThatFits) {
  const auto lines = sequence_lines("{\"text\": \"task\"}\n{\"ids\": [1]}", format(&chat()), "f");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  EXPECT_EQ(decoded((*lines)[0]), "task") << "no chat format around a text";
  EXPECT_EQ(sequence_lines("{\"prompt\": \"x\"}\n\"x\"", format(&chat()), "f").error().message,
            "f:1: prompt: unknown key; expected text, ids or id\nf:2: expected an object, found \"x\"");
  EXPECT_EQ(sequence_lines(" \n", format(&chat()), "f").error().message, "f: holds no line");
}

TEST(PromptLines, SurviveDamage) {
  const std::string good =
      "{\"id\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"U\"}]}\n{\"ids\": [1, 2, 3]}\n";
  RandomStream random(6);
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (auto n = 1 + random.below(4); n > 0; --n)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    for (const auto& lines : {prompt_lines(text, format(&chat()), "x"), sequence_lines(text, format(&chat()), "x")}) {
      const std::string message = lines.ok() ? "" : lines.error().message;
      EXPECT_TRUE(lines.ok() || message.starts_with("x:")) << message;
    }
  }
}

}  // namespace
}  // namespace carnot
