#include "carnot/cuda/statistics_kernels.h"

#include <array>
#include <utility>

namespace carnot::cuda {
namespace {

class StatisticsOnGpu : public StatisticsKernels {
 public:
  using Kernels = std::array<std::vector<LoadedKernel>, 3>;

  StatisticsOnGpu(int device, CudaDriver driver, CurrentStream stream, Kernels kernels)
      : device_(device), driver_(std::move(driver)), stream_(std::move(stream)), kernels_(std::move(kernels)) {}

  void forward(const StatisticsForward<float>& p) override { launch(StatisticsVariant::Float, 0, p); }
  void forward(const StatisticsForward<double>& p) override { launch(StatisticsVariant::Double, 0, p); }
  void backward(const StatisticsBackward<float, float>& p) override { launch(StatisticsVariant::Float, 1, p); }
  void backward(const StatisticsBackward<double, double>& p) override { launch(StatisticsVariant::Double, 1, p); }
  void backward(const StatisticsBackward<float, unsigned short>& p) override {
    launch(StatisticsVariant::RoundedFloat, 1, p);
  }

 private:
  template <class Parameters>
  void launch(StatisticsVariant variant, std::size_t kernel, const Parameters& p) const {
    if (p.rows == 0) return;
    driver_.launch(kernels_[static_cast<std::size_t>(variant)][kernel], static_cast<unsigned>(p.rows), kBlockThreads,
                   stream_(device_), &p);
  }

  int device_;
  CudaDriver driver_;
  CurrentStream stream_;
  Kernels kernels_;  ///< by variant: forward, backward
};

}  // namespace

Result<std::unique_ptr<StatisticsKernels>> statistics_on_gpu(int device, const Nvrtc& nvrtc, const CudaDriver& driver,
                                                             CurrentStream stream) {
  CARNOT_ASSIGN_OR_RETURN(const auto architecture, driver.architecture(device));
  StatisticsOnGpu::Kernels kernels;
  for (const auto variant : {StatisticsVariant::Float, StatisticsVariant::Double, StatisticsVariant::RoundedFloat}) {
    const DeviceProgram& program = statistics_program(variant);
    CARNOT_ASSIGN_OR_RETURN(const auto code, nvrtc.compile(program, architecture));
    CARNOT_ASSIGN_OR_RETURN(auto loaded, driver.load(device, code, program.kernels));
    kernels[static_cast<std::size_t>(variant)] = std::move(loaded);
  }
  return std::unique_ptr<StatisticsKernels>(
      std::make_unique<StatisticsOnGpu>(device, driver, std::move(stream), std::move(kernels)));
}

}  // namespace carnot::cuda
