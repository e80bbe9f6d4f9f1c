// Products of bfloat16 matrices, each kernel set against oneDNN, on the shapes of Qwen2.5-0.5B and
// SmolLM2-135M.
//
//   bfloat16_gemm_bench [THREADS] [ROUNDS] [ROWS ...]
//
// THREADS (one per processor), ROUNDS (5) of ours and theirs, alternating, ROWS (1 8 32 256 2048). For products of few
// rows the weights rotate through 256 MiB, as those of a model's layers do. oneDNN is LibTorch's linear, with plain
// weights and with weights packed beforehand; the faster one counts. Prints GFLOP/s of the fastest round, and the ratio
// of the processor time that both took (medians), which neighbours disturb less.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "processor_time.h"

namespace carnot {
namespace {

using kernel::BFloat16;
using kernel::BFloat16Rows;

struct Product {
  const char* name;
  std::int64_t depth, columns;
};
constexpr Product kProducts[] = {{"query, key, value", 896, 1152},
                                 {"attention output", 896, 896},
                                 {"gate and up", 896, 9728},
                                 {"down", 4864, 896},
                                 {"head", 896, 151936},
                                 {"query, key, value", 576, 960},
                                 {"attention output", 576, 576},
                                 {"gate and up", 576, 3072},
                                 {"down", 1536, 576},
                                 {"head", 576, 49152}};
constexpr std::int64_t kRotated = std::int64_t{256} << 20;  // bytes
constexpr std::int64_t kFewRows = 32;
constexpr std::int64_t kMostHeadRows = 256;

const BFloat16* data_of(const at::Tensor& x) { return reinterpret_cast<const BFloat16*>(x.data_ptr<at::BFloat16>()); }

/// Seconds of a call: on the wall, and of processors.
struct Cost {
  double wall = 0, processors = 0;
};

/// One way to multiply; call(i) uses the i-th copy of the weights.
struct Contestant {
  std::string name;
  std::function<void(std::size_t)> call;
  std::vector<Cost> rounds{};

