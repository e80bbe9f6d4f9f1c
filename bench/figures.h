// bench/figures.h -- named figures of a benchmark, and the best time of several.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include "carnot/core/base/json.h"
#include "carnot/core/base/stopwatch.h"

namespace carnot {

/// The figures, as they are printed and written.
class Figures {
 public:
  void add(const std::string& name, double value, const std::string& unit) {
    std::printf("%-44s %12.6g %s\n", name.c_str(), value, unit.c_str());
    std::fflush(stdout);
    values_[name] = value;
  }
  std::string json() const { return values_.dump(1) + "\n"; }

 private:
  Json values_ = Json::object();
};

/// The best of several: other processes on the machine only add time.
inline double seconds_of(const std::function<void()>& body, int times = 5) {
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    const Stopwatch watch;
    body();
    best = std::min(best, watch.seconds());
  }
  return best;
}

}  // namespace carnot
