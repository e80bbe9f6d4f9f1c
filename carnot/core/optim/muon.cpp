#include "carnot/core/optim/muon.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "carnot/core/kernel/gemm/gemm.h"
#include "carnot/core/optim/adamw.h"
#include "carnot/core/optim/norm.h"

namespace carnot {
namespace {

// Of Jordan's polynomial a x + b x^3 + c x^5, which is steepest at 0.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr int kSteps = 5;
constexpr double kSmallestNorm = 1e-7;
constexpr double kAdamWSize = 0.2;  // root mean square of AdamW's updates

template <class T>
at::Tensor product_on_cpu(const at::Tensor& a_MK, const at::Tensor& b_KN) {
  kernel::PackedMatrix<T> packed;
  const typename kernel::PackedMatrix<T>::Rows rows{
      .data = b_KN.const_data_ptr<T>(), .count = b_KN.size(0), .row_stride = b_KN.stride(0)};
  packed.pack({&rows, 1}, b_KN.size(1));
  at::Tensor c_MN = at::empty({a_MK.size(0), b_KN.size(1)}, a_MK.options());
  kernel::gemm<T>({.data = a_MK.const_data_ptr<T>(),
                   .rows = a_MK.size(0),
                   .row_stride = a_MK.stride(0),
                   .depth_stride = a_MK.stride(1)},
                  packed, c_MN.mutable_data_ptr<T>(), c_MN.stride(0), false);
  return c_MN;
}

at::Tensor product(const at::Tensor& a_MK, const at::Tensor& b_KN) {
  if (!a_MK.device().is_cpu()) return at::matmul(a_MK, b_KN);
  if (a_MK.scalar_type() == at::kDouble) return product_on_cpu<double>(a_MK, b_KN);
  return product_on_cpu<float>(a_MK, b_KN);
}

class Muon : public UpdateRule {
 public:
  explicit Muon(const OptimizerOptions& options) : adamw_(make_adamw(options)), momentum_(options.momentum) {}

  std::vector<std::string> kept(WeightKind kind) const override {
    return needs_matrix(kind) ? std::vector<std::string>{".momentum"} : adamw_->kept(kind);
  }
  void update(const UpdateStep& step, const at::Tensor& gradient, at::Tensor& weight,
              std::span<at::Tensor> kept) const override {
    adamw_->update(step, gradient, weight, kept);
  }
  bool needs_matrix(WeightKind kind) const override { return kind == WeightKind::Matrix; }

  void begin_direction(const UpdateStep& step, at::Tensor& gradient, std::span<at::Tensor> kept) const override {
    gradient.mul_(step.gradient_scale);
    kept[0].mul_(momentum_).add_(gradient, 1 - momentum_);
    gradient.mul_(1 - momentum_).add_(kept[0], momentum_);  // Nesterov's
  }
  void finish_direction(at::Tensor& direction_MN) const override {
    orthogonalise(direction_MN);
    const auto longest = static_cast<double>(std::max(direction_MN.size(0), direction_MN.size(1)));
    direction_MN.mul_(kAdamWSize * std::sqrt(longest));
  }

 private:
  std::unique_ptr<UpdateRule> adamw_;
  double momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_muon(const OptimizerOptions& options) { return std::make_unique<Muon>(options); }

void orthogonalise(at::Tensor& matrix_MN) {
  if (matrix_MN.numel() == 0) return;
  const bool is_tall = matrix_MN.size(0) > matrix_MN.size(1);
  at::Tensor x = (is_tall ? matrix_MN.t().contiguous() : matrix_MN) / std::max(global_norm({matrix_MN}), kSmallestNorm);
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor gram = product(x, x.t().contiguous());
    const at::Tensor polynomial = product(gram, gram).mul_(kC).add_(gram, kB);
    x = product(polynomial, x).add_(x, kA);
  }
  matrix_MN.copy_(is_tall ? x.t() : x);
}

}  // namespace carnot
