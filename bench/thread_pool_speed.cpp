// How busy neighbours slow down many short parallel loops, such as those of a training step.
//
//   thread_pool_bench [NEIGHBOURS] [THREADS]
//
// Prints how long a round of 10,000 loops takes, each of 8 tasks of about 3 microseconds after 3 serial ones: alone,
// and next to NEIGHBOURS (4) processes that never sleep. THREADS: 0, the default, is one per processor.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "carnot/core/base/thread_pool.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLoops = 10000, kTasks = 8, kRounds = 7;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Work of a fixed amount, whatever the clock says.
void compute(int units) {
  volatile double sum = 0;
  for (int i = 0; i < units; ++i) sum = sum + 1.0 / (i + 1);
}

/// Units of compute() in a microsecond, at best.
double units_per_microsecond() {
  constexpr int kUnits = 200000;
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    compute(kUnits);
    best = std::min(best, seconds_since(start));
  }
  return kUnits / (best * 1e6);
}

void print_rounds(const char* what, ThreadPool& pool, double units) {
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (int loop = 0; loop < kLoops; ++loop) {
      compute(static_cast<int>(3 * units));
      pool.run(kTasks, [&](std::int64_t) { compute(static_cast<int>(3 * units)); });
    }
    seconds.push_back(seconds_since(start));
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("%-24s %8.0f ms (%.0f to %.0f)\n", what, 1e3 * seconds[kRounds / 2], 1e3 * seconds.front(),
              1e3 * seconds.back());
}

std::vector<pid_t> start_neighbours(int count) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0)
      for (;;) compute(1000);
    if (child > 0) children.push_back(child);
  }
  return children;
}

void run(int neighbours, int threads) {
  const double units = units_per_microsecond();
  const std::vector<pid_t> children = start_neighbours(neighbours);
  for (pid_t child : children) kill(child, SIGSTOP);
  {
    ThreadPool pool(threads);
    std::printf("%d threads\n", threads);
    print_rounds("alone", pool, units);
    for (pid_t child : children) kill(child, SIGCONT);
    const std::string what = "next to " + std::to_string(children.size()) + " neighbours";
    print_rounds(what.c_str(), pool, units);
  }
  for (pid_t child : children) kill(child, SIGKILL);
  for (pid_t child : children) waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  const int neighbours = count > 1 ? std::atoi(values[1]) : 4;
  const int threads = count > 2 ? std::atoi(values[2]) : 0;
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  carnot::run(neighbours, threads > 0 ? threads : std::min(processors, carnot::kMaxThreads));
}
