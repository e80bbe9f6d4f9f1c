#include "reference/adamw.h"

#include <cmath>

namespace carnot::reference {

void adamw_step(const AdamWSettings& settings, int t, const std::vector<double>& gradients,
                std::vector<AdamWWeight>& weights) {
  double squares = 0;
  for (double g : gradients) squares += g * g;
  const double norm = std::sqrt(squares);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    AdamWWeight& w = weights[i];
    double g = gradients[i];
    if (norm > settings.max_grad_norm) g *= settings.max_grad_norm / norm;
    w.first = settings.beta1 * w.first + (1 - settings.beta1) * g;
    w.second = settings.beta2 * w.second + (1 - settings.beta2) * g * g;
    const double mean = w.first / (1 - std::pow(settings.beta1, t));
    const double mean_square = w.second / (1 - std::pow(settings.beta2, t));
    const double decay = w.decays ? settings.weight_decay * w.value : 0;
    w.value -= settings.learning_rate * (mean / (std::sqrt(mean_square) + settings.epsilon) + decay);
  }
}

}  // namespace carnot::reference
