#include "carnot/optim/adamw_parts.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/base/check.h"
#include "carnot/base/random.h"
#include "carnot/optim/stochastic_rounding.h"
#include "carnot/optim/update.h"

namespace carnot {
namespace {

constexpr std::int64_t kPieceElements = 1 << 20;  // of a tensor, that are widened at a time

/// Some elements of a stored tensor in the type that they are computed in: its own memory where it has that type.
struct Piece {
  Piece(const at::Tensor& tensor, std::int64_t first_element, at::ScalarType computed)
      : stored(tensor.view(-1).slice(0, first_element, std::min(first_element + kPieceElements, tensor.numel()))),
        wide(stored.to(computed)) {}

  /// `number` is that of its first element in the whole weight.
  void store(std::int64_t update, const std::string& name, std::int64_t number) const {
    if (wide.scalar_type() == stored.scalar_type()) return;
    round_stochastically(wide, derive_seed(static_cast<std::uint64_t>(update), name), number, stored);
  }

  at::Tensor stored, wide;
};

}  // namespace

void AdamWOptions::fields(FieldVisitor& visit) {
  visit.field("beta1", beta1, "decay of the mean of gradients", Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("beta2", beta2, "decay of the mean of squared gradients", Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("epsilon", epsilon, "added to the root of the mean square", above(0));
  visit.field("weight_decay", weight_decay, "decoupled decay of matrices, per unit of learning rate", at_least(0));
  visit.field("max_grad_norm", max_grad_norm, "gradients are scaled down to this global norm", above(0));
  visit.field("master_weights", master_weights,
              "keep a float32 copy of bfloat16 weights; off: updates are rounded stochastically");
  visit.field("moments", moments, "what the moments are kept in", one_of({"float32", "bfloat16"}));
}

std::string name_of_part(const std::string& weight, std::int64_t first) {
  return first == 0 ? weight : weight + "@" + std::to_string(first);
}

AdamWParts::AdamWParts(std::vector<WeightPart> parts, const AdamWOptions& options) : options_(options) {
  const at::NoGradGuard no_grad;
  for (WeightPart& part : parts) {
    const at::Tensor& values = part.values;
    CARNOT_CHECK(values.is_contiguous(), part.name);
    const bool wide = values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble;
    // detach() shares memory: stepping the master steps the weights.
    const at::Tensor master = wide || !options.master_weights ? values.detach() : values.detach().to(at::kFloat);
    const at::ScalarType computed = values.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto moments = master.options().dtype(options.moments == "bfloat16" ? at::kBFloat16 : computed);
    slots_.push_back({.part = std::move(part),
                      .master = master,
                      .first = at::zeros(master.sizes(), moments),
                      .second = at::zeros(master.sizes(), moments)});
  }
}

StepReport AdamWParts::step(double learning_rate, const std::vector<at::Tensor>& gradients, double norm) {
  const at::NoGradGuard no_grad;
  CARNOT_CHECK_EQ(gradients.size(), slots_.size());
  if (!std::isfinite(norm)) {
    ++num_skipped_;
    return {.grad_norm = norm, .skipped = true};
  }

  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  AdamWUpdate u{// The 1e-6 is that of PyTorch's clip_grad_norm_.
                .gradient_scale = std::min(1.0, options_.max_grad_norm / (norm + 1e-6)),
                .beta1 = options_.beta1,
                .beta2 = options_.beta2,
                .epsilon = options_.epsilon,
                .keep = 1,
                .step_size = learning_rate / (1 - std::pow(options_.beta1, t)),
                .inverse_root = 1 / std::sqrt(1 - std::pow(options_.beta2, t))};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    u.keep = slot.part.decays ? 1 - learning_rate * options_.weight_decay : 1;
    update(slot, u, gradients[i]);
    if (slot.master.scalar_type() != slot.part.values.scalar_type()) copy_rounded(slot.master, slot.part.values);
    // Raw pointers wrote the weights: those who cache something derived from them look at this counter.
    slot.part.values.unsafeGetTensorImpl()->bump_version();
  }
  return {.grad_norm = norm, .skipped = false};
}

void AdamWParts::update(Slot& slot, const AdamWUpdate& update, const at::Tensor& gradient) {
  const at::ScalarType computed = slot.master.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor given = gradient.defined() ? gradient.contiguous() : at::zeros_like(slot.master);
  for (std::int64_t first = 0; first < slot.master.numel(); first += kPieceElements) {
    Piece weight(slot.master, first, computed);
    Piece mean(slot.first, first, computed), square(slot.second, first, computed);
    adamw_update(update, Piece(given, first, computed).wide, weight.wide, mean.wide, square.wide);
    const std::int64_t number = slot.part.first + first;
    weight.store(num_updates_, slot.part.name, number);
    mean.store(num_updates_, slot.part.name + ".first_moment", number);
    square.store(num_updates_, slot.part.name + ".second_moment", number);
  }
}

AdamWParts::Parameters AdamWParts::state() const {
  Parameters tensors;
  for (const Slot& slot : slots_) {
    const std::string name = name_of_part(slot.part.name, slot.part.first);
    tensors.emplace_back(name + ".first_moment", slot.first);
    tensors.emplace_back(name + ".second_moment", slot.second);
    if (slot.master.scalar_type() != slot.part.values.scalar_type())
      tensors.emplace_back(name + ".master", slot.master);
  }
  return tensors;
}

Status AdamWParts::load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) {
  const Parameters own = state();
  if (const Status status = check_optimizer_state(own, tensors); !status) return status;
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : own) at::Tensor(tensor).copy_(given.at(name));
  for (Slot& slot : slots_)
    if (slot.master.scalar_type() != slot.part.values.scalar_type()) copy_rounded(slot.master, slot.part.values);
  num_updates_ = num_updates;
  num_skipped_ = num_skipped;
  return Done{};
}

Status check_optimizer_state(const Optimizer::Parameters& expected, const Optimizer::Parameters& tensors) {
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
