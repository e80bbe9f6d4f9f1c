// reference/group_advantage.h -- the group baselines and GAE by their definitions, one number at a time.
#pragma once

#include <vector>

namespace carnot::reference {

/// (r_i - mean) / (std with n - 1 + 1e-6); 0 for a single value and for equal values.
double group_relative(const std::vector<double>& rewards, std::size_t i, bool divide_by_std);

/// r_i minus the mean of the others; 0 for a single value.
double leave_one_out(const std::vector<double>& rewards, std::size_t i);

/// sum over k >= t of (gamma lambda)^(k - t) (r_k + gamma V_{k+1} - V_k), over the sampled tokens only.
double gae(const std::vector<double>& rewards, const std::vector<double>& values, std::size_t t, double gamma,
           double lambda);

/// (x_i - mean) / sqrt(var with n - 1 + 1e-8); 0 for fewer than two values or equal ones.
double whitened(const std::vector<double>& values, std::size_t i);

}  // namespace carnot::reference
