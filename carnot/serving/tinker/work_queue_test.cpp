#include "carnot/serving/tinker/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "testing/small_model.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr milliseconds kLongEnough{60'000};

std::shared_ptr<Sampler> sampler(std::uint64_t adapter_seed) {
  return std::make_shared<Sampler>([adapter_seed]() -> Result<Model> {
    Model model = testing::small_model({.max_positions = 64});
    if (adapter_seed == 0) return model;
    model.add_adapters({.rank = 2}, adapter_seed);
    for (const NamedTensor& named : model.adapters()) named.tensor.fill_(0.05 * static_cast<double>(adapter_seed));
    return model;
  });
}

SampleWork text(const std::shared_ptr<Sampler>& of, std::uint64_t seed, int samples = 2) {
  return {.sampler = of,
          .job = {.prompt = {1, 2, 3},
                  .samples = samples,
                  .sampling = {.temperature = 1},
                  .key = {.seed = seed},
                  .max_tokens = 9},
          .first_scored = 1};
}

class TinkerQueue : public ::testing::Test {
 protected:
  std::string reply(const std::string& id) {
    const auto found = queue_.reply(id, kLongEnough);
    const auto* reply = std::get_if<TinkerReply>(&found);
    return reply == nullptr ? "" : reply->body;
  }
  /// Keeps the thread busy until the promise is kept.
  void block(std::promise<void>& promise) {
    queue_.submit("block", [&promise] {
      promise.get_future().wait();
      return TinkerReply{};
    });
  }

  WorkQueue queue_{testing::small_tokenizer(), {.batch = 3, .cache_tokens = 64, .queue = 5}, 64};
};

TEST_F(TinkerQueue, DoesWorkOnceAndInTheOrderInWhichItCame) {
  std::vector<int> done;
  std::promise<void> go;
  block(go);
  for (int i = 0; i < 4; ++i) {
    const auto work = [&done, i] {
      done.push_back(i);
      return TinkerReply{.body = std::to_string(i)};
    };
    EXPECT_EQ(queue_.submit("work " + std::to_string(i), work), WorkQueue::Submitted::Taken);
    EXPECT_EQ(queue_.submit("work " + std::to_string(i), work), WorkQueue::Submitted::Known);
  }
  EXPECT_EQ(std::get<WorkQueue::Missing>(queue_.reply("work 0", milliseconds(0))), WorkQueue::Missing::Unfinished);
  EXPECT_EQ(std::get<WorkQueue::Missing>(queue_.reply("other", milliseconds(0))), WorkQueue::Missing::Unknown);
  go.set_value();
  EXPECT_EQ(reply("work 3"), "3");
  EXPECT_EQ(reply("work 3"), "3");
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(queue_.submit("work 3", [] { return TinkerReply{}; }), WorkQueue::Submitted::Known);
}

TEST_F(TinkerQueue, TakesNoMoreThanMayWait) {
  std::promise<void> go;
  block(go);
  for (int i = 1; i < 8; ++i)
    EXPECT_EQ(queue_.submit(std::to_string(i), [] { return TinkerReply{}; }), WorkQueue::Submitted::Taken);
  EXPECT_EQ(queue_.submit("8", [] { return TinkerReply{}; }), WorkQueue::Submitted::Full);
  go.set_value();
  reply("7");
  EXPECT_EQ(queue_.submit("8", [] { return TinkerReply{}; }), WorkQueue::Submitted::Taken);
  queue_.close();
  EXPECT_EQ(queue_.submit("9", [] { return TinkerReply{}; }), WorkQueue::Submitted::Full);
}

TEST_F(TinkerQueue, TextsAreTheSameAloneAndAmongOthersOfTwoPolicies) {
  const auto base = sampler(0), adapted = sampler(1);
  std::vector<std::string> alone;
  for (std::uint64_t i = 0; i < 4; ++i) {
    queue_.submit("alone " + std::to_string(i), text(i % 2 ? base : adapted, i));
    alone.push_back(reply("alone " + std::to_string(i)));
  }
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[0], alone[2]);
  std::promise<void> go;
  block(go);
  for (const std::uint64_t i : {0, 2, 1, 3})
    queue_.submit("with " + std::to_string(i), text(i % 2 ? base : adapted, i));
  go.set_value();
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(reply("with " + std::to_string(i)), alone[i]);
}

TEST_F(TinkerQueue, SaysThatAPolicyCannotBeOpened) {
  const auto broken = std::make_shared<Sampler>([]() -> Result<Model> { return Error{"no such weights"}; });
  queue_.submit("text", text(broken, 1));
  EXPECT_THAT(reply("text"), HasSubstr(R"("category":"user","error":"no such weights")"));
  queue_.submit("next", text(sampler(0), 1));
  EXPECT_FALSE(reply("next").empty());
}

TEST_F(TinkerQueue, EndsWithTheFailureOfItsThread) {
  queue_.submit("bug", []() -> TinkerReply { throw std::runtime_error("a bug"); });
  EXPECT_EQ(std::get<WorkQueue::Missing>(queue_.reply("bug", kLongEnough)), WorkQueue::Missing::Unknown);
  EXPECT_TRUE(queue_.failure());
  EXPECT_EQ(queue_.submit("next", [] { return TinkerReply{}; }), WorkQueue::Submitted::Full);
}

}  // namespace
}  // namespace carnot
