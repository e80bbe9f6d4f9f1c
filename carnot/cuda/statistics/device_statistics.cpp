#include "carnot/cuda/statistics/device_statistics.h"

#include <ATen/Functions.h>
#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>

#include "carnot/core/base/log.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/token_gradients.h"

namespace carnot {

Result<cuda::CurrentStream> current_cuda_stream() {
  // From LibTorch's C interface (torch/csrc/inductor/aoti_torch/c/shim.h), which is stable between versions.
  using Function = std::int32_t(std::int32_t device, void** stream);
  constexpr const char* kName = "aoti_torch_get_current_cuda_stream";
  auto* function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, kName));
  if (function == nullptr) return Error{"this LibTorch lacks aoti_torch_get_current_cuda_stream"};
  return cuda::CurrentStream([function](int device) {
    void* stream = nullptr;
    if (function(device, &stream) != 0) throw std::runtime_error("LibTorch names no stream for the GPU");
    return stream;
  });
}

std::vector<std::string> site_packages_of_libtorch() {
  void* loaded = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  link_map* map = nullptr;
  if (loaded == nullptr || dlinfo(loaded, RTLD_DI_LINKMAP, &map) != 0) return {};
  // site-packages/torch/lib/libtorch_cpu.so
  const std::filesystem::path packages = std::filesystem::path(map->l_name).parent_path().parent_path().parent_path();
  dlclose(loaded);
  return packages.empty() ? std::vector<std::string>() : std::vector{packages.string()};
}

namespace {

/// Rows [first, first + rows) of a tensor with one number for each token; null if the tensor is undefined.
template <class T>
T* rows_from(const at::Tensor& numbers_T, std::int64_t first) {
  T* data = data_or_null<T>(numbers_T);
  return data == nullptr ? nullptr : data + first;
}

template <class T>
void statistics_of_strips(const StatisticsInputs& inputs, StatisticsOutputs& out, cuda::StatisticsKernels& kernels) {
  const TokenStatistics& s = out.statistics;
  for_strips(inputs, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor logits = unrounded_product(inputs.hidden_TH.narrow(0, first, rows), inputs.head_VH.t());
    kernels.forward(cuda::StatisticsForward<T>{.logits = logits.data_ptr<T>(),
                                               .rows = rows,
                                               .vocabulary = logits.size(1),
                                               .inverse_temperature = static_cast<T>(1 / inputs.temperature),
                                               .targets = rows_from<std::int64_t>(inputs.targets_T, first),
                                               .logprob = rows_from<T>(s.logprob_T, first),
                                               .entropy = rows_from<T>(s.entropy_T, first),
                                               .logsumexp = rows_from<T>(s.logsumexp_T, first),
                                               .removed = inputs.removed,
                                               .clamped_entropy = rows_from<T>(s.clamped_entropy_T, first),
                                               .kept_logsumexp = rows_from<T>(out.kept_logsumexp_T, first),
                                               .threshold = rows_from<T>(out.threshold_T, first),
                                               .tie_limit = rows_from<std::int64_t>(out.tie_limit_T, first)});
  });
}

