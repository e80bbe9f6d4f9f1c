#include "carnot/core/collectives/gradient_exchange.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/optim/chunks.h"

namespace carnot {
namespace {

// Measured over the loopback: shorter messages take longer in all, longer ones take memory.
constexpr std::int64_t kBucketElements = 1 << 20;

std::vector<std::int64_t> sizes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  return sizes;
}

bool is_double(const at::Tensor& tensor) { return tensor.scalar_type() == at::kDouble; }

}  // namespace

/// Called by a backward pass when it has added to a parameter's gradient.
class GradientExchange::FinalGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  FinalGradient(GradientExchange& exchange, std::size_t parameter, std::function<void()> changed)
      : exchange_(exchange), parameter_(parameter), changed_(std::move(changed)) {}

  void operator()(const at::Tensor&) override {
    CARNOT_CHECK(!exchange_.final_[parameter_], "a gradient that had left was added to");
    exchange_.final_[parameter_] = true;
    changed_();
  }

 private:
  GradientExchange& exchange_;
  std::size_t parameter_;
  std::function<void()> changed_;
};

std::int64_t bucket_elements(int ranks) { return std::max(kBucketElements, ranks * kChunkElements); }

GradientExchange::GradientExchange(Collectives& collectives, std::vector<at::Tensor> parameters, int shards,
                                   ShardSum sum)
    : collectives_(collectives),
      parameters_(std::move(parameters)),
      shards_(shards),
      how_(sum),
      layout_(sizes_of(parameters_), collectives.size(), kChunkElements, bucket_elements(collectives.size())),
      final_(parameters_.size(), false),
      left_(layout_.num_buckets()) {
  CARNOT_CHECK_GE(shards, 1);
  CARNOT_CHECK_EQ(shards % collectives.size(), 0);
  const auto doubles = std::count_if(parameters_.begin(), parameters_.end(), is_double);
  CARNOT_CHECK(doubles == 0 || doubles == static_cast<std::ptrdiff_t>(parameters_.size()), "two number types");
  if (doubles > 0) type_ = at::kDouble;
}

GradientExchange::~GradientExchange() { forget_passes(); }

void GradientExchange::expect_last_pass(std::function<void()> changed) {
  if (!travels()) return;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[p], std::make_unique<FinalGradient>(*this, p, changed));
  expects_ = true;
}

void GradientExchange::forget_passes() {
  if (!std::exchange(expects_, false)) return;
  for (const at::Tensor& parameter : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
}

bool GradientExchange::is_final(int bucket) const {
  const auto pieces = layout_.pieces(layout_.bucket(bucket));
  return std::all_of(pieces.begin(), pieces.end(), [this](const TensorPiece& piece) { return final_[piece.tensor]; });
}

at::Tensor GradientExchange::take_gradients(int bucket) {
  const IndexRange place = layout_.bucket(bucket);
  at::Tensor numbers = at::empty({place.size()}, at::TensorOptions().dtype(type_));
  for (const TensorPiece& piece : layout_.pieces(place)) {
    const at::Tensor part = numbers.slice(0, piece.in_range.begin, piece.in_range.end);
    at::Tensor& gradient = parameters_[piece.tensor].mutable_grad();
    if (!gradient.defined()) {
      part.zero_();
      continue;
    }
    part.copy_(gradient.reshape(-1).slice(0, piece.in_tensor.begin, piece.in_tensor.end));
    if (piece.in_tensor.begin == 0) gradient = at::Tensor();  // buckets leave from the row's end
  }
  return numbers;
}

void GradientExchange::begin(int bucket, const std::string& what) {
  in_flight_.make_room();
  const at::Tensor numbers = take_gradients(bucket);
  const bool first = rounds_ == 0 || how_ == ShardSum::Fast;
  in_flight_.add(how_ == ShardSum::Fast ? collectives_.begin_sum(numbers, what)
                                        : collectives_.begin_exchange(numbers, layout_.part_sizes(bucket), what),
                 [this, bucket, first](const at::Tensor& received) { add(bucket, first, received); });
}

void GradientExchange::add(int bucket, bool first, const at::Tensor& received) {
  const int own = collectives_.rank();
  if (!sum_.defined()) sum_ = at::empty({layout_.slice_size(own)}, received.options());
  const IndexRange place = layout_.place_in_slice(bucket, own);
  at::Tensor sum = sum_.slice(0, place.begin, place.end);
  if (how_ == ShardSum::Fast) {
    const std::int64_t begin = layout_.part(bucket, own).begin - layout_.bucket(bucket).begin;
    sum.copy_(received.slice(0, begin, begin + place.size()));
    return;
  }
  for (int rank = 0; rank < collectives_.size(); ++rank) {
    if (first && rank == 0)
      sum.copy_(received[0]);  // not added to zeros: -0 stays
    else
      sum.add_(received[rank]);
  }
}

bool GradientExchange::begin_final(const std::string& what) {
  const at::NoGradGuard no_grad;
  if (!travels()) return true;
  for (; left_ > 0 && is_final(left_ - 1) && in_flight_.has_room(); --left_) begin(left_ - 1, what);
  return left_ == 0;
}

void GradientExchange::add_round(const std::string& what) {
  CARNOT_CHECK_LT(rounds_, num_rounds());
  forget_passes();
  if (travels()) {  // else the gradients stay where they are, and the next shard's are added to them
    const at::NoGradGuard no_grad;
    for (; left_ > 0; --left_) begin(left_ - 1, what);
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
  }
  final_.assign(final_.size(), false);
  left_ = layout_.num_buckets();
  ++rounds_;
}

at::Tensor GradientExchange::finish() {
  const at::NoGradGuard no_grad;
  CARNOT_CHECK_EQ(rounds_, num_rounds());
  in_flight_.finish();
  rounds_ = 0;
  return std::exchange(sum_, at::Tensor());
}

}  // namespace carnot
