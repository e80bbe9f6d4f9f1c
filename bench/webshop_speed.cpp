// Pages, searches and purchases per second of the environment `webshop`, on one core.
//
//   webshop_bench FOLDER [NUM_PRODUCTS]
//
// Opens the shop of FOLDER's files and plays scripted purchases of 300 goals. Then times the same actions: alone, with
// the page's text and what it offers after each, and as responses to RAGEN's and verl-agent's prompts; and every search
// of the instructions' words. The median of seven rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "carnot/worlds/ragen/conversation.h"
#include "carnot/worlds/webshop/demonstrator.h"
#include "carnot/worlds/webshop/environment.h"
#include "peak_memory.h"
#include "processor_time.h"

namespace carnot {
namespace {

constexpr std::size_t kGoals = 300;
constexpr int kRounds = 7;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The scripted purchase of a goal.
struct RecordedPurchase {
  std::size_t goal = 0;
  std::vector<std::string> actions{};
};

std::vector<RecordedPurchase> record_purchases(const std::shared_ptr<const Shop>& shop) {
  std::vector<RecordedPurchase> all;
  for (std::size_t i = 0; i < std::min(kGoals, shop->num_goals()); ++i) {
    RecordedPurchase purchase{.goal = i * (shop->num_goals() / std::min(kGoals, shop->num_goals()))};
    WebShop game(shop, purchase.goal);
    const ShopDemonstrator demonstrator(game);
    for (bool done = false; !done && purchase.actions.size() < 12;) {
      purchase.actions.push_back(demonstrator.next().action);
      done = game.step(purchase.actions.back()).done;
    }
    all.push_back(std::move(purchase));
  }
  return all;
}

std::size_t checksum = 0;  // of what the loops computed; printed, so that the compiler removes none of it

/// Prints how many of something `play` does per second; it returns how many it did.
template <class Play>
void measure(const char* what, const Play& play) {
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = seconds_now();
    const std::size_t count = play();
    rates.push_back(static_cast<double>(count) / (seconds_now() - begin));
  }
  std::nth_element(rates.begin(), rates.begin() + kRounds / 2, rates.end());
  const double rate = rates[kRounds / 2];
  std::printf("%-46s %10.0f per second %9.1f us each\n", what, rate, 1e6 / rate);
}

std::size_t play_protocol(const std::vector<RecordedPurchase>& purchases, const std::string& tag, const auto& make) {
  std::size_t turns = 0;
  for (const RecordedPurchase& purchase : purchases) {
    const std::unique_ptr<Environment> environment = make(purchase.goal);
    checksum += environment->open().user.size();
    for (const std::string& action : purchase.actions) {
      const Reply reply = environment->step("<think>so</think><" + tag + ">" + action + "</" + tag + ">");
      checksum += shown_text(reply).size();
      ++turns;
      if (reply.done) break;
    }
  }
  return turns;
}

void measure_game(const std::shared_ptr<const Shop>& shop, const std::vector<RecordedPurchase>& purchases) {
  measure("actions", [&] {
    std::size_t actions = 0;
    for (const RecordedPurchase& purchase : purchases) {
      WebShop game(shop, purchase.goal);
      for (const std::string& action : purchase.actions) checksum += game.step(action).observation.size();
      actions += purchase.actions.size();
    }
    return actions;
  });
  measure("pages: an action, its text, what it offers", [&] {
    std::size_t pages = 0;
    for (const RecordedPurchase& purchase : purchases) {
      WebShop game(shop, purchase.goal);
      for (const std::string& action : purchase.actions) {
        checksum += game.step(action).observation.size() + game.clickables().size();
        ++pages;
      }
    }
    return pages;
  });
  measure("searches", [&] {
    for (const RecordedPurchase& purchase : purchases)
      checksum += shop->search(purchase.actions.front().substr(7), 0).size();
    return purchases.size();
  });
  measure("searches for whole instructions", [&] {
    for (const RecordedPurchase& purchase : purchases)
      checksum += shop->search(shop->goal(purchase.goal).instruction, 0).size();
    return purchases.size();
  });
  measure("purchases: the reward alone", [&] {
    for (const RecordedPurchase& purchase : purchases) {
      const ShopGoal goal = shop->goal(purchase.goal);
      std::vector<std::string> chosen;
      for (const GoalOption& option : goal.options) chosen.push_back(option.value);
      checksum += shop->reward(goal, goal.product, chosen) == 1 ? 1 : 0;
    }
    return purchases.size();
  });
}

void measure_conversations(const std::shared_ptr<const Shop>& shop, const std::vector<RecordedPurchase>& purchases) {
  measure("turns of RAGEN's conversation", [&] {
    const auto text = std::make_shared<const RagenText>(ragen_webshop_text());
    return play_protocol(purchases, "answer", [&](std::size_t goal) -> std::unique_ptr<Environment> {
      return std::make_unique<RagenConversation>(text, RagenBudgets{.max_turns = 12, .max_actions = 12},
                                                 std::make_unique<RagenWebShop>(WebShop(shop, goal)),
                                                 std::map<std::string, std::string>{});
    });
  });
  measure("steps of verl-agent's prompts", [&] {
    return play_protocol(purchases, "action", [&](std::size_t goal) -> std::unique_ptr<Environment> {
      return std::make_unique<VerlAgentShop>(WebShop(shop, goal), VerlAgentShopOptions{});
    });
  });
}

int run(const char* folder, int products) {
  const double begin = seconds_now(), processor_begin = processor_seconds();
  const auto opened = Shop::open({.task_source = folder, .num_products = products});
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  const auto& shop = *opened;
  std::printf("%d products, %zu goals, opened in %.2f s, %.2f s of the processor; at most %.2f GB of memory\n",
              shop->num_products(), shop->num_goals(), seconds_now() - begin, processor_seconds() - processor_begin,
              peak_gigabytes());
  const auto purchases = record_purchases(shop);

  measure_game(shop, purchases);
  measure_conversations(shop, purchases);
  std::printf("(checksum %zu)\n", checksum);
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: webshop_bench FOLDER [NUM_PRODUCTS]\n");
    return 2;
  }
  return carnot::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
}