  double best() const {
    double best = rounds[0].wall;
    for (const Cost& cost : rounds) best = std::min(best, cost.wall);
    return best;
  }
  double processors() const {
    std::vector<double> all;
    for (const Cost& cost : rounds) all.push_back(cost.processors);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

Cost cost_of(const Contestant& contestant, int calls) {
  using Clock = std::chrono::steady_clock;
  const double processors = processor_seconds();
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) contestant.call(static_cast<std::size_t>(i));
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  return {.wall = wall / calls, .processors = (processor_seconds() - processors) / calls};
}

at::Tensor call_mkldnn(const char* name, std::vector<c10::IValue> stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack[0].toTensor();
}
at::Tensor packed_by_onednn(const at::Tensor& weight, std::int64_t rows) {
  return call_mkldnn("mkldnn::_reorder_linear_weight", {weight, rows});
}
at::Tensor linear_of_packed(const at::Tensor& x, const at::Tensor& weight) {
  const c10::List<std::optional<at::Scalar>> none;
  return call_mkldnn("mkldnn::_linear_pointwise", {x, weight, c10::IValue(), "none", c10::IValue(none), ""});
}

/// The largest difference from float64 among a few results, in units of bfloat16's rounding.
double error_of(const at::Tensor& y, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor rows = at::tensor({std::int64_t{0}, x.size(0) / 2, x.size(0) - 1});
  const at::Tensor columns = at::tensor({std::int64_t{0}, weight.size(0) / 3, weight.size(0) - 1});
  const at::Tensor exact =
      x.index_select(0, rows).to(at::kDouble).mm(weight.index_select(0, columns).to(at::kDouble).t());
  const at::Tensor got = y.index_select(0, rows).index_select(1, columns).to(at::kDouble);
  return ((got - exact).abs() / (exact.abs() + 0.1)).max().item<double>() * 256;
}

void compare(const Product& product, std::int64_t rows, int rounds) {
  const std::int64_t bytes = product.depth * product.columns * 2;
  const std::int64_t copies = rows <= kFewRows ? std::max<std::int64_t>(1, kRotated / bytes) : 1;
  const auto options = at::TensorOptions().dtype(at::kBFloat16);
  const at::Tensor x = at::randn({rows, product.depth}, options);
  std::vector<at::Tensor> weights, theirs;
  std::vector<kernel::PackedBFloat16> ours(static_cast<std::size_t>(copies));
  for (kernel::PackedBFloat16& packed : ours) {
    weights.push_back(weights.empty() ? at::randn({product.columns, product.depth}, options) : weights[0].clone());
    theirs.push_back(packed_by_onednn(weights.back(), rows));
    const BFloat16Rows view{data_of(weights.back()), product.columns, product.depth};
    packed.pack_transposed({&view, 1}, product.depth);
  }
  at::Tensor y;
  std::vector<Contestant> contestants;
  for (const kernel::BFloat16KernelSet& set : kernel::bfloat16_kernel_sets()) {
    if (set.missing != nullptr) continue;
    contestants.push_back({set.kernels->name, [&, kernels = set.kernels](std::size_t i) {
                             y = at::empty({rows, product.columns}, options);
                             kernel::gemm(*kernels, {data_of(x), rows, product.depth}, ours[i % ours.size()],
                                          {.rounded = reinterpret_cast<BFloat16*>(y.data_ptr<at::BFloat16>()),
                                           .row_stride = product.columns});
                           }});
  }
  const std::size_t sets = contestants.size();
  contestants.push_back({"linear", [&](std::size_t i) { y = at::linear(x, weights[i % weights.size()]); }});
  contestants.push_back({"packed", [&](std::size_t i) { y = linear_of_packed(x, theirs[i % theirs.size()]); }});
  std::vector<int> calls;
  for (const Contestant& contestant : contestants) {
    contestant.call(0);
    if (const double error = error_of(y, x, weights[0]); !(error < 1))
      std::printf("WRONG: %s differs by %.1f roundings\n", contestant.name.c_str(), error);
    calls.push_back(std::max(1, static_cast<int>(0.02 / cost_of(contestant, 2).wall)));
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contestants.size(); ++i)
      contestants[i].rounds.push_back(cost_of(contestants[i], calls[i]));
  const Contestant& peer = *std::min_element(contestants.begin() + static_cast<std::ptrdiff_t>(sets), contestants.end(),
                                             [](const auto& a, const auto& b) { return a.best() < b.best(); });
  const double operations = 2e-9 * double(rows) * double(product.depth) * double(product.columns);
  std::printf("%5lld  %-18s %4lld x %6lld  oneDNN (%s) %7.1f ", static_cast<long long>(rows), product.name,
              static_cast<long long>(product.depth), static_cast<long long>(product.columns), peer.name.c_str(),
              operations / peer.best());
  for (std::size_t i = 0; i < sets; ++i)
    std::printf("| %s %7.1f %5.2f %5.2f ", contestants[i].name.c_str(), operations / contestants[i].best(),
                peer.best() / contestants[i].best(), peer.processors() / contestants[i].processors());
  std::printf("\n");
  std::fflush(stdout);
}

void run(int threads, int rounds, const std::vector<std::int64_t>& rows) {
  keep_freed_memory();
  set_num_threads(threads);
  at::set_num_threads(threads);
  const c10::InferenceMode inference;
  std::printf("%d threads, GFLOP/s; behind each set the ratio to oneDNN of time and of processor time\n", threads);
  for (std::int64_t count : rows)
    for (const Product& product : kProducts)
      if (product.columns < 40000 || count <= kMostHeadRows) compare(product, count, rounds);
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  const int threads = count > 1 ? std::atoi(values[1]) : static_cast<int>(std::thread::hardware_concurrency());
  const int rounds = count > 2 ? std::atoi(values[2]) : 5;
  std::vector<std::int64_t> rows;
  for (int i = 3; i < count; ++i) rows.push_back(std::atoll(values[i]));
  if (rows.empty()) rows = {1, 8, 32, 256, 2048};
  carnot::run(std::max(1, std::min(threads, carnot::kMaxThreads)), std::max(1, rounds), rows);
}
