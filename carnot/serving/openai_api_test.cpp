#include "carnot/serving/openai_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cctype>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/serving/generator.h"
#include "testing/chain_model.h"
#include "testing/small_model.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

class TestConnection final : public HttpConnection {
 public:
  bool is_open() const override { return open; }
  std::atomic<bool> open = true;
};

/// A model that says anything.
LoadedModel random_model() {
  LoadedModel loaded;
  loaded.tokenizer =
      std::make_unique<Tokenizer>(Tokenizer::parse(testing::small_tokenizer_json(), "tokenizer").value());
  loaded.chat = make_chat_family("chatml", *loaded.tokenizer).value();
  loaded.model = std::make_unique<Model>(testing::small_model());
  return loaded;
}

/// A model that calls a function in every message.
LoadedModel calling_model() {
  const std::string say = "I look.\n", open = "<tool_call>\n{\"name\": \"look_up\", ",
                    close = "\"arguments\": {\"word\": \"up\"}}\n</tool_call>";
  const std::string json =
      train_byte_level_bpe(
          std::vector<std::string>{"a user asks"},
          {.vocab_size = 280, .added_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", say, open, close}})
          .value();
  LoadedModel loaded;
  loaded.tokenizer = std::make_unique<Tokenizer>(Tokenizer::parse(json, "tokenizer").value());
  loaded.chat = make_chat_family("qwen2.5", *loaded.tokenizer).value();
  const auto id = [&](const std::string& text) { return loaded.tokenizer->id_of(text).value(); };
  const TokenId line_end = loaded.tokenizer->encode("\n").at(0);
  loaded.model = std::make_unique<Model>(testing::chain_model(
      loaded.tokenizer->vocab_size(), 4096,
      {{line_end, id(say)}, {id(say), id(open)}, {id(open), id(close)}, {id(close), id("<|im_end|>")}}));
  return loaded;
}

class Served {
 public:
  explicit Served(LoadedModel model = random_model(), const TextServiceOptions& options = {})
      : model_(std::move(model)), service_(*model_.model, *model_.tokenizer, options), api_(model_, service_, "m", 1) {}

  HttpReply post(const std::string& path, const std::string& body, const HttpConnection& connection) {
    return api_.answer({.method = "POST", .path = path, .body = body}, connection);
  }
  HttpReply post(const std::string& path, const std::string& body) { return post(path, body, connection_); }
  HttpReply get(const std::string& path) { return api_.answer({.method = "GET", .path = path}, connection_); }

  Json chat(const std::string& body) { return good(post("/v1/chat/completions", body)); }
  Json completion(const std::string& body) { return good(post("/v1/completions", body)); }

  /// The events of a streamed answer, the last one left out.
  std::vector<Json> events(const std::string& path, const std::string& body) {
    const HttpReply reply = post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::string all;
    while (const auto piece = reply.pieces()) all += *piece;
    std::vector<Json> events;
    EXPECT_TRUE(all.ends_with(kLastEvent)) << all;
    for (const std::string_view line : split_lines(all))
      if (line.starts_with("data: {")) events.push_back(parse_json(line.substr(6), "event").value());
    return events;
  }

  const LoadedModel& model() const { return model_; }
  TextService& service() { return service_; }

 private:
  static Json good(const HttpReply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    return parse_json(reply.body, "answer").value();
  }

  LoadedModel model_;
  TextService service_;
  TestConnection connection_;
  OpenAiApi api_;
};

std::string user(const std::string& text, const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": ")" + text + "\"}], " + fields + "}";
}

const std::string kSampled =
    R"("temperature": 0.9, "top_p": 0.95, "seed": 7, "max_tokens": 20, "return_token_ids": true,
                                "logprobs": true)";

/// What the command `generate` says to the same prompts.
std::vector<GeneratedText> generated(const LoadedModel& model, const std::vector<std::vector<TokenId>>& prompts,
                                     const GenerateOptions& options) {
  std::vector<GeneratedText> texts;
  GenerateEvents events;
  events.on_text = [&](const GeneratedText& text) {
    texts.push_back(text);
    return true;
  };
  EXPECT_TRUE(generate(*model.model, *model.tokenizer, prompts, options, events));
  return texts;
}

Json json_ids_of(const GeneratedText& text) {
  Json ids = Json::array();
  for (const TokenDraw& draw : text.draws) ids.push_back(draw.token);
  return ids;
}

