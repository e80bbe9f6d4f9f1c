// Check values were printed by CPython 3.11 and numpy 2.4.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "carnot/worlds/python/numpy_random.h"
#include "carnot/worlds/python/python_random.h"

namespace carnot {
namespace {

TEST(PythonRandom, DrawsWhatPythonDraws) {
  PythonRandom random(142);
  EXPECT_EQ(random.random(), 0.5825884393831776);
  EXPECT_EQ(random.random(), 0.6801901358350512);
  std::vector<int> integers;
  for (int i = 0; i < 8; ++i) integers.push_back(random.randint(-3, 9));
  EXPECT_EQ(integers, (std::vector<int>{4, -1, 4, 1, 2, 2, 9, 1}));
  std::vector<int> population(20);
  std::iota(population.begin(), population.end(), 0);
  EXPECT_EQ(random.sample(population, 5), (std::vector<int>{1, 3, 9, 5, 6}));
  std::vector<int> cards(10);
  std::iota(cards.begin(), cards.end(), 0);
  random.shuffle(cards);
  EXPECT_EQ(cards, (std::vector<int>{4, 5, 6, 2, 7, 1, 3, 0, 8, 9}));
  const std::string letters = "abcdefg";
  EXPECT_EQ(random.choice(std::span<const char>(letters)), 'a');
  EXPECT_EQ(random.getrandbits(32), 3892170153u);
  EXPECT_EQ(random.getrandbits(5), 2u);
}

TEST(PythonRandom, SeedsWithEveryWordOfALargeSeed) {
  PythonRandom random((std::uint64_t{1} << 40) + 7);
  EXPECT_EQ(random.random(), 0.6137037779936511);
  EXPECT_EQ(random.random(), 0.8149162973309487);
}

TEST(NumpyRandomState, DrawsWhatNumpyDraws) {
  NumpyRandomState random(0);
  std::vector<std::uint32_t> drawn;
  for (int i = 0; i < 10; ++i) drawn.push_back(random.randint(10));
  EXPECT_EQ(drawn, (std::vector<std::uint32_t>{5, 0, 3, 3, 7, 9, 3, 5, 2, 4}));
  drawn.clear();
  for (int i = 0; i < 6; ++i) drawn.push_back(random.randint(7));
  EXPECT_EQ(drawn, (std::vector<std::uint32_t>{6, 0, 0, 4, 2, 1}));
  EXPECT_EQ(random.randint(1), 0u);
  EXPECT_EQ(random.randint(std::uint64_t{1} << 32), 3400433126u);
}

TEST(NumpyGenerator, DrawsWhatNumpyDraws) {
  EXPECT_EQ(NumpyGenerator(42).random(), 0.7739560485559633);
  NumpyGenerator random(0);
  EXPECT_EQ(random.random(), 0.6369616873214543);
  EXPECT_EQ(random.integers(4), 2u);
  EXPECT_EQ(random.random(), 0.04097352393619469) << "a waiting half-word must not shift the doubles";
  std::vector<std::uint32_t> drawn;
  for (std::uint32_t bound : {4u, 4u, 4u, 1u, 1000u, 3u, 2147483653u}) drawn.push_back(random.integers(bound));
  EXPECT_EQ(drawn, (std::vector<std::uint32_t>{1, 0, 0, 0, 175, 2, 1302740411}));
  EXPECT_EQ(random.random(), 0.7294965609839984);
  const double probabilities[] = {0.2, 0.5, 0.3};
  std::vector<int> chosen;
  for (int i = 0; i < 8; ++i) chosen.push_back(random.choice(probabilities));
  EXPECT_EQ(chosen, (std::vector<int>{1, 2, 2, 0, 2, 0, 2, 0}));
}

TEST(NumpyGenerator, SeedsWithEveryWordOfALargeSeed) {
  NumpyGenerator random((std::uint64_t{1} << 40) + 7);
  EXPECT_EQ(random.random(), 0.829812891829413);
  EXPECT_EQ(random.integers(4), 2u);
}

}  // namespace
}  // namespace carnot
