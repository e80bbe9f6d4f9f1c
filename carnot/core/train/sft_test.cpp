// SFT on rows: packing, epochs, held-out loss, and rows against rollouts of the same conversation.
#include "carnot/core/train/sft.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "carnot/core/data/rollout_file.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/text/chat_families.h"
#include "testing/prepared_environment.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

const ChatFamily& chat() {
  static const auto made = make_chat_family("chatml", small_tokenizer()).value();
  return *made;
}

std::vector<Demonstration> demonstrations(const std::string& text) {
  std::vector<Demonstration> all;
  for (DemonstratedTask& task : parse_demonstrations(text, "rows", chat(), 4096).value())
    std::ranges::move(task, std::back_inserter(all));
  return all;
}

/// Answers of `count` lengths.
SplitDemonstrations rows_of_lengths(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += nlohmann::json{{"prompt", "heard?"}, {"completion", std::string(static_cast<std::size_t>(3 * i + 1), 'x')}}
                .dump() +
            "\n";
  return {.train = demonstrations(text)};
}

Model model() {
  return Model(ModelConfig{.vocab_size = small_tokenizer().vocab_size(),
                           .hidden_size = 32,
                           .intermediate_size = 48,
                           .num_layers = 2,
                           .num_heads = 4,
                           .num_kv_heads = 2,
                           .head_dim = 8,
                           .max_positions = 512},
               3, at::TensorOptions().dtype(at::kDouble), 0.4);
}

/// A trainer of a fresh model on these rows.
struct Training {
  explicit Training(const SplitDemonstrations& rows, const SftOptions& with = {}, int micro_batch_tokens = 4096,
                    bool share_prefixes = true)
      : options(with) {
    trained.requires_grad(true);
    optimizer = work.make_optimizer(optimizer_weights(trained.trained()), options.optimizer);
    trainer.emplace(trained, work, *optimizer,
                    SftTrainer::Setting{.environment = *environment,
                                        .chat = chat(),
                                        .options = options,
                                        .episode = episode,
                                        .rows = &rows,
                                        .micro_batch_tokens = micro_batch_tokens,
                                        .share_prefixes = share_prefixes,
                                        .seed = 4});
  }

  SftMetrics step(std::int64_t number) { return trainer->step(number).value(); }

  SftOptions options;
  EpisodeOptions episode{};
  std::unique_ptr<EnvironmentFactory> environment = make_environment_factory("skeleton").value();
  Model trained = model();
  OneProcess alone{};
  TrainOptions train{};
  ShardWork work{alone, train};
  std::unique_ptr<Optimizer> optimizer{};
  std::optional<SftTrainer> trainer{};
};

TEST(SftOnRows, PackedEqualsOneRowABatch) {
  const SplitDemonstrations rows = rows_of_lengths(5);
  SftOptions options{.steps = 3, .batch_tokens = 4096, .context_weight = 0.3};
  Training packed(rows, options), single(rows, options, 1);
  for (int step = 0; step < 3; ++step) {
    const SftMetrics a = packed.step(step), b = single.step(step);
    EXPECT_EQ(a.demonstrations, 5);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_NEAR(a.loss, b.loss, 1e-10);
    EXPECT_NEAR(a.context_loss, b.context_loss, 1e-10);
    EXPECT_NEAR(a.grad_norm, b.grad_norm, 1e-8 * a.grad_norm);
  }
}

TEST(SftOnRows, SharedPrefixesEqualRepeatedOnes) {
  for (const double context_weight : {0.0, 0.3}) {
    const SplitDemonstrations rows = rows_of_lengths(6);
    const SftOptions options{.steps = 3, .batch_tokens = 4096, .context_weight = context_weight};
    Training shared(rows, options), repeated(rows, options, 4096, false);
    for (int step = 0; step < 3; ++step) {
      const SftMetrics a = shared.step(step), b = repeated.step(step);
      EXPECT_EQ(a.tokens, b.tokens);
      EXPECT_NEAR(a.loss, b.loss, 1e-10);
      EXPECT_NEAR(a.context_loss, b.context_loss, 1e-10);
      EXPECT_EQ(a.context_loss > 0, context_weight > 0);
      EXPECT_NEAR(a.grad_norm, b.grad_norm, 1e-8 * a.grad_norm);
    }
  }
}

