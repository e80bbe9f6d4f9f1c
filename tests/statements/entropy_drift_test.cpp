// AEM's theorem (arXiv:2605.00425, 3.2.2): which updates raise a policy's entropy, and by how much.
//
// One state with responses a of probability pi_a > 0, surprisal S(a) = -log pi_a and entropy H = E[S]. Along the
// natural gradient of A log pi_a + beta psi(H) - gamma KL(pi, reference), the entropy changes at the rate
//   A (S(a) - H) + (beta psi'(H) + gamma) Var(S) - gamma Cov(S, S_reference).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/nn/token_statistics.h"

namespace carnot {
namespace {

using Vector = std::vector<double>;

Vector softmax(const Vector& logits) {
  Vector p;
  double total = 0;
  for (double z : logits) total += std::exp(z);
  for (double z : logits) p.push_back(std::exp(z) / total);
  return p;
}

Vector random_logits(RandomStream& random, std::size_t responses, double scale) {
  Vector logits;
  for (std::size_t a = 0; a < responses; ++a) logits.push_back(scale * random.normal());
  return logits;
}

Vector surprisals(const Vector& p) {
  Vector s;
  for (double x : p) s.push_back(-std::log(x));
  return s;
}

double expectation(const Vector& p, const Vector& x) {
  double sum = 0;
  for (std::size_t a = 0; a < p.size(); ++a) sum += p[a] * x[a];
  return sum;
}

double covariance(const Vector& p, const Vector& x, const Vector& y) {
  Vector product;
  for (std::size_t a = 0; a < x.size(); ++a) product.push_back(x[a] * y[a]);
  return expectation(p, product) - expectation(p, x) * expectation(p, y);
}

double dot(const Vector& x, const Vector& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

double entropy(const Vector& p) { return expectation(p, surprisals(p)); }

using Function = std::function<double(const Vector&)>;

Vector finite_differences(const Function& f, Vector x) {
  constexpr double kStep = 1e-6;
  Vector slopes;
  for (double& at : x) {
    const double keep = at, step = kStep * std::fabs(keep);
    at = keep + step;
    const double up = f(x);
    at = keep - step;
    slopes.push_back((up - f(x)) / (2 * step));
    at = keep;
  }
  return slopes;
}

/// pi_a (d_a f - sum_b pi_b d_b f): the gradient in the simplex under the Fisher metric.
Vector fisher_gradient(const Function& f, const Vector& p) {
  const Vector slopes = finite_differences(f, p);
  const double mean = expectation(p, slopes);
  Vector gradient;
  for (std::size_t a = 0; a < p.size(); ++a) gradient.push_back(p[a] * (slopes[a] - mean));
  return gradient;
}

double fisher_product(const Vector& p, const Vector& u, const Vector& v) {
  double sum = 0;
  for (std::size_t a = 0; a < p.size(); ++a) sum += u[a] * v[a] / p[a];
  return sum;
}

TEST(EntropyDrift, OfAPolicyGradientStepIsAdvantageTimesExcessSurprisal) {
  RandomStream random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const Vector p = softmax(random_logits(random, 2 + random.below(8), 1.5));
    const std::size_t a = random.below(p.size());
    const double advantage = random.normal(), excess = -std::log(p[a]) - entropy(p);
    const Function surrogate = [&](const Vector& q) { return advantage * std::log(q[a]); };
    const double drift = fisher_product(p, fisher_gradient(entropy, p), fisher_gradient(surrogate, p));
    EXPECT_NEAR(drift, advantage * excess, 1e-6 * (1 + std::fabs(drift)));
    // The sign: rewarding what surprises more than average raises the entropy, rewarding what is expected lowers it.
    if (std::fabs(advantage * excess) > 1e-4) {
      EXPECT_EQ(drift > 0, (advantage > 0) == (excess > 0));
    }
  }
}

// A first response chooses the state of the second. The policy's entropy is the first's, and the second's weighed by
// the chance of each state. The theorem holds those chances fixed; a step on a first response moves them, too.
TEST(EntropyDrift, OfAWholePolicyIsWeighedByTheChanceOfTheVisit) {
  RandomStream random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const Vector first = softmax(random_logits(random, 2 + random.below(4), 1.5));
    std::vector<Vector> second;
    Vector second_entropies;
    for (std::size_t state = 0; state < first.size(); ++state) {
      second.push_back(softmax(random_logits(random, 2 + random.below(4), 1.5)));
      second_entropies.push_back(entropy(second[state]));
    }
    const double advantage = random.normal();
    const auto drift = [&](const Function& policy_entropy, const Vector& p, std::size_t response) {
      const Function surrogate = [&](const Vector& q) { return advantage * std::log(q[response]); };
      return fisher_product(p, fisher_gradient(policy_entropy, p), fisher_gradient(surrogate, p));
    };
    const std::size_t a = random.below(first.size()), b = random.below(second[a].size());
    const auto of_second = [&](const Vector& q) {
      double sum = entropy(first);
      for (std::size_t state = 0; state < first.size(); ++state)
        sum += first[state] * (state == a ? entropy(q) : second_entropies[state]);
      return sum;
    };
    const auto of_first = [&](const Vector& p) { return entropy(p) + dot(p, second_entropies); };
    const auto excess = [](const Vector& p, std::size_t response) { return -std::log(p[response]) - entropy(p); };
    EXPECT_NEAR(drift(of_second, second[a], b), first[a] * advantage * excess(second[a], b), 1e-6);
    EXPECT_NEAR(drift(of_first, first, a) - advantage * excess(first, a),
                advantage * (second_entropies[a] - dot(first, second_entropies)), 1e-6)
        << "what fixed visits leave out";
  }
}

TEST(EntropyDrift, WithEntropyBonusAndKlAddsTheirVariances) {
  RandomStream random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t responses = 2 + random.below(8);
    const Vector p = softmax(random_logits(random, responses, 1.5)),
                 reference = softmax(random_logits(random, responses, 1.5));
    const Vector s = surprisals(p), s_reference = surprisals(reference);
    const std::size_t a = random.below(responses);
    const double advantage = random.normal(), beta = random.uniform(), gamma = random.uniform();
    const auto psi = [](double h) { return h * h * h / 3; };
    const auto psi_slope = [](double h) { return h * h; };
    const Function surrogate = [&](const Vector& q) {
      double kl = 0;
      for (std::size_t b = 0; b < q.size(); ++b) kl += q[b] * std::log(q[b] / reference[b]);
      return advantage * std::log(q[a]) + beta * psi(entropy(q)) - gamma * kl;
    };
    const double drift = fisher_product(p, fisher_gradient(entropy, p), fisher_gradient(surrogate, p));
    const double expected = advantage * (s[a] - entropy(p)) +
                            (beta * psi_slope(entropy(p)) + gamma) * covariance(p, s, s) -
                            gamma * covariance(p, s, s_reference);
    EXPECT_NEAR(drift, expected, 1e-6 * (1 + std::fabs(expected)));
  }
}