TEST(OpenAiApi, AChatSaysWhatGenerateSaysBitForBit) {
  Served served;
  for (const bool greedy : {true, false}) {
    const int samples = greedy ? 1 : 3;
    const Json answer = served.chat(user("task", greedy ? R"("temperature": 0, "max_tokens": 20, "logprobs": true,
                                                              "return_token_ids": true)"
                                                        : kSampled + R"(, "n": 3)"));
    const auto prompt = served.model().chat->render_opening(std::vector<Message>{{"user", "task"}}, "").tokens;
    const auto texts = generated(
        served.model(), {prompt},
        {.sampling = greedy ? SamplingOptions{.temperature = 0} : SamplingOptions{.temperature = 0.9, .top_p = 0.95},
         .samples = samples,
         .max_tokens = 20,
         .stop_tokens = answer_end_tokens(served.model()),
         .seed = 7});
    EXPECT_EQ(answer["prompt_token_ids"], Json(prompt));
    std::size_t tokens = 0;
    ASSERT_EQ(answer["choices"].size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Json& choice = answer["choices"][i];
      EXPECT_EQ(choice["token_ids"], json_ids_of(texts[i]));
      EXPECT_EQ(choice["finish_reason"], texts[i].finish == Finish::Length ? "length" : "stop");
      ASSERT_EQ(choice["logprobs"]["content"].size(), texts[i].draws.size());
      for (std::size_t t = 0; t < texts[i].draws.size(); ++t)
        EXPECT_EQ(choice["logprobs"]["content"][t]["logprob"].get<double>(),
                  static_cast<double>(texts[i].draws[t].log_prob));
      tokens += texts[i].draws.size();
    }
    EXPECT_EQ(answer["usage"]["prompt_tokens"], prompt.size());
    EXPECT_EQ(answer["usage"]["completion_tokens"], tokens);
  }
}

TEST(OpenAiApi, CompletionsOfSeveralPromptsAreGeneratesTextOrIds) {
  Served served;
  const Tokenizer& tokenizer = *served.model().tokenizer;
  const std::vector<std::vector<TokenId>> prompts{tokenizer.encode("I look"), tokenizer.encode("the task")};
  const std::string fields = R"(, "temperature": 0.9, "seed": 7, "n": 2, "max_tokens": 9, "return_token_ids": true})";
  const Json texts = served.completion(R"({"prompt": ["I look", "the task"])" + fields);
  const Json ids = served.completion("{\"prompt\": " + Json(prompts).dump() + fields);
  EXPECT_EQ(texts["choices"], ids["choices"]);
  const auto expected =
      generated(served.model(), prompts, {.sampling = {.temperature = 0.9}, .samples = 2, .max_tokens = 9, .seed = 7});
  ASSERT_EQ(texts["choices"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(texts["choices"][i]["token_ids"], json_ids_of(expected[i]));
    EXPECT_EQ(texts["choices"][i]["prompt_token_ids"], Json(prompts[i / 2]));
    EXPECT_EQ(texts["choices"][i]["index"], i);
  }
}

TEST(OpenAiApi, AStreamedAnswerIsTheWholeOneInPieces) {
  Served served;
  const std::string whole_body = user("task", kSampled + R"(, "n": 2, "top_logprobs": 2)");
  const Json whole = served.chat(whole_body);
  std::string body = whole_body;
  body.insert(1, R"("stream": true, "stream_options": {"include_usage": true}, )");
  std::vector<std::string> texts(2), finishes(2);
  std::vector<Json> ids(2, Json::array()), log_probs(2, Json::array());
  Json usage, prompt;
  for (const Json& event : served.events("/v1/chat/completions", body)) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    if (!event["usage"].is_null()) usage = event["usage"];
    if (event.contains("prompt_token_ids")) prompt = event["prompt_token_ids"];
    for (const Json& choice : event["choices"]) {
      const auto i = choice["index"].get<std::size_t>();
      texts[i] += choice["delta"].value("content", "");
      if (!choice["finish_reason"].is_null()) finishes[i] += choice["finish_reason"].get<std::string>();
      if (choice.contains("token_ids"))
        ids[i].insert(ids[i].end(), choice["token_ids"].begin(), choice["token_ids"].end());
      if (!choice["logprobs"].is_null())
        for (const Json& one : choice["logprobs"]["content"]) log_probs[i].push_back(one);
    }
  }
  EXPECT_EQ(usage, whole["usage"]);
  EXPECT_EQ(prompt, whole["prompt_token_ids"]);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& choice = whole["choices"][i];
    EXPECT_EQ(texts[i], choice["message"]["content"]);
    EXPECT_EQ(finishes[i], choice["finish_reason"]);
    EXPECT_EQ(ids[i], choice["token_ids"]);
    EXPECT_EQ(log_probs[i], choice["logprobs"]["content"]);
  }
}

