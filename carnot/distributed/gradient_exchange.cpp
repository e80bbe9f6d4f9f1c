#include "carnot/distributed/gradient_exchange.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "carnot/base/check.h"
#include "carnot/optim/chunks.h"

namespace carnot {
namespace {

std::vector<std::int64_t> sizes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  return sizes;
}

bool is_double(const at::Tensor& tensor) { return tensor.scalar_type() == at::kDouble; }

}  // namespace

GradientExchange::GradientExchange(Collectives& collectives, std::vector<at::Tensor> parameters, int shards,
                                   ShardSum sum)
    : collectives_(collectives),
      parameters_(std::move(parameters)),
      shards_(shards),
      how_(sum),
      layout_(sizes_of(parameters_), collectives.size(), kChunkElements) {
  CARNOT_CHECK_GE(shards, 1);
  CARNOT_CHECK_EQ(shards % collectives.size(), 0);
  const auto doubles = std::count_if(parameters_.begin(), parameters_.end(), is_double);
  CARNOT_CHECK(doubles == 0 || doubles == static_cast<std::ptrdiff_t>(parameters_.size()), "two number types");
  row_ = at::empty({layout_.size()}, at::TensorOptions().dtype(doubles > 0 ? at::kDouble : at::kFloat));
}

void GradientExchange::fill_row() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const IndexRange place = layout_.tensor(i);
    const at::Tensor part = row_.slice(0, place.begin, place.end);
    const at::Tensor gradient = parameters_[i].grad();
    if (gradient.defined())
      part.copy_(gradient.reshape(-1));
    else
      part.zero_();
    parameters_[i].mutable_grad() = at::Tensor();
  }
}

void GradientExchange::add_round(const std::string& what) {
  const at::NoGradGuard no_grad;
  CARNOT_CHECK_LT(rounds_, num_rounds());
  if (how_ == ShardSum::Fast) {  // the gradients stay where they are, and the next shard's are added to them
    if (++rounds_ == num_rounds()) fill_row();
    return;
  }
  fill_row();
  const at::Tensor received = collectives_.exchange(row_, layout_, what);
  for (int rank = 0; rank < collectives_.size(); ++rank) {
    if (rounds_ == 0 && rank == 0)
      sum_ = received[0].clone();  // not added to zeros: -0 stays
    else
      sum_.add_(received[rank]);
  }
  ++rounds_;
}

at::Tensor GradientExchange::finish(const std::string& what) {
  const at::NoGradGuard no_grad;
  CARNOT_CHECK_EQ(rounds_, num_rounds());
  rounds_ = 0;
  if (how_ == ShardSum::Ordered) return std::exchange(sum_, at::Tensor());
  collectives_.sum(row_, what);
  const IndexRange own = layout_.slice(collectives_.rank());
  return row_.slice(0, own.begin, own.end);
}

}  // namespace carnot
