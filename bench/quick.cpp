// The speed of the parts that decide how fast a model runs, in about a minute, without a peer and without a model.
//
//   quick_bench [--json]
//
// Prints a table, or with --json a JSON object on a line for each row: name (with the unit of `ours`), ours, peer,
// ratio, limit_fraction, peak_mebibytes. `peer` and `ratio` are null: nothing else is measured. `limit_fraction` is the
// share of the best rate of this machine, measured in the same run: reading from memory, or multiplying with all
// operands in the cache; null if neither is the limit. `peak_mebibytes` is the most memory that the process held while
// the row was measured. The fastest of five rounds counts.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "attention_layer.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "carnot/core/kernel/gemm/gemm.h"
#include "carnot/core/kernel/gemm/transpose.h"
#include "machine_limits.h"
#include "peak_memory.h"

namespace carnot {
namespace {

using kernel::BFloat16;

// The widest product of Qwen2.5-0.5B's layers, and its vocabulary.
constexpr std::int64_t kDepth = 896, kColumns = 9728, kVocabulary = 151936;

class Report {
 public:
  explicit Report(bool json) : json_(json) {
    peak_mebibytes_since_last_call();
    if (!json_) std::printf("%-64s %10s %14s %14s\n", "", "ours", "limit_fraction", "peak_mebibytes");
  }

  void row(const std::string& name, double ours, std::optional<double> limit = {}) const {
    const double peak = peak_mebibytes_since_last_call();
    if (json_) {
      OrderedJson row{{"name", name}, {"ours", ours}, {"peer", nullptr}, {"ratio", nullptr}};
      row["limit_fraction"] = limit ? OrderedJson(ours / *limit) : OrderedJson();
      row["peak_mebibytes"] = peak;
      std::printf("%s\n", row.dump().c_str());
    } else {
      const std::string fraction = limit ? std::to_string(ours / *limit).substr(0, 4) : "";
      std::printf("%-64s %10.1f %14s %14.0f\n", name.c_str(), ours, fraction.c_str(), peak);
    }
    std::fflush(stdout);
  }

 private:
  bool json_;
};

/// The product of a row count with the weights, for one number type.
template <class Packed, class Rows>
struct Weights {
  std::vector<Packed> copies{};

