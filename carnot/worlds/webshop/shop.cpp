#include "carnot/worlds/webshop/shop.h"

#include <algorithm>
#include <numeric>

#include "carnot/core/base/random.h"
#include "carnot/core/base/utf8.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/worlds/webshop/reward.h"

namespace carnot {
namespace {

constexpr std::uint64_t kGoalShuffleSeed = 233;
constexpr Bm25Options kLucene{.k1 = 0.9, .b = 0.4, .arithmetic = Bm25Arithmetic::Lucene};

}  // namespace

void ShopOptions::fields(FieldVisitor& visit) {
  visit.field("task_source", task_source, "folder with WebShop's files: products, attributes, human instructions");
  visit.field("products_file", products_file, "file of products; empty: of task_source");
  visit.field("attributes_file", attributes_file, "file of attributes and instructions; empty: of task_source");
  visit.field("human_file", human_file, "file of instructions that people wrote; empty: of task_source, if it has one");
  visit.field("num_products", num_products, "products of the file, from the first on; 0: all", between(0, 1e8));
  enum_field(visit, "goals", goals, {"synthetic", "human"},
             "instructions made of attributes and options, or those that people wrote");
  visit.field("price_seed", price_seed, "of prices drawn from ranges, and of the goals' price bounds", between(0, 1e8));
}

Result<std::shared_ptr<const Shop>> Shop::open(const ShopOptions& options) {
  if (options.task_source.empty() && (options.products_file.empty() || options.attributes_file.empty()))
    return Error{
        "env.task_source: names no folder; expected one with WebShop's files, or env.products_file and "
        "env.attributes_file"};
  const auto files = find_shop_files(
      options.task_source,
      {.products = options.products_file, .attributes = options.attributes_file, .human = options.human_file});
  if (!files) return Error{"env.task_source: " + files.error().message};
  if (options.goals == ShopGoalKind::Human && files->human.empty())
    return Error{"env.goals: human ones need a file of human instructions; " + options.task_source + " holds none"};
  CARNOT_ASSIGN_OR_RETURN(auto products, read_shop_products(*files, static_cast<std::size_t>(options.num_products)));
  return make(std::move(products), options.goals, options.price_seed);
}

Result<std::shared_ptr<const Shop>> Shop::make(std::vector<ShopProduct> products, ShopGoalKind kind, int price_seed) {
  PythonRandom draws(static_cast<std::uint64_t>(price_seed));
  std::vector<double> prices = draw_prices(products, draws);
  CARNOT_ASSIGN_OR_RETURN(auto goals, list_goals(products, prices, kind, draws));
  if (goals.empty()) return Error{"env.goals: no product has an instruction of this kind"};
  PythonRandom(kGoalShuffleSeed).shuffle(goals);
  return std::shared_ptr<const Shop>(
      std::make_shared<const Shop>(std::move(products), std::move(prices), kind, std::move(goals)));
}

Shop::Shop(std::vector<ShopProduct> products, std::vector<double> prices, ShopGoalKind kind, std::vector<GoalKey> goals)
    : products_(std::move(products)),
      prices_(std::move(prices)),
      kind_(kind),
      goals_(std::move(goals)),
      by_asin_(products_.size()) {
  std::iota(by_asin_.begin(), by_asin_.end(), 0);
  std::ranges::sort(by_asin_, {}, [&](int number) -> const std::string& { return product(number).asin; });
  std::vector<std::string> texts;
  texts.reserve(products_.size());
  for (const int number : by_asin_) texts.push_back(product(number).indexed_text());
  index_ = Bm25Index(texts, kLucene, lucene_english_words);
}

template <class Fits>
std::vector<int> Shop::all_that(const Fits& fits) const {
  std::vector<int> found;
  for (int number = 0; number < num_products(); ++number)
    if (fits(product(number))) found.push_back(number);
  return found;
}

std::vector<int> Shop::search(std::string_view keywords, std::uint64_t draw) const {
  const std::string_view first = keywords.substr(0, keywords.find(' '));
  const std::string_view rest = keywords.substr(std::min(first.size() + 1, keywords.size()));
  if (first == "<r>") {
    RandomStream random(derive_seed(draw, "webshop_random_products"));
    std::vector<int> drawn(products_.size());
    std::iota(drawn.begin(), drawn.end(), 0);
    const std::size_t count = std::min<std::size_t>(kShopResults, drawn.size());
    for (std::size_t i = 0; i < count; ++i) std::swap(drawn[i], drawn[i + random.below(drawn.size() - i)]);
    drawn.resize(count);
    return drawn;
  }
  if (first == "<a>")
    return all_that(
        [&](const ShopProduct& p) { return std::ranges::find(p.attributes, stripped(rest)) != p.attributes.end(); });
  if (first == "<c>") {
    const std::string_view category = rest.substr(0, rest.find(' '));
    return all_that([&](const ShopProduct& p) { return p.category == stripped(category); });
  }
  if (first == "<q>") return all_that([&](const ShopProduct& p) { return p.query == stripped(rest); });

  std::vector<int> found;
  for (const SearchHit& hit : index_.search(keywords, kShopResults))
    found.push_back(by_asin_[static_cast<std::size_t>(hit.document)]);
  return found;
}

double Shop::reward(const ShopGoal& goal, int bought, const std::vector<std::string>& chosen) const {
  return shop_reward(product(bought), product(goal.product), goal, chosen, price(bought));
}

}  // namespace carnot
