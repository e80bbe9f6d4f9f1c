#include "testing/emulated_statistics.h"

#include "carnot/cuda/device_program.h"

#define CARNOT_KERNEL inline

#define CARNOT_NUMBER float
#define CARNOT_THREADS 32
#define CARNOT_VARIANT emulated_float
#include "carnot/cuda/statistics.cu"
#undef CARNOT_VARIANT
#define CARNOT_VARIANT emulated_rounded_float
#define CARNOT_ROUND_GRADIENTS
#include "carnot/cuda/statistics.cu"
#undef CARNOT_ROUND_GRADIENTS
#undef CARNOT_VARIANT
#undef CARNOT_THREADS
#define CARNOT_VARIANT emulated_full_block
#define CARNOT_THREADS 256
#include "carnot/cuda/statistics.cu"
#undef CARNOT_VARIANT
#undef CARNOT_THREADS
#undef CARNOT_NUMBER
#define CARNOT_NUMBER double
#define CARNOT_THREADS 32
#define CARNOT_VARIANT emulated_double
#include "carnot/cuda/statistics.cu"

namespace carnot::testing {
namespace {

using cuda::StatisticsBackward, cuda::StatisticsForward;

class EmulatedStatistics : public cuda::StatisticsKernels {
 public:
  explicit EmulatedStatistics(ThreadOrder order) : order_(order) {}

  void forward(const StatisticsForward<float>& p) override {
    run(p, [&] { cuda::emulated_float::statistics_forward(p); });
  }
  void forward(const StatisticsForward<double>& p) override {
    run(p, [&] { cuda::emulated_double::statistics_forward(p); });
  }
  void backward(const StatisticsBackward<float, float>& p) override {
    run(p, [&] { cuda::emulated_float::statistics_backward(p); });
  }
  void backward(const StatisticsBackward<double, double>& p) override {
    run(p, [&] { cuda::emulated_double::statistics_backward(p); });
  }
  void backward(const StatisticsBackward<float, unsigned short>& p) override {
    run(p, [&] { cuda::emulated_rounded_float::statistics_backward(p); });
  }

 private:
  template <class Parameters, class Kernel>
  void run(const Parameters& p, Kernel kernel) const {
    emulate_launch(static_cast<unsigned>(p.rows), 32, order_, kernel);
  }

  ThreadOrder order_;
};

}  // namespace

std::unique_ptr<cuda::StatisticsKernels> emulated_statistics(ThreadOrder order) {
  return std::make_unique<EmulatedStatistics>(order);
}

void emulate_full_block(ThreadOrder order, const StatisticsForward<float>& p) {
  static_assert(cuda::emulated_full_block::kThreads == cuda::kBlockThreads);
  emulate_launch(static_cast<unsigned>(p.rows), cuda::kBlockThreads, order,
                 [&] { cuda::emulated_full_block::statistics_forward(p); });
}

}  // namespace carnot::testing