  template <class T>
  void pack(const std::vector<T>& numbers, std::int64_t columns, std::size_t count) {
    const Rows rows{numbers.data(), columns, kDepth};
    copies.resize(count);
    for (Packed& packed : copies) packed.pack_transposed({&rows, 1}, kDepth);
  }
};

constexpr double operations(std::int64_t rows, std::int64_t columns) { return 2e-9 * double(rows * kDepth * columns); }

/// Weights that are read for one row must come from memory: more copies than any cache holds.
constexpr std::size_t kCopies = 16;

void products(const Report& report, double reading) {
  const std::vector<float> weights = random_floats(kDepth * kColumns), rows = random_floats(256 * kDepth);
  std::vector<float> sums(256 * kColumns);
  std::size_t next = 0;
  {
    Weights<kernel::PackedMatrix<float>, kernel::PackedMatrix<float>::Rows> packed;
    packed.pack(weights, kColumns, kCopies);
    const auto seconds = [&](std::int64_t count) {
      return fastest([&] {
        kernel::gemm<float>({.data = rows.data(), .rows = count, .row_stride = kDepth},
                            packed.copies[next++ % packed.copies.size()], sums.data(), kColumns, false);
      });
    };
    report.row("product in float32, 1 row [GB/s of weights]", 4e-9 * kDepth * kColumns / seconds(1), reading);
    packed.copies.resize(1);
    report.row("product in float32, 256 rows [GFLOP/s]", operations(256, kColumns) / seconds(256),
               multiplying_speed_float32(weights));
  }
  const std::vector<BFloat16> narrow = in_bfloat16(weights), narrow_rows = in_bfloat16(rows);
  std::vector<BFloat16> out(256 * kColumns);
  Weights<kernel::PackedBFloat16, kernel::BFloat16Rows> packed;
  packed.pack(narrow, kColumns, 2 * kCopies);
  const auto seconds = [&](std::int64_t count) {
    return fastest([&] {
      kernel::gemm({narrow_rows.data(), count, kDepth}, packed.copies[next++ % packed.copies.size()], out.data(),
                   kColumns);
    });
  };
  report.row("product in bfloat16, 1 row [GB/s of weights]", 2e-9 * kDepth * kColumns / seconds(1), reading);
  packed.copies.resize(1);
  const double multiplying = multiplying_speed_bfloat16(narrow);
  for (std::int64_t count : {32, 256})
    report.row("product in bfloat16, " + std::to_string(count) + " rows [GFLOP/s]",
               operations(count, kColumns) / seconds(count), multiplying);
}

/// The three products of SmolLM2-135M's gate and up in an update, whose sizes are no multiples of a task's: results,
/// and gradients of rows and of weights. multiply(a, rows, stride, packed, columns) is the product.
template <class Packed, class Rows, class T, class Multiply>
void update_products(const Report& report, const std::string& type, const std::vector<T>& weights,
                     const std::vector<T>& rows, double limit, const Multiply& multiply) {
  constexpr std::int64_t kRows = 2048, kIn = 576, kOut = 3072, kTurnedStride = kRows + 32;
  const Rows weight{weights.data(), kOut, kIn}, input{rows.data(), kRows, kIn};
  Packed result, rows_gradient, weights_gradient;
  result.pack_transposed({&weight, 1}, kIn);
  rows_gradient.pack({&weight, 1}, kIn);
  weights_gradient.pack({&input, 1}, kIn);
  std::vector<T> turned(kOut * kTurnedStride);
  const auto row = [&](const char* what, const std::function<void()>& call) {
    report.row("2048 x 576 x 3072 in " + type + ", " + what + " [GFLOP/s]",
               2e-9 * double(kRows * kIn * kOut) / fastest(call), limit);
  };
  row("results", [&] { multiply(rows.data(), kRows, kIn, result, kOut); });
  row("gradient of rows", [&] { multiply(rows.data(), kRows, kOut, rows_gradient, kIn); });
  row("gradient of weights", [&] {
    kernel::transpose(rows.data(), kRows, kOut, kOut, turned.data(), kTurnedStride);
    multiply(turned.data(), kOut, kTurnedStride, weights_gradient, kIn);
  });
}

void update_products(const Report& report) {
  using Floats = kernel::PackedMatrix<float>;
  const std::vector<float> weights = random_floats(3072 * 576), rows = random_floats(2048 * 3072);
  std::vector<float> out(2048 * 3072);
  update_products<Floats, Floats::Rows>(
      report, "float32", weights, rows, multiplying_speed_float32(rows),
      [&](const float* a, std::int64_t count, std::int64_t stride, const Floats& b, std::int64_t columns) {
        kernel::gemm<float>({.data = a, .rows = count, .row_stride = stride}, b, out.data(), columns, false);
      });
  const std::vector<BFloat16> narrow = in_bfloat16(rows);
  update_products<kernel::PackedBFloat16, kernel::BFloat16Rows>(
      report, "bfloat16", in_bfloat16(weights), narrow, multiplying_speed_bfloat16(narrow),
      [&](const BFloat16* a, std::int64_t count, std::int64_t stride, const auto& b, std::int64_t columns) {
        kernel::gemm({a, count, stride}, b, out.data(), columns, false);
      });
}

void attention(const Report& report) {
  const AttentionShape shape{"14 heads, 2 of keys, 64 wide", 14, 2, 64};
  const auto& set = kernel::bfloat16_kernels();
  for (int length : {256, 2048}) {
    AttentionBench bench(shape, 1, length, set);
    report.row("attention in bfloat16, prefill of " + std::to_string(length) + " [tokens/s of a layer]",
               length / fastest([&] { bench.prefill(); }));
  }
  AttentionBench bench(shape, 8, 1024, set);
  bench.prefill();
  report.row("attention in bfloat16, 8 sequences behind 1024 [tokens/s of a layer]",
             8 / fastest([&] { bench.decode(); }));
}

void statistics(const Report& report, double reading) {
  constexpr std::int64_t kRows = 64;
  const std::vector<float> logits = random_floats(kRows * kVocabulary);
  std::vector<float> memory(logits);
  float logsumexp[kRows], entropy[kRows];
  const double seconds = fastest([&] {
    kernel_pool().run(kRows, [&](std::int64_t row) {
      kernel::kernel_table<float>().row_statistics(kVocabulary, 1, memory.data() + row * kVocabulary, logsumexp + row,
                                                   entropy + row);
    });
  });
  // Logits are read from memory at least once.
  report.row("logsumexp and entropy of 151,936 logits [tokens/s]", kRows / seconds, reading * 1e9 / (4 * kVocabulary));
}

void run(bool json) {
  set_num_threads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  const Report report(json);
  const double reading = reading_speed();
  report.row("reading from memory [GB/s]", reading);
  products(report, reading);
  update_products(report);
  attention(report);
  statistics(report, reading);
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  bool json = false;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(values[i]) != "--json")
      return std::fprintf(stderr, "quick_bench: unknown option \"%s\"; expected --json or nothing\n", values[i]), 2;
    json = true;
  }
  carnot::run(json);
}
