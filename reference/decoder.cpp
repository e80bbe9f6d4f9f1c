#include "reference/decoder.h"

#include <algorithm>
#include <cmath>

namespace carnot::reference {
namespace {

struct Candidate {
  int token;
  double logit;
  double probability;
};

std::vector<Candidate> candidates(const std::vector<double>& logits, const DecodeRequest& request, double logsumexp,
                                  double temperature) {
  std::vector<Candidate> all;
  for (std::size_t v = 0; v < logits.size(); ++v)
    all.push_back({static_cast<int>(v), logits[v], std::exp(logits[v] / temperature - logsumexp)});
  if (request.top_k == 0 && request.top_p == 1) return all;
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  if (request.top_k > 0 && request.top_k < static_cast<int>(all.size())) all.resize(request.top_k);
  double mass = 0;
  for (const Candidate& c : all) mass += c.probability;
  std::vector<Candidate> kept;
  double sum = 0;
  for (const Candidate& c : all) {
    if (!kept.empty() && sum >= request.top_p * mass) break;
    kept.push_back(c);
    sum += c.probability;
  }
  return kept;
}

}  // namespace

Draw draw(const std::vector<double>& logits, const DecodeRequest& request, double uniform) {
  const double temperature = request.temperature == 0 ? 1 : request.temperature;
  double sum = 0;
  for (double logit : logits) sum += std::exp(logit / temperature);
  Draw out;
  out.logsumexp = std::log(sum);
  for (double logit : logits) {
    const double log_prob = logit / temperature - out.logsumexp;
    if (std::isfinite(log_prob)) out.entropy -= std::exp(log_prob) * log_prob;
  }
  if (request.temperature == 0) {
    out.token = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  } else {
    const std::vector<Candidate> kept = candidates(logits, request, out.logsumexp, temperature);
    double total = 0;
    for (const Candidate& c : kept) total += c.probability;
    double cumulative = 0;
    for (const Candidate& c : kept) {
      if (c.probability > 0) out.token = c.token;
      cumulative += c.probability / total;
      if (cumulative > uniform) break;
    }
  }
  out.log_prob = logits[out.token] / temperature - out.logsumexp;
  return out;
}

std::vector<Draw> decode(const DecodeRequest& request,
                         const std::function<std::vector<double>(std::span<const TokenId>)>& next_logits) {
  std::vector<TokenId> tokens = request.prompt;
  std::vector<Draw> out;
  DrawKey key = request.key;
  for (int i = 0; i < request.max_tokens; ++i, ++key.position) {
    out.push_back(draw(next_logits(tokens), request, uniform(key)));
    tokens.push_back(out.back().token);
    if (std::find(request.stop_tokens.begin(), request.stop_tokens.end(), tokens.back()) != request.stop_tokens.end())
      break;
  }
  return out;
}

}  // namespace carnot::reference
