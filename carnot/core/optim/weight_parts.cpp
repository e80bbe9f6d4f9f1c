#include "carnot/core/optim/weight_parts.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/optim/rounding.h"
#include "carnot/core/optim/rules.h"

namespace carnot {
namespace {

constexpr std::int64_t kPieceElements = 1 << 20;  // of a tensor, that are widened at a time
constexpr const char* kResidual = ".residual";

at::ScalarType computed_in(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor piece_of(const at::Tensor& tensor, std::int64_t first) {
  return tensor.view(-1).slice(0, first, std::min(first + kPieceElements, tensor.numel()));
}

/// Some elements of a stored tensor in the type that they are computed in: its own memory where it has that type.
struct Piece {
  Piece(const at::Tensor& tensor, std::int64_t first, at::ScalarType computed)
      : stored(piece_of(tensor, first)), wide(stored.to(computed)) {}
  /// Of weights, with the other halves that may be kept of them.
  Piece(const at::Tensor& weight, const at::Tensor& other_halves, std::int64_t first, at::ScalarType computed)
      : stored(piece_of(weight, first)) {
    if (other_halves.defined()) residual = piece_of(other_halves, first);
    wide = residual.defined() ? join_halves(stored, residual) : stored.to(computed);
  }

  /// `number` is that of its first element in the whole weight.
  void store(std::int64_t update, const std::string& name, std::int64_t number) const {
    if (wide.scalar_type() == stored.scalar_type()) return;
    if (residual.defined()) return split_halves(wide, stored, residual);
    round_stochastically(wide, derive_seed(static_cast<std::uint64_t>(update), name), number, stored);
  }

  at::Tensor stored, residual{}, wide;
};

}  // namespace

std::string name_of_part(const std::string& weight, std::int64_t first) {
  return first == 0 ? weight : weight + "@" + std::to_string(first);
}

std::vector<KeptTensor> kept_tensors(const UpdateRule& rule, const OptimizerOptions& options, WeightKind kind,
                                     at::ScalarType weight) {
  std::vector<KeptTensor> all;
  const at::ScalarType moments = options.moments == "bfloat16" ? at::kBFloat16 : computed_in(weight);
  for (std::string& suffix : rule.kept(kind)) all.push_back({.suffix = std::move(suffix), .type = moments});
  if (options.master_weights && weight == at::kBFloat16) all.push_back({.suffix = kResidual, .type = at::kShort});
  return all;
}

WeightParts::WeightParts(std::vector<WeightPart> parts, const OptimizerOptions& options)
    : options_(options), rule_(make_update_rule(options)) {
  const at::NoGradGuard no_grad;
  for (WeightPart& part : parts) {
    Slot& slot = slots_.emplace_back();
    slot.part = std::move(part);
    const at::Tensor& values = slot.part.values;
    CARNOT_CHECK(values.is_contiguous(), slot.part.name);
    for (const KeptTensor& kept : kept_tensors(*rule_, options, slot.part.kind, values.scalar_type())) {
      at::Tensor zeros = at::zeros(values.sizes(), values.options().dtype(kept.type).requires_grad(false));
      if (kept.suffix == kResidual) {
        slot.residual = std::move(zeros);
        continue;
      }
      slot.names.push_back(kept.suffix);
      slot.kept.push_back(std::move(zeros));
    }
  }
}

StepReport WeightParts::begin(double learning_rate, double norm) {
  if (!std::isfinite(norm)) {
    ++num_skipped_;
    return {.grad_norm = norm, .skipped = true};
  }
  ++step_.number;
  step_.learning_rate = learning_rate;
  // The 1e-6 is that of PyTorch's clip_grad_norm_.
  step_.gradient_scale = std::min(1.0, options_.max_grad_norm / (norm + 1e-6));
  return {.grad_norm = norm, .skipped = false};
}

UpdateStep WeightParts::step_of(const Slot& slot) const {
  UpdateStep step = step_;
  if (slot.part.kind != WeightKind::Vector) step.keep = 1 - step.learning_rate * options_.weight_decay;
  return step;
}

at::Tensor WeightParts::gradient_of(const Slot& slot, const at::Tensor& gradient) const {
  return gradient.defined() ? gradient.contiguous() : at::zeros_like(slot.part.values);
}

void WeightParts::each_piece(Slot& slot, const PieceBody& body) {
  const at::ScalarType computed = computed_in(slot.part.values.scalar_type());
  for (std::int64_t first = 0; first < slot.part.values.numel(); first += kPieceElements) {
    std::vector<Piece> pieces;
    std::vector<at::Tensor> kept;
    for (const at::Tensor& tensor : slot.kept) kept.push_back(pieces.emplace_back(tensor, first, computed).wide);
    body(first, kept);
    for (std::size_t k = 0; k < pieces.size(); ++k)
      pieces[k].store(step_.number, slot.part.name + slot.names[k], slot.part.first + first);
  }
}

void WeightParts::finish(Slot& slot) {
  // Raw pointers wrote the weights: those who cache something derived from them look at this counter.
  slot.part.values.unsafeGetTensorImpl()->bump_version();
}

void WeightParts::update(std::size_t i, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  Slot& slot = slots_.at(i);
  const at::ScalarType computed = computed_in(slot.part.values.scalar_type());
  const UpdateStep step = step_of(slot);
  const at::Tensor given = gradient_of(slot, gradient);
  each_piece(slot, [&](std::int64_t first, std::span<at::Tensor> kept) {
    Piece weight(slot.part.values, slot.residual, first, computed);
    rule_->update(step, Piece(given, first, computed).wide, weight.wide, kept);
    weight.store(step_.number, slot.part.name, slot.part.first + first);
  });
  finish(slot);
}

at::Tensor WeightParts::direction(std::size_t i, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  Slot& slot = slots_.at(i);
  const at::ScalarType computed = computed_in(slot.part.values.scalar_type());
  const UpdateStep step = step_of(slot);
  at::Tensor direction = gradient_of(slot, gradient).to(computed, /*non_blocking=*/false, /*copy=*/true);
  each_piece(slot, [&](std::int64_t first, std::span<at::Tensor> kept) {
    Piece piece(direction, first, computed);
    rule_->begin_direction(step, piece.wide, kept);
  });
  return direction;
}

void WeightParts::move(std::size_t i, const at::Tensor& direction) {
  const at::NoGradGuard no_grad;
  Slot& slot = slots_.at(i);
  const at::ScalarType computed = computed_in(slot.part.values.scalar_type());
  const UpdateStep step = step_of(slot);
  for (std::int64_t first = 0; first < direction.numel(); first += kPieceElements) {
    Piece weight(slot.part.values, slot.residual, first, computed);
    weight.wide.mul_(step.keep).sub_(Piece(direction, first, computed).wide, step.learning_rate);
    weight.store(step_.number, slot.part.name, slot.part.first + first);
  }
  finish(slot);
}

WeightParts::Tensors WeightParts::state() const {
  Tensors tensors;
  for (const Slot& slot : slots_) {
    const std::string name = name_of_part(slot.part.name, slot.part.first);
    for (std::size_t k = 0; k < slot.kept.size(); ++k) tensors.emplace_back(name + slot.names[k], slot.kept[k]);
    if (slot.residual.defined()) tensors.emplace_back(name + kResidual, slot.residual);
  }
  return tensors;
}

Status WeightParts::load_state(const Tensors& tensors, std::int64_t num_updates, std::int64_t num_skipped) {
  const Tensors own = state();
  CARNOT_RETURN_IF_ERROR(check_optimizer_state(own, tensors));
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : own) at::Tensor(tensor).copy_(given.at(name));
  step_.number = num_updates;
  num_skipped_ = num_skipped;
  return Done{};
}

Status check_optimizer_state(const Optimizer::Tensors& expected, const Optimizer::Tensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (name.ends_with(".master"))
      return Error{"optimizer state: found " + name +
                   ", a whole master weight, as earlier versions kept them; expected " +
                   "its other half, .residual. Start from the checkpoint's weights (model.path) instead of resuming"};
  std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  std::vector<std::string> problems;
  for (const auto& [name, own] : expected) {
    const auto found = given.find(name);
    if (found == given.end())
      problems.push_back("optimizer state: " + name + " is missing");
    else if (found->second.sizes() != own.sizes())
      problems.push_back("optimizer state: " + name + " has shape " + c10::str(found->second.sizes()) + ", expected " +
                         c10::str(own.sizes()));
    else if (found->second.scalar_type() != own.scalar_type())
      problems.push_back("optimizer state: " + name + " has another number type than expected");
    given.erase(name);
  }
  for (const auto& [name, tensor] : given) problems.push_back("optimizer state: " + name + " belongs to no weight");
  return problems.empty() ? Status(Done{}) : join_errors(problems);
}

}  // namespace carnot