TEST(EntropyDrift, OfTheExpectedRewardIsItsCovarianceWithSurprisal) {
  RandomStream random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const std::size_t responses = 2 + random.below(8);
    const Vector p = softmax(random_logits(random, responses, 1)), rewards = random_logits(random, responses, 1);
    const Function objective = [&](const Vector& q) { return expectation(q, rewards); };
    const double drift = fisher_product(p, fisher_gradient(entropy, p), fisher_gradient(objective, p));
    EXPECT_NEAR(drift, covariance(p, rewards, surprisals(p)), 1e-7);
  }
}

/// The gradient of Carnot's loss with respect to the logits that sample one token.
Vector loss_gradient(const Vector& logits, std::size_t token, double advantage, double entropy_coefficient) {
  const at::Tensor z = at::tensor(at::ArrayRef<double>(logits), at::kDouble).unsqueeze(0).requires_grad_();
  const TokenStatistics statistics = token_statistics(z, at::eye(z.size(1), at::kDouble),
                                                      at::tensor(static_cast<std::int64_t>(token)).reshape({1}), {});
  LossInputs inputs;
  inputs.logprob_T = statistics.logprob_T;
  inputs.entropy_T = statistics.entropy_T;
  inputs.logprob_old_T = statistics.logprob_T.detach();
  inputs.advantage_T = at::full({1}, advantage, at::kDouble);
  inputs.weight_T = inputs.clip_scale_T = at::ones({1}, at::kDouble);
  inputs.turn_T = inputs.sequence_T = at::zeros({1}, at::kLong);
  inputs.num_turns = inputs.num_sequences = 1;
  const Denominators one{.tokens = 1, .weight = 1, .sequences = 1, .sequence_weight = {1}, .sequence_tokens = {1}};
  policy_loss({.entropy_coefficient = entropy_coefficient}, inputs, one).total.backward();
  const double* g = z.grad().const_data_ptr<double>();
  return {g, g + z.numel()};
}