TEST(OpenAiApi, AStreamedCompletionIsTheWholeOneInPieces) {
  Served served;
  const std::string body = R"({"prompt": "I look", "temperature": 0.9, "seed": 3, "max_tokens": 25, "logprobs": 2)";
  const Json choice = served.completion(body + "}")["choices"][0];
  std::string text;
  Json log_probs{{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
  for (const Json& event : served.events("/v1/completions", body + R"(, "stream": true})")) {
    text += event["choices"][0]["text"].get<std::string>();
    for (auto& [key, list] : log_probs.items())
      for (const Json& one : event["choices"][0]["logprobs"][key]) list.push_back(one);
  }
  EXPECT_EQ(text, choice["text"]);
  EXPECT_EQ(log_probs, choice["logprobs"]);
}

TEST(OpenAiApi, ASeedsTextIsTheSameAloneAndBeside31Others) {
  Served served(random_model(), {.batch = 8, .queue = 64});
  const auto body = [](int i) {
    return user("task " + std::to_string(i % 5), R"("temperature": 1, "max_tokens": )" + std::to_string(10 + i) +
                                                     R"(, "logprobs": true, "seed": )" + std::to_string(i));
  };
  std::vector<Json> alone, together(32);
  for (int i = 0; i < 32; ++i) alone.push_back(served.chat(body(i))["choices"]);
  std::vector<std::thread> clients;
  for (int i = 0; i < 32; ++i)
    clients.emplace_back([&, i] { together[static_cast<std::size_t>(i)] = served.chat(body(i))["choices"]; });
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(together[i], alone[i]) << "request " << i;
}

TEST(OpenAiApi, WithoutASeedDrawsDiffer) {
  Served served;
  const std::string body = user("task", R"("temperature": 1, "max_tokens": 20)");
  EXPECT_NE(served.chat(body)["choices"], served.chat(body)["choices"]);
}

TEST(OpenAiApi, StopStringsEndATextAndAreLeftOut) {
  Served served;
  const std::string fields = R"("temperature": 0, "max_tokens": 30)";
  const std::string whole = served.chat(user("task", fields))["choices"][0]["message"]["content"];
  std::string stop;  // of whole characters
  for (std::size_t i = 4; i + 2 <= whole.size() && stop.empty(); ++i)
    if (std::isgraph(static_cast<unsigned char>(whole[i])) && std::isgraph(static_cast<unsigned char>(whole[i + 1])))
      stop = whole.substr(i, 2);
  ASSERT_FALSE(stop.empty()) << whole;
  const Json cut = served.chat(user("task", fields + ", \"stop\": " + Json(stop).dump()))["choices"][0];
  EXPECT_EQ(cut["message"]["content"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut["finish_reason"], "stop");
}

const std::string kTool = R"("tools": [{"type": "function", "function": {"name": "look_up", "parameters":
    {"type": "object"}}}])";

TEST(OpenAiApi, CallsAreReadWhereToolsAreOffered) {
  Served served(calling_model());
  const Json choice = served.chat(user("a", R"("temperature": 0, )" + kTool))["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "I look.");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
  const Json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"], (Json{{"name", "look_up"}, {"arguments", R"({"word": "up"})"}}));
  for (const std::string& none : {kTool + R"(, "tool_choice": "none")", std::string(R"("n": 1)")}) {
    const Json text = served.chat(user("a", R"("temperature": 0, )" + none))["choices"][0];
    EXPECT_EQ(text["finish_reason"], "stop");
    EXPECT_THAT(text["message"]["content"].get<std::string>(), HasSubstr("<tool_call>"));
    EXPECT_FALSE(text["message"].contains("tool_calls"));
  }
  // The answer goes back as it is, with the result.
  Json messages = Json::array({{{"role", "user"}, {"content", "a"}}, choice["message"]});
  messages.push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "found"}});
  const Json next = served.chat("{\"return_token_ids\": true, \"temperature\": 0, \"messages\": " + messages.dump() +
                                ", " + kTool + "}");
  const std::vector<TokenId> prompt = next["prompt_token_ids"];
  EXPECT_THAT(
      served.model().tokenizer->decode(prompt),
      HasSubstr("<|im_start|>assistant\nI look.\n<tool_call>\n{\"name\": \"look_up\", \"arguments\": {\"word\": "
                "\"up\"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nfound\n</tool_response>"));
}

TEST(OpenAiApi, AStreamTellsCallsOnceTheyAreWhole) {
  Served served(calling_model());
  std::string content, finish;
  Json calls = Json::array(), ids = Json::array();
  const std::string body = user("a", R"("temperature": 0, "stream": true, "return_token_ids": true, )" + kTool);
  for (const Json& event : served.events("/v1/chat/completions", body)) {
    const Json& choice = event["choices"][0];
    content += choice["delta"].value("content", "");
    for (const Json& call : choice["delta"].value("tool_calls", Json::array())) calls.push_back(call);
    for (const Json& id : choice.value("token_ids", Json::array())) ids.push_back(id);
    if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
  }
  EXPECT_EQ(content, "I look.");
  EXPECT_EQ(finish, "tool_calls");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["index"], 0);
  EXPECT_EQ(calls[0]["function"]["name"], "look_up");
  EXPECT_EQ(ids.size(), 4u);
}

