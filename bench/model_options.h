// bench/model_options.h -- the command line of benchmarks of one model: [CONFIG] [--dtype TYPE] [--NUMBER N]
// [--SWITCH].
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace carnot {

/// The values that a command line sets.
struct ModelOptions {
  std::string& config;
  std::string& dtype;
  std::vector<std::pair<std::string, int*>> numbers{};    ///< at least 1
  std::vector<std::pair<std::string, bool*>> switches{};  ///< true if present
};

/// A word that is not an option is the config.
inline void read_model_options(int count, char** values, const ModelOptions& options) {
  const auto named = [](const auto& known, const std::string& word) {
    return std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == word; });
  };
  for (int i = 1; i < count; ++i) {
    const std::string word = values[i];
    const auto number = named(options.numbers, word);
    const auto turned_on = named(options.switches, word);
    if (word == "--dtype" && i + 1 < count) {
      options.dtype = values[++i];
    } else if (number != options.numbers.end()) {
      *number->second = i + 1 < count ? std::max(1, std::atoi(values[++i])) : 1;
    } else if (turned_on != options.switches.end()) {
      *turned_on->second = true;
    } else {
      options.config = word;
    }
  }
}

}  // namespace carnot