TEST(EntropyDrift, OfTheLossesOwnGradientThroughARealSoftmaxFollowsTheTheorem) {
  RandomStream random(4);
  constexpr double kStep = 1e-6;
  for (int trial = 0; trial < 50; ++trial) {
    const Vector logits = random_logits(random, 3 + random.below(12), 1.5), p = softmax(logits), s = surprisals(p);
    const std::size_t token = random.below(p.size());
    const double advantage = random.normal(), coefficient = trial % 2 == 0 ? 0 : 0.3;
    // Along the loss's descent; F = diag(p) - p p^T over logits, whose inverse on the simplex divides by p.
    Vector forward = logits, backward = logits;
    const Vector gradient = loss_gradient(logits, token, advantage, coefficient);
    for (std::size_t v = 0; v < p.size(); ++v) {
      forward[v] -= kStep * gradient[v] / p[v];
      backward[v] += kStep * gradient[v] / p[v];
    }
    const double drift = (entropy(softmax(forward)) - entropy(softmax(backward))) / (2 * kStep);
    const double expected = advantage * (s[token] - entropy(p)) + coefficient * covariance(p, s, s);
    EXPECT_NEAR(drift, expected, 1e-4 * (1 + std::fabs(expected)));
  }
}

/// A network of one hidden layer before a softmax, its weights as one vector.
struct SmallNetwork {
  static constexpr std::int64_t kInputs = 3, kHidden = 4, kResponses = 5, kWeights = kHidden * (kInputs + kResponses);

  /// Log-probability of every response, and the entropy, with a graph from `weights`.
  static TokenStatistics statistics(const at::Tensor& weights) {
    const at::Tensor input_1D = at::tensor({0.5, -1.0, 2.0}, at::kDouble).unsqueeze(0);
    const at::Tensor first_HD = weights.slice(0, 0, kHidden * kInputs).reshape({kHidden, kInputs});
    const at::Tensor head_VH = weights.slice(0, kHidden * kInputs).reshape({kResponses, kHidden});
    const at::Tensor hidden_1H = at::tanh(at::matmul(input_1D, first_HD.t()));
    return token_statistics(hidden_1H.expand({kResponses, kHidden}).contiguous(), head_VH.contiguous(),
                            at::arange(kResponses, at::kLong), {});
  }

  static Vector log_probs(const Vector& weights) {
    const TokenStatistics found = statistics(at::tensor(at::ArrayRef<double>(weights), at::kDouble));
    const double* values = found.logprob_T.const_data_ptr<double>();
    return {values, values + kResponses};
  }
};

