#include "carnot/worlds/search_qa/names.h"

#include <array>
#include <string_view>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {
namespace {

// Few stems and endings, so that a byte-pair vocabulary reaches every name through few intermediate pieces.
constexpr std::array<std::string_view, 24> kStems = {"Bal", "Ber", "Cor", "Dan", "Dor", "Fen", "Gil", "Har",
                                                     "Hol", "Jor", "Kel", "Lam", "Lin", "Mar", "Mer", "Nor",
                                                     "Pel", "Ral", "Ros", "Sim", "Tal", "Tor", "Ven", "Wil"};
constexpr std::array<std::array<std::string_view, 4>, 5> kEndings = {{
    {"eda", "win", "ilo", "una"},
    {"croft", "strand", "low", "gate"},
    {"haven", "wich", "stow", "minster"},
    {"avia", "oria", "esse", "undy"},
    {"dyne", "tron", "wares", "mills"},
}};

std::string lower_first(std::string_view stem) {
  std::string text(stem);
  text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

}  // namespace

std::vector<std::string> invent_names(NameKind kind, int count) {
  CARNOT_CHECK_GE(count, 0);
  CARNOT_CHECK_LE(count, kMostNames);
  const auto& endings = kEndings[static_cast<std::size_t>(kind)];
  RandomStream random(derive_seed(0, "search_names", static_cast<std::uint64_t>(kind)));

  std::vector<std::string> names, longer;
  for (auto ending : endings)
    for (auto stem : kStems) {
      names.push_back(std::string(stem) + std::string(ending));
      for (auto second : kStems) longer.push_back(std::string(stem) + lower_first(second) + std::string(ending));
    }
  random.shuffle(names);
  random.shuffle(longer);
  names.insert(names.end(), longer.begin(), longer.end());
  names.resize(count);
  return names;
}

}  // namespace carnot