TEST(SftOnRows, AreEachOnceAnEpochInAnotherOrderAndTheSameAfterAResumption) {
  const SplitDemonstrations rows = rows_of_lengths(6);
  const SftOptions options{.steps = 12, .batch_tokens = 1};  // a row a step
  Training straight(rows, options);
  std::vector<std::int64_t> lengths, all;
  for (int step = 0; step < 12; ++step) lengths.push_back(straight.step(step).tokens);
  for (const Demonstration& row : rows.train) all.push_back(std::ssize(row.tokens));
  std::vector<std::int64_t> first(lengths.begin(), lengths.begin() + 6), second(lengths.begin() + 6, lengths.end());
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::ranges::is_permutation(first, all));
  EXPECT_TRUE(std::ranges::is_permutation(second, all));
  for (const int begin : {0, 5, 8}) {
    Training resumed(rows, options);
    for (int step = begin; step < 12; ++step)
      EXPECT_EQ(resumed.step(step).tokens, lengths[static_cast<std::size_t>(step)]);
  }
}

TEST(SftOnRows, AStepHasNoRowTwice) {
  const SplitDemonstrations rows = rows_of_lengths(3);
  Training training(rows, {.steps = 2, .batch_tokens = 100000});
  EXPECT_EQ(training.step(0).demonstrations, 3);
}

TEST(SftOnRows, TheHeldOutLossIsTheMeanOverWhatIsSaid) {
  SplitDemonstrations rows = rows_of_lengths(4);
  rows.held_out = {rows.train[1], rows.train[3]};
  Training training(rows, {.steps = 1}, 40);
  double sum = 0, count = 0;
  const at::NoGradGuard no_gradients;
  for (const Demonstration& row : rows.held_out) {
    const std::vector<std::int64_t> tokens(row.tokens.begin(), row.tokens.end());
    PackedAttention plan;
    plan.offsets.push_back(static_cast<int>(tokens.size()));
    const Model& here = training.trained;
    const at::Tensor logits = here.logits(
        here.hidden(at::tensor(tokens, at::kLong), at::arange(static_cast<std::int64_t>(tokens.size())), plan));
    const at::Tensor log_probs = logits.log_softmax(-1);
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      if (!row.is_said[i]) continue;
      sum -= log_probs[static_cast<std::int64_t>(i) - 1][tokens[i]].item<double>();
      ++count;
    }
  }
  EXPECT_NEAR(training.trainer->held_out_loss(), sum / count, 1e-10);
}

TEST(SftOnRows, FitsThreeOfThem) {
  const SplitDemonstrations rows{
      .train =
          demonstrations(R"({"prompt": "left?", "completion": "heard"})"
                         "\n"
                         R"({"prompt": "brief?", "completion": "be brief"})"
                         "\n"
                         R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "task"},)"
                         R"( {"role": "assistant", "content": "system user"}, {"role": "user", "content": "left"},)"
                         R"( {"role": "assistant", "content": "answer"}]})")};
  SftOptions options{.steps = 80, .context_weight = 0};
  options.schedule = {.learning_rate = 1e-2, .warmup_steps = 5};
  Training training(rows, options);
  const double before = training.step(0).loss;
  for (int step = 1; step < 79; ++step) (void)training.step(step);
  const double after = training.step(79).loss;
  EXPECT_GT(before, 3);
  EXPECT_LT(after, 0.05);
}

/// What a script says and hears, as a row of messages.
nlohmann::json messages_of(const EnvironmentFactory& factory, std::int64_t index, std::uint64_t seed) {
  const auto environment = factory.make_demonstrated(index, 1);
  const auto script = factory.script(*environment, 1, RandomStream(seed));
  const Opening opening = environment->open();
  nlohmann::json messages = {{{"role", "system"}, {"content", opening.system}},
                             {{"role", "user"}, {"content", opening.user}}};
  std::string heard;
  while (true) {
    const PolicyResponse said = script->respond(heard);
    messages.push_back({{"role", "assistant"}, {"content", said.text}});
    const Reply reply = environment->step(said);
    if (reply.done) return {{"messages", messages}};
    heard = reply.text;
    messages.push_back({{"role", "user"}, {"content", heard}});
  }
}

TEST(SftOnRows, AConversationHasTheTokensOfItsRollout) {
  const auto factory = testing::prepared(make_environment_factory("skeleton").value(), {}).value();
  int turns = 0;
  for (int index = 0; index < 5; ++index) {
    Tree tree = demonstrate(*factory, chat(), {.index = index, .seed = 9}).value();
    turns += static_cast<int>(tree.turns.size());
    ASSERT_TRUE(tree.leaves[0].success);
    Group group{.uid = "t", .trees = {std::move(tree)}};
    const auto decode = [](std::span<const TokenId> tokens) { return small_tokenizer().decode(tokens); };
    const auto rollout = demonstrations(rollout_rows(std::vector<Group>{group}, {}, decode));
    const auto row = demonstrations(messages_of(*factory, index, 9).dump());
    ASSERT_EQ(rollout.size(), 1u);
    EXPECT_EQ(row[0].tokens, rollout[0].tokens);
    EXPECT_EQ(row[0].is_said, rollout[0].is_said);
  }
  EXPECT_GT(turns, 10);
}

}  // namespace
}  // namespace carnot