/// T: type of logits, S: of their gradients in memory, Stored: LibTorch's name for S.
template <class T, class S, class Stored>
InputGradients gradients_of_strips(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                   const StatisticsGradients& gradients, cuda::StatisticsKernels& kernels) {
  const TokenStatistics& s = saved.statistics;
  const at::Tensor& head = inputs.head_VH;
  at::Tensor dhidden = at::empty_like(inputs.hidden_TH), dhead;
  if (gradients.of_head) dhead = at::zeros_like(head, s.logsumexp_T.options());
  for_strips(inputs, [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor x = inputs.hidden_TH.narrow(0, first, rows);
    const at::Tensor logits = unrounded_product(x, head.t());
    const at::Tensor dlogits =
        std::is_same_v<T, S> ? logits : at::empty(logits.sizes(), logits.options().dtype(x.scalar_type()));
    kernels.backward(
        cuda::StatisticsBackward<T, S>{.logits = logits.data_ptr<T>(),
                                       .rows = rows,
                                       .vocabulary = logits.size(1),
                                       .inverse_temperature = static_cast<T>(1 / inputs.temperature),
                                       .targets = rows_from<std::int64_t>(inputs.targets_T, first),
                                       .entropy = rows_from<T>(s.entropy_T, first),
                                       .logsumexp = rows_from<T>(s.logsumexp_T, first),
                                       .g_logprob = rows_from<T>(gradients.logprob_T, first),
                                       .g_entropy = rows_from<T>(gradients.entropy_T, first),
                                       .g_logsumexp = rows_from<T>(gradients.logsumexp_T, first),
                                       .removed = inputs.removed,
                                       .clamped_entropy = rows_from<T>(s.clamped_entropy_T, first),
                                       .kept_logsumexp = rows_from<T>(saved.kept_logsumexp_T, first),
                                       .threshold = rows_from<T>(saved.threshold_T, first),
                                       .g_clamped_entropy = rows_from<T>(gradients.clamped_entropy_T, first),
                                       .tie_limit = rows_from<std::int64_t>(saved.tie_limit_T, first),
                                       .of_logits = reinterpret_cast<S*>(dlogits.data_ptr<Stored>())});
    dhidden.narrow(0, first, rows).copy_(unrounded_product(dlogits, head));
    if (gradients.of_head) dhead.add_(unrounded_product(dlogits.t(), x));
  });
  return {dhidden, dhead};
}

Result<std::unique_ptr<cuda::StatisticsKernels>> compiled_for(int device) {
  CARNOT_ASSIGN_OR_RETURN(auto stream, current_cuda_stream());
  CARNOT_ASSIGN_OR_RETURN(const auto nvrtc, cuda::Nvrtc::open(site_packages_of_libtorch()));
  CARNOT_ASSIGN_OR_RETURN(const auto driver, cuda::CudaDriver::open());
  return cuda::statistics_on_gpu(device, nvrtc, driver, std::move(stream));
}

}  // namespace

cuda::StatisticsKernels* device_statistics_kernels(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<cuda::StatisticsKernels>> of_device;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = of_device.try_emplace(device.index());
  if (!is_new) return found->second.get();
  auto compiled = compiled_for(device.index());
  if (compiled)
    found->second = std::move(compiled).value();
  else
    log_warning("token statistics use LibTorch's operators: " + compiled.error().message);
  return found->second.get();
}

void device_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out, cuda::StatisticsKernels& kernels) {
  if (inputs.hidden_TH.scalar_type() == at::kDouble) return statistics_of_strips<double>(inputs, out, kernels);
  statistics_of_strips<float>(inputs, out, kernels);
}

InputGradients device_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                          const StatisticsGradients& gradients, cuda::StatisticsKernels& kernels) {
  switch (inputs.hidden_TH.scalar_type()) {
    case at::kBFloat16:
      return gradients_of_strips<float, unsigned short, at::BFloat16>(inputs, saved, gradients, kernels);
    case at::kDouble: return gradients_of_strips<double, double, double>(inputs, saved, gradients, kernels);
    default: return gradients_of_strips<float, float, float>(inputs, saved, gradients, kernels);
  }
}

namespace {

class CudaPasses final : public DevicePasses {
 public:
  explicit CudaPasses(cuda::StatisticsKernels& kernels) : kernels_(kernels) {}
  void forward(const StatisticsInputs& inputs, StatisticsOutputs& out) override {
    device_statistics(inputs, out, kernels_);
  }
  InputGradients backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                          const StatisticsGradients& gradients) override {
    return device_statistics_backward(inputs, saved, gradients, kernels_);
  }

 private:
  cuda::StatisticsKernels& kernels_;
};

DevicePasses* passes_of(at::Device device) {
  cuda::StatisticsKernels* kernels = device_statistics_kernels(device);
  if (kernels == nullptr) return nullptr;
  static std::mutex mutex;
  static std::map<int, CudaPasses> of_device;
  const std::lock_guard lock(mutex);
  return &of_device.try_emplace(device.index(), *kernels).first->second;
}

}  // namespace

void offer_cuda_statistics() { offer_device_passes(passes_of); }

}  // namespace carnot
