#include "carnot/serving/text_service.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <thread>

#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using testing::small_tokenizer;

constexpr milliseconds kPatience{60'000};

Model make_model() {
  return Model(ModelConfig{.vocab_size = small_tokenizer().vocab_size(),
                           .hidden_size = 32,
                           .intermediate_size = 48,
                           .num_layers = 1,
                           .num_heads = 2,
                           .num_kv_heads = 1,
                           .head_dim = 16,
                           .max_positions = 4096},
               3, at::TensorOptions().dtype(at::kFloat), 0.4);
}

const Model& served_model() {
  static const Model model = make_model();
  return model;
}

TextJob job(int samples, int max_tokens) {
  return {.prompt = {5, 6, 7}, .samples = samples, .sampling = {.temperature = 1}, .max_tokens = max_tokens};
}

std::vector<TextPiece> all_of(TextService::Order& order) {
  std::vector<TextPiece> all;
  while (!order.is_finished())
    for (TextPiece& piece : order.take(kPatience)) all.push_back(std::move(piece));
  return all;
}

void wait_until_idle(const TextService& service) {
  while (!service.is_idle()) std::this_thread::sleep_for(milliseconds(1));
}

TEST(TextService, WholeTextsComeAtOnceAndPiecesMakeThemUp) {
  TextService service(served_model(), small_tokenizer(), {.batch = 4, .queue = 4});
  const auto whole = service.submit({job(2, 9), job(2, 9)}, Delivery::Whole);
  const std::vector<TextPiece> texts = all_of(*whole);
  ASSERT_EQ(texts.size(), 4u);
  const auto pieces = service.submit({job(2, 9), job(2, 9)}, Delivery::AsSampled);
  std::vector<std::string> said(4);
  std::vector<std::size_t> tokens(4);
  for (const TextPiece& piece : all_of(*pieces)) {
    said[static_cast<std::size_t>(piece.text_number)] += piece.text;
    tokens[static_cast<std::size_t>(piece.text_number)] += piece.tokens.size();
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(texts[i].text_number, static_cast<int>(i));
    EXPECT_EQ(texts[i].tokens.size(), 9u);
    EXPECT_EQ(texts[i].finish, Finish::Length);
    EXPECT_EQ(said[i], texts[i].text);
    EXPECT_EQ(tokens[i], 9u);
  }
}

TEST(TextService, TakesNoMoreThanMayWait) {
  TextService service(served_model(), small_tokenizer(), {.batch = 1, .cache_tokens = 4096, .queue = 2});
  EXPECT_EQ(service.most_texts(), 3);
  auto first = service.submit({job(3, 4000)}, Delivery::Whole);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(service.submit({job(1, 1)}, Delivery::Whole), nullptr);
  first.reset();
  wait_until_idle(service);
  const auto second = service.submit({job(1, 1)}, Delivery::Whole);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(all_of(*second).size(), 1u);
}

TEST(TextService, AnOrderThatIsGivenUpMakesRoomForTheNext) {
  TextService service(served_model(), small_tokenizer(), {.batch = 1, .cache_tokens = 4096, .queue = 2});
  auto endless = service.submit({job(1, 4000)}, Delivery::AsSampled);
  EXPECT_FALSE(endless->take(kPatience).empty());
  const auto next = service.submit({job(1, 3)}, Delivery::Whole);
  endless.reset();
  ASSERT_EQ(all_of(*next).size(), 1u);
  wait_until_idle(service);
}

TEST(TextService, AfterClosingItFinishesWhatItHas) {
  TextService service(served_model(), small_tokenizer(), {});
  const auto order = service.submit({job(1, 20)}, Delivery::Whole);
  service.close();
  EXPECT_EQ(service.submit({job(1, 1)}, Delivery::Whole), nullptr);
  EXPECT_EQ(all_of(*order).size(), 1u);
}

TEST(TextService, AFailureOfTheEngineReachesEveryCaller) {
  Model broken = make_model();
  for (const NamedTensor& weight : broken.parameters())
    if (weight.name == "model.norm.weight") weight.tensor.fill_(std::numeric_limits<float>::quiet_NaN());
  TextService service(broken, small_tokenizer(), {});
  const auto order = service.submit({job(1, 5)}, Delivery::Whole);
  EXPECT_THROW(all_of(*order), std::runtime_error);
  EXPECT_NE(service.failure(), nullptr);
  EXPECT_EQ(service.submit({job(1, 5)}, Delivery::Whole), nullptr);
}

}  // namespace
}  // namespace carnot