TEST(OpenAiApi, AClientThatLeavesFreesItsPlace) {
  Served served(calling_model(), {.batch = 1, .queue = 8});
  const std::string endless = R"({"prompt": [5], "max_tokens": 4000, "temperature": 1)";
  TestConnection gone;
  gone.open = false;
  EXPECT_EQ(served.post("/v1/completions", endless + "}", gone).status, 499);
  {
    HttpReply stream = served.post("/v1/completions", endless + R"(, "stream": true})");
    EXPECT_TRUE(stream.pieces());
    EXPECT_TRUE(stream.pieces());
  }
  EXPECT_EQ(served.completion(R"({"prompt": "a", "max_tokens": 2})")["choices"].size(), 1u);
}

TEST(OpenAiApi, AFullQueueAsksToComeLater) {
  Served served(calling_model(), {.batch = 1, .queue = 0});
  const HttpReply stream =
      served.post("/v1/completions", R"({"prompt": [5], "max_tokens": 4000, "temperature": 1, "stream": true})");
  const HttpReply busy = served.post("/v1/completions", R"({"prompt": "a"})");
  EXPECT_EQ(busy.status, 503);
  const std::string* retry = find_header(busy.headers, "retry-after");
  ASSERT_NE(retry, nullptr);
  EXPECT_EQ(*retry, "1");
}

TEST(OpenAiApi, RequestsThatTheModelCannotAnswerAreRefusedByField) {
  Served served(random_model(), {.batch = 2, .queue = 2});
  const auto error = [&](const std::string& path, const std::string& body, int status) {
    const HttpReply reply = served.post(path, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return parse_json(reply.body, "error").value()["error"];
  };
  const std::string chat = "/v1/chat/completions", completions = "/v1/completions";
  EXPECT_EQ(error(chat, user("a", R"("model": "other")"), 404)["param"], "model");
  EXPECT_EQ(error(chat, user("a", R"("n": 5)"), 400)["param"], "n");
  EXPECT_EQ(error(chat, "{", 400)["type"], "invalid_request_error");
  EXPECT_EQ(error(completions, R"({"prompt": [[5], [9999]]})", 400)["param"], "prompt[1]");
  EXPECT_EQ(error(completions, Json{{"prompt", std::vector<int>(600, 5)}}.dump(), 400)["message"],
            "prompt: has 600 tokens; there is room for 511");
  EXPECT_EQ(error("/v1/embeddings", "{}", 404)["type"], "not_found_error");
  EXPECT_EQ(served.get(chat).status, 404);
  const Json near_the_end = served.completion(
      Json{{"prompt", std::vector<int>(505, 5)}, {"max_tokens", 100}, {"return_token_ids", true}}.dump());
  EXPECT_EQ(near_the_end["choices"][0]["token_ids"].size(), 7u);
}

TEST(OpenAiApi, SystemMessagesAtTheStartBecomeOne) {
  Served served;
  const Json answer = served.chat(R"({"messages": [{"role": "system", "content": "A"}, {"role": "developer", "content":
      "B"}, {"role": "user", "content": "C"}], "max_tokens": 1, "return_token_ids": true})");
  EXPECT_EQ(served.model().tokenizer->decode(answer["prompt_token_ids"].get<std::vector<TokenId>>()),
            "<|im_start|>system\nA\n\nB<|im_end|>\n<|im_start|>user\nC<|im_end|>\n<|im_start|>assistant\n");
}

TEST(OpenAiApi, LargeRequestsThatComeTogetherAreAllAnswered) {
  Served served;
  const std::string body = R"({"prompt": ")" + std::string(std::size_t{3} << 19, 'a') + "\"}";
  std::vector<std::string> answers(3);
  {
    std::vector<std::jthread> clients;
    for (std::string& answer : answers)
      clients.emplace_back([&] { answer = served.post("/v1/completions", body).body; });
  }
  for (const std::string& answer : answers) EXPECT_THAT(answer, HasSubstr("tokens; there is room for"));
}

TEST(OpenAiApi, SaysWhatItServesAndThatItIsWell) {
  Served served;
  EXPECT_EQ(served.get("/health").status, 200);
  EXPECT_EQ(parse_json(served.get("/v1/models").body, "models").value()["data"][0]["id"], "m");
  EXPECT_EQ(served.get("/v1/models/m").status, 200);
  EXPECT_EQ(served.get("/v1/models/n").status, 404);
}

}  // namespace
}  // namespace carnot
