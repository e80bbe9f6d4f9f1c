// Attention of bfloat16 models, on the shape of one layer of Qwen2.5-0.5B and on one without shared keys.
//
//   attention_bench [THREADS] [ROUNDS] [SET]
//
// THREADS (one per processor), ROUNDS (5), kernel SET (the fastest of this machine); of the rounds, the median of the
// processors' time counts, which neighbours disturb less than the time on the wall. Prints microseconds for each token
// of a prompt that is prefilled, and for each token that is decoded after a context.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "attention_layer.h"
#include "carnot/core/base/thread_pool.h"
#include "processor_time.h"

namespace carnot {
namespace {

constexpr AttentionShape kShapes[] = {{"14 heads, 2 of keys, 64", 14, 2, 64}, {"8 heads, 8 of keys, 128", 8, 8, 128}};

/// The median of the processors' seconds of a call.
template <class Call>
double seconds_of(int rounds, const Call& call) {
  call();
  const double first = processor_seconds();
  call();
  const int calls = std::max(1, static_cast<int>(0.05 / std::max(1e-6, processor_seconds() - first)));
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    const double start = processor_seconds();
    for (int i = 0; i < calls; ++i) call();
    all.push_back((processor_seconds() - start) / calls);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void run(int threads, int rounds, const kernel::BFloat16Kernels& products) {
  set_num_threads(threads);
  std::printf("%d threads, %s; microseconds of the processors for a token\n", threads, products.name);
  for (const AttentionShape& shape : kShapes) {
    for (int length : {256, 1024, 4096}) {
      AttentionBench bench(shape, 1, length, products);
      std::printf("%-24s prefill %5d           %9.2f\n", shape.name, length,
                  1e6 * seconds_of(rounds, [&] { bench.prefill(); }) / length);
      std::fflush(stdout);
    }
    for (int sequences : {1, 16}) {
      for (int length : {250, 1000, 4000}) {
        AttentionBench bench(shape, sequences, length, products);
        bench.prefill();
        std::printf("%-24s decode %3d behind %5d  %9.2f\n", shape.name, sequences, length,
                    1e6 * seconds_of(rounds, [&] { bench.decode(); }) / sequences);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  const int threads = count > 1 ? std::atoi(values[1]) : static_cast<int>(std::thread::hardware_concurrency());
  const int rounds = count > 2 ? std::atoi(values[2]) : 5;
  const carnot::kernel::BFloat16Kernels* products = &carnot::kernel::bfloat16_kernels();
  for (const auto& set : carnot::kernel::bfloat16_kernel_sets())
    if (count > 3 && set.missing == nullptr && std::string_view(values[3]) == set.kernels->name) products = set.kernels;
  carnot::run(std::max(1, std::min(threads, carnot::kMaxThreads)), std::max(1, rounds), *products);
}
