#include "carnot/worlds/webshop/splits.h"

#include <algorithm>
#include <numeric>

#include "carnot/core/base/check.h"
#include "carnot/worlds/python/python_random.h"

namespace carnot {
namespace {

constexpr std::uint64_t kRagenPermutationSeed = 42, kRagenTrainSeed = 10000, kRagenValidationSeed = 123;
constexpr std::uint32_t kVerlAgentValidationSeed = 1000;  // above the training seed

std::vector<std::size_t> counted(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

}  // namespace

ShopRanges::ShopRanges(std::size_t goals) : all(goals) {
  constexpr std::size_t kPublished = 3000, kTest = 500, kValidation = 1000;
  test = goals >= kPublished ? kTest : std::max<std::size_t>(1, goals / 10);
  validation = goals >= kPublished ? kValidation : std::max<std::size_t>(1, goals / 5);
}

std::vector<std::size_t> numpy_permutation(NumpyRandomState& random, std::size_t count) {
  std::vector<std::size_t> numbers = counted(count);
  for (std::size_t i = count; i-- > 1;) std::swap(numbers[i], numbers[random.randint(i + 1)]);
  return numbers;
}

ShopOrder::ShopOrder(std::size_t goals, const ShopOrderOptions& options)
    : options_(options),
      ranges_(goals),
      epochs_(goals - std::min(goals - 1, ranges_.train_begin()), options.seed, "webshop_train_goals"),
      draws_(static_cast<std::uint32_t>(options.seed)) {
  CARNOT_CHECK_GE(goals, std::size_t{3});
  if (options_.splits == ShopSplits::Ragen) {
    permutation_ = counted(goals);
    PythonRandom(kRagenPermutationSeed).shuffle(permutation_);
  } else if (options_.splits == ShopSplits::VerlAgent) {
    NumpyRandomState random(static_cast<std::uint32_t>(options.seed) + kVerlAgentValidationSeed);
    permutation_ = numpy_permutation(random, ranges_.test);
  }
}

std::size_t ShopOrder::permuted(std::size_t begin, std::size_t count, std::uint64_t index) const {
  return permutation_[begin + index % count];
}

std::size_t ShopOrder::train(std::int64_t index) {
  CARNOT_CHECK_GE(index, 0);
  switch (options_.splits) {
    case ShopSplits::Ragen:
      return permuted(ranges_.train_begin(), ranges_.all - ranges_.train_begin(),
                      kRagenTrainSeed + static_cast<std::uint64_t>(index));
    case ShopSplits::VerlAgent: return drawn(index);
    case ShopSplits::WebShop: break;
  }
  return ranges_.train_begin() + epochs_.row(index);
}

std::size_t ShopOrder::drawn(std::int64_t index) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = ranges_.all - ranges_.test;
  const auto each = std::min(static_cast<std::size_t>(options_.draws_per_step), count);
  while (drawn_.size() <= static_cast<std::size_t>(index)) {
    const auto permutation = numpy_permutation(draws_, count);
    for (std::size_t i = 0; i < each; ++i) drawn_.push_back(ranges_.test + permutation[i]);
  }
  return drawn_[static_cast<std::size_t>(index)];
}

std::size_t ShopOrder::validation(std::int64_t index) {
  CARNOT_CHECK_GE(index, 0);
  const auto number = static_cast<std::uint64_t>(index);
  return instance(options_.splits == ShopSplits::Ragen ? kRagenValidationSeed + number : number);
}

std::size_t ShopOrder::num_validation() const {
  const bool test = options_.splits == ShopSplits::VerlAgent || options_.validation == ShopValidation::Test;
  return test ? ranges_.test : ranges_.validation;
}

std::size_t ShopOrder::instance(std::uint64_t seed) {
  const std::size_t count = num_validation();
  if (options_.splits == ShopSplits::VerlAgent) return permuted(0, count, seed);
  const std::size_t begin = options_.validation == ShopValidation::Test ? 0 : ranges_.test;
  return options_.splits == ShopSplits::Ragen ? permuted(begin, count, seed) : begin + seed % count;
}

}  // namespace carnot
