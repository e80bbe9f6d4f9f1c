#include "carnot/optim/adamw.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "carnot/base/check.h"
#include "carnot/optim/chunks.h"
#include "carnot/optim/norm.h"

namespace carnot {
namespace {

/// The numbers of one update; the same for every element of a tensor.
struct Update {
  double gradient_scale;  ///< of the clipping
  double beta1, beta2, epsilon;
  double keep;           ///< 1 - learning rate x decay
  double step_size;      ///< learning rate / (1 - beta1^t)
  double inverse_root;   ///< 1 / sqrt(1 - beta2^t)
};

/// One pass over memory: moments, decay and step. Number is the dtype of master and moments.
template <class Number>
void update_on_cpu(const Update& u, std::int64_t elements, const Number* gradient, Number* weight, Number* first,
                   Number* second) {
  const auto scale = static_cast<Number>(u.gradient_scale), keep = static_cast<Number>(u.keep);
  const auto beta1 = static_cast<Number>(u.beta1), beta2 = static_cast<Number>(u.beta2);
  const auto rest1 = static_cast<Number>(1 - u.beta1), rest2 = static_cast<Number>(1 - u.beta2);
  const auto size = static_cast<Number>(u.step_size), root = static_cast<Number>(u.inverse_root);
  const auto epsilon = static_cast<Number>(u.epsilon);
  for_each_chunk(elements, [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Number g = gradient[i] * scale;
      first[i] = beta1 * first[i] + rest1 * g;
      second[i] = beta2 * second[i] + rest2 * g * g;
      weight[i] = keep * weight[i] - size * first[i] / (std::sqrt(second[i]) * root + epsilon);
    }
  });
}

void update_by_operators(const Update& u, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                         at::Tensor& second) {
  const at::Tensor g = gradient * u.gradient_scale;
  first.mul_(u.beta1).add_(g, 1 - u.beta1);
  second.mul_(u.beta2).addcmul_(g, g, 1 - u.beta2);
  const at::Tensor denominator = second.sqrt().mul_(u.inverse_root).add_(u.epsilon);
  weight.mul_(u.keep).addcdiv_(first, denominator, -u.step_size);
}

void update(const Update& u, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first, at::Tensor& second) {
  if (!weight.device().is_cpu()) {
    update_by_operators(u, gradient, weight, first, second);
  } else if (weight.scalar_type() == at::kDouble) {
    update_on_cpu<double>(u, weight.numel(), gradient.const_data_ptr<double>(), weight.mutable_data_ptr<double>(),
                          first.mutable_data_ptr<double>(), second.mutable_data_ptr<double>());
  } else {
    update_on_cpu<float>(u, weight.numel(), gradient.const_data_ptr<float>(), weight.mutable_data_ptr<float>(),
                         first.mutable_data_ptr<float>(), second.mutable_data_ptr<float>());
  }
}

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.sizes();
  return out.str();
}

}  // namespace

void AdamWOptions::fields(FieldVisitor& visit) {
  visit.field("beta1", beta1, "decay of the mean of gradients", Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("beta2", beta2, "decay of the mean of squared gradients", Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("epsilon", epsilon, "added to the root of the mean square", above(0));
  visit.field("weight_decay", weight_decay, "decoupled decay of matrices, per unit of learning rate", at_least(0));
  visit.field("max_grad_norm", max_grad_norm, "gradients are scaled down to this global norm", above(0));
}

AdamW::AdamW(Parameters parameters, const AdamWOptions& options) : options_(options) {
  const at::NoGradGuard no_grad;
  for (auto& [name, parameter] : parameters) {
    CARNOT_CHECK(parameter.is_contiguous(), name);
    const bool own_master = parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kDouble;
    // detach() shares memory: stepping the master steps the weights.
    const at::Tensor master = own_master ? parameter.detach() : parameter.detach().to(at::kFloat);
    slots_.push_back({.name = name,
                      .parameter = parameter,
                      .master = master,
                      .first = at::zeros_like(master),
                      .second = at::zeros_like(master),
                      .decays = parameter.dim() >= 2});
  }
}

StepReport AdamW::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const Slot& slot : slots_) gradients.push_back(slot.parameter.grad());
  StepReport report{.grad_norm = global_norm(gradients), .skipped = false};
  for (Slot& slot : slots_) slot.parameter.mutable_grad() = at::Tensor();
  if (!std::isfinite(report.grad_norm)) {
    ++num_skipped_;
    report.skipped = true;
    return report;
  }

  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  Update u{// The 1e-6 is that of PyTorch's clip_grad_norm_.
           .gradient_scale = std::min(1.0, options_.max_grad_norm / (report.grad_norm + 1e-6)),
           .beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .epsilon = options_.epsilon,
           .keep = 1,
           .step_size = learning_rate / (1 - std::pow(options_.beta1, t)),
           .inverse_root = 1 / std::sqrt(1 - std::pow(options_.beta2, t))};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    const at::Tensor gradient = gradients[i].defined() ? gradients[i].to(slot.master.scalar_type()).contiguous()
                                                       : at::zeros_like(slot.master);
    u.keep = slot.decays ? 1 - learning_rate * options_.weight_decay : 1;
    update(u, gradient, slot.master, slot.first, slot.second);
    if (slot.master.scalar_type() != slot.parameter.scalar_type()) slot.parameter.copy_(slot.master);
    // Raw pointers wrote the weights: those who cache something derived from them look at this counter.
    slot.parameter.unsafeGetTensorImpl()->bump_version();
  }
  return report;
}

AdamW::Parameters AdamW::state() const {
  Parameters tensors;
  for (const Slot& slot : slots_) {
    tensors.emplace_back(slot.name + ".first_moment", slot.first);
    tensors.emplace_back(slot.name + ".second_moment", slot.second);
    if (slot.master.scalar_type() != slot.parameter.scalar_type())
      tensors.emplace_back(slot.name + ".master", slot.master);
  }
  return tensors;
}

Status AdamW::load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) {
  std::map<std::string, at::Tensor> given(tensors.begin(), tensors.end());
  std::vector<std::string> problems;
  for (const auto& [name, own] : state()) {
    const auto found = given.find(name);
    if (found == given.end())
      problems.push_back("optimizer state: " + name + " is missing");
    else if (found->second.sizes() != own.sizes())
      problems.push_back("optimizer state: " + name + " has shape " + shape_of(found->second) + ", expected " +
                         shape_of(own));
    else if (found->second.scalar_type() != own.scalar_type())
      problems.push_back("optimizer state: " + name + " has another number type than expected");
    given.erase(name);
  }
  for (const auto& [name, tensor] : given) problems.push_back("optimizer state: " + name + " belongs to no weight");
  if (!problems.empty()) return join_errors(problems);

  const at::NoGradGuard no_grad;
  given.insert(tensors.begin(), tensors.end());
  for (const auto& [name, own] : state()) at::Tensor(own).copy_(given.at(name));
  for (Slot& slot : slots_)
    if (slot.master.scalar_type() != slot.parameter.scalar_type()) slot.parameter.copy_(slot.master);
  num_updates_ = num_updates;
  num_skipped_ = num_skipped;
  return Done{};
}

}  // namespace carnot
