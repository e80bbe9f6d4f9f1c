#include "carnot/studies/response_samples.h"

#include <algorithm>
#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/rollout/member.h"

namespace carnot {
namespace {

SampledResponse measured(const Response& response) {
  SampledResponse out{.tokens = response.size()};
  for (const TokenDraw& draw : response.draws()) out.surprisal -= draw.log_prob;
  return out;
}

}  // namespace

std::vector<SampledResponse> sample_responses(Engine& engine, const Tokenizer& tokenizer, const Episode& episode,
                                              std::span<const TokenId> context, const ResponseSampling& options) {
  const int room = options.max_context_tokens - static_cast<int>(context.size());
  CARNOT_CHECK_GT(room, 0);
  const SequenceId root = engine.start(context);
  while (!engine.prefilled(root)) engine.step();
  std::map<SequenceId, Response> open;
  for (int i = 0; i < options.count; ++i) {
    const SequenceId sequence = engine.fork(root, static_cast<int>(context.size()));
    DrawKey key = options.key;
    key.sibling = static_cast<std::uint64_t>(i);
    engine.sample(sequence, {.sampling = options.sampling,
                             .key = key,
                             .max_tokens = std::min(episode.max_response_tokens(), room),
                             .stop_tokens = episode.stop_tokens()});
    open.emplace(sequence, Response(tokenizer, episode.protocol().stop_strings));
  }
  std::vector<SampledResponse> out;
  const auto close = [&](SequenceId sequence) {
    out.push_back(measured(open.at(sequence)));
    open.erase(sequence);
    engine.release(sequence);
  };
  while (!open.empty()) {
    const StepResult& result = engine.step();
    std::vector<SequenceId> ended = result.too_long;
    for (const SampledToken& token : result.tokens) {
      const bool stopped = open.at(token.sequence).push(token.draw);
      if (stopped) engine.stop_sampling(token.sequence);
      if (stopped || token.end != SampleEnd::GoesOn) ended.push_back(token.sequence);
    }
    for (const SequenceId sequence : ended) close(sequence);
  }
  engine.release(root);
  return out;
}

}  // namespace carnot