/// The direction of descent of A log pi_a, of an entropy bonus and of a KL, by Carnot's loss and statistics.
Vector network_step(const Vector& weights, std::int64_t token, double advantage, double bonus, double kl,
                    const Vector& log_reference) {
  const at::Tensor theta = at::tensor(at::ArrayRef<double>(weights), at::kDouble).requires_grad_();
  const TokenStatistics statistics = SmallNetwork::statistics(theta);
  LossInputs inputs;
  inputs.logprob_T = statistics.logprob_T.slice(0, token, token + 1);
  inputs.entropy_T = statistics.entropy_T.slice(0, token, token + 1);
  inputs.logprob_old_T = inputs.logprob_T.detach();
  inputs.advantage_T = at::full({1}, advantage, at::kDouble);
  inputs.weight_T = inputs.clip_scale_T = at::ones({1}, at::kDouble);
  inputs.turn_T = inputs.sequence_T = at::zeros({1}, at::kLong);
  inputs.num_turns = inputs.num_sequences = 1;
  const Denominators one{.tokens = 1, .weight = 1, .sequences = 1, .sequence_weight = {1}, .sequence_tokens = {1}};
  const at::Tensor difference_V = statistics.logprob_T - at::tensor(at::ArrayRef<double>(log_reference), at::kDouble);
  const at::Tensor loss = policy_loss({.entropy_coefficient = bonus}, inputs, one).total +
                          kl * (statistics.logprob_T.exp() * difference_V).sum();
  loss.backward();
  const double* g = theta.grad().const_data_ptr<double>();
  Vector step;
  for (std::int64_t i = 0; i < SmallNetwork::kWeights; ++i) step.push_back(-g[i]);
  return step;
}

// Appendix F.5.1: along the plain gradient in a network's weights, K(b, c) = <grad log pi_b, grad log pi_c> takes the
// place of the Fisher metric.
TEST(EntropyDrift, InTheWeightsOfANetworkFollowsTheKernelOfItsGradients) {
  RandomStream random(5);
  constexpr auto kResponses = static_cast<std::size_t>(SmallNetwork::kResponses);
  for (int trial = 0; trial < 8; ++trial) {
    const Vector weights = random_logits(random, SmallNetwork::kWeights, 0.7);
    const Vector reference = softmax(random_logits(random, kResponses, 1)), s_reference = surprisals(reference);
    Vector log_reference, p;
    for (const double x : reference) log_reference.push_back(std::log(x));
    for (const double x : SmallNetwork::log_probs(weights)) p.push_back(std::exp(x));
    const Vector s = surprisals(p);
    std::vector<Vector> gradients;
    for (std::size_t b = 0; b < kResponses; ++b)
      gradients.push_back(finite_differences([b](const Vector& w) { return SmallNetwork::log_probs(w)[b]; }, weights));

    const std::size_t a = random.below(kResponses);
    const double advantage = random.normal(), bonus = random.uniform(), kl = random.uniform();
    const double mean_reference = expectation(p, s_reference);
    double expected = 0;
    for (std::size_t b = 0; b < kResponses; ++b) {
      const double excess = p[b] * (s[b] - entropy(p));
      expected += advantage * excess * dot(gradients[b], gradients[a]);
      for (std::size_t c = 0; c < kResponses; ++c)
        expected += excess * p[c] * dot(gradients[b], gradients[c]) *
                    ((bonus + kl) * (s[c] - entropy(p)) - kl * (s_reference[c] - mean_reference));
    }
    const Function network_entropy = [](const Vector& w) {
      Vector q;
      for (const double x : SmallNetwork::log_probs(w)) q.push_back(std::exp(x));
      return entropy(q);
    };
    const Vector step = network_step(weights, static_cast<std::int64_t>(a), advantage, bonus, kl, log_reference);
    EXPECT_NEAR(dot(finite_differences(network_entropy, weights), step), expected, 1e-6 * (1 + std::fabs(expected)));
  }
}

}  // namespace
}  // namespace carnot
