#include "carnot/core/run/memory_advice.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "carnot/core/base/log.h"
#include "carnot/core/base/saturating.h"

namespace carnot {
namespace {

std::string megabytes(std::int64_t bytes) {
  return std::to_string((bytes >> 20) + (bytes % (1 << 20) > 0 ? 1 : 0)) + " MiB";
}

/// A setting that can take less memory: what it is set to, and how the run changes.
struct Remedy {
  std::string setting{};  ///< "train.micro_batch_tokens=1024 (now 4096)"
  std::function<void(MemorySettings&)> apply{};
};

/// The largest value in [low, high] with which the run fits, in whole steps from `low`; `low` where none does.
std::int64_t largest_that_fits(std::int64_t low, std::int64_t high, std::int64_t step,
                               const std::function<bool(std::int64_t)>& fits) {
  std::int64_t good = 0, bad = (high - low) / step + 1;
  while (bad - good > 1) {
    const std::int64_t middle = (good + bad) / 2;
    (fits(low + middle * step) ? good : bad) = middle;
  }
  return low + good * step;
}

/// A number that can be lowered, in steps from `low` up.
struct Amount {
  std::string name{};
  std::int64_t now = 0, low = 1, step = 1;
  std::function<void(MemorySettings&, int)> set{};
};

/// Lowers an amount as far as it must be, where that helps at all.
void add_amount(std::vector<Remedy>& remedies, const MemorySettings& settings, std::int64_t available,
                const Amount& amount) {
  if (amount.now <= amount.low) return;
  const auto peak_with = [&](std::int64_t value) {
    MemorySettings tried = settings;
    amount.set(tried, static_cast<int>(value));
    return predicted_peak(tried);
  };
  if (peak_with(amount.low) >= predicted_peak(settings)) return;
  const auto value =
      largest_that_fits(amount.low, amount.now, amount.step, [&](std::int64_t v) { return peak_with(v) <= available; });
  remedies.push_back({amount.name + "=" + std::to_string(value) + " (now " + std::to_string(amount.now) + ")",
                      [set = amount.set, value](MemorySettings& s) { set(s, static_cast<int>(value)); }});
}

/// What can be changed about these settings, the gentlest first.
std::vector<Remedy> remedies_for(const MemorySettings& settings, std::int64_t available) {
  std::vector<Remedy> all;
  // Not below one context, which would be alone anyway.
  const auto add_tokens = [&](const std::string& name, std::int64_t now,
                              const std::function<void(MemorySettings&, int)>& set) {
    const std::int64_t context = settings.rollout.options.episode.max_context_tokens;
    add_amount(all, settings, available, {.name = name, .now = now, .low = context, .step = 16, .set = set});
  };
  const bool updates = settings.stage != MemoryStage::Rollout;
  if (updates && !settings.train.activation_checkpointing)
    all.push_back(
        {"train.activation_checkpointing=true", [](MemorySettings& s) { s.train.activation_checkpointing = true; }});
  if (updates)
    add_tokens("train.micro_batch_tokens", settings.train.micro_batch_tokens,
               [](MemorySettings& s, int value) { s.train.micro_batch_tokens = value; });
  add_tokens("rollout.log_prob_tokens", settings.rollout.log_prob_tokens,
             [](MemorySettings& s, int value) { s.rollout.log_prob_tokens = value; });
  if (updates) {
    add_tokens("sft.batch_tokens", settings.sft.batch_tokens,
               [](MemorySettings& s, int value) { s.sft.batch_tokens = value; });
    add_amount(all, settings, available,
               {.name = "eval.tasks", .now = settings.evaluation.tasks, .set = [](MemorySettings& s, int value) {
                  s.evaluation.tasks = value;
                }});
    add_amount(all, settings, available,
               {.name = "eval.samples", .now = settings.evaluation.samples, .set = [](MemorySettings& s, int value) {
                  s.evaluation.samples = value;
                }});
  }
  const Saturating all_tokens = step_trajectories<Saturating>(settings.train, settings.rollout) *
                                settings.rollout.options.episode.max_context_tokens;
  // A recipe's numbers have 32 bits.
  const Saturating cache_tokens = std::min<Saturating>(all_tokens, std::numeric_limits<int>::max());
  add_tokens("rollout.cache_tokens",
             settings.rollout.cache_tokens > 0 ? settings.rollout.cache_tokens : cache_tokens.value(),
             [](MemorySettings& s, int value) { s.rollout.cache_tokens = value; });
  if (updates && settings.stage != MemoryStage::Sft && settings.train.optimizer.moments == "float32")
    all.push_back(
        {"train.moments=bfloat16 (now float32)", [](MemorySettings& s) { s.train.optimizer.moments = "bfloat16"; }});
  if (updates && settings.lora.rank == 0) all.push_back({"lora.rank=16", [](MemorySettings& s) { s.lora.rank = 16; }});
  if (settings.run.dtype == "float64")
    all.push_back({"dtype=float32 (now float64)", [](MemorySettings& s) { s.run.dtype = "float32"; }});
  else if (settings.run.dtype == "float32")
    all.push_back({"dtype=bfloat16 (now float32)", [](MemorySettings& s) { s.run.dtype = "bfloat16"; }});
  return all;
}

/// Those that are enough alone.
std::string single_remedies(const MemorySettings& settings, std::int64_t available) {
  std::string text;
  for (const Remedy& remedy : remedies_for(settings, available)) {
    MemorySettings tried = settings;
    remedy.apply(tried);
    if (const std::int64_t peak = predicted_peak(tried); peak <= available)
      text += "\n  " + remedy.setting + ": " + megabytes(peak);
  }
  return text;
}

/// One after the other until it is enough; each is measured with those before it in place.
std::string joint_remedies(MemorySettings settings, std::int64_t available) {
  std::string text;
  std::vector<std::string> used;
  while (predicted_peak(settings) > available) {
    const std::int64_t before = predicted_peak(settings);
    const auto remedies = remedies_for(settings, available);
    const auto next = std::find_if(remedies.begin(), remedies.end(), [&](const Remedy& remedy) {
      MemorySettings tried = settings;
      remedy.apply(tried);
      return predicted_peak(tried) < before;
    });
    if (next == remedies.end())
      return text + "\n  which still is too much; a smaller model or a shorter context is left";
    next->apply(settings);
    text += "\n  " + next->setting + ": " + megabytes(predicted_peak(settings));
  }
  return text;
}

/// What each of the ranks on this machine may take.
MachineMemory limit_of_rank(const Recipe& recipe, const Ranks& ranks) {
  MachineMemory limit = memory_limit(recipe);
  if (ranks.here == 1 || recipe.memory.limit_megabytes > 0) return limit;
  limit.bytes /= ranks.here;
  limit.source = "that each of " + std::to_string(ranks.here) + " ranks has " + limit.source;
  return limit;
}

}  // namespace

Status check_memory(const MemorySettings& settings, const MachineMemory& available) {
  const std::int64_t peak = predicted_peak(settings);
  if (available.bytes == 0 || peak <= available.bytes) return Done{};
  const std::string single = single_remedies(settings, available.bytes);
  return Error{"memory: the run would hold " + megabytes(peak) + " at its peak, in " + settings.run.dtype +
               "; expected at most the " + megabytes(available.bytes) + " " + available.source + ". " +
               (single.empty() ? "Together these would help:" + joint_remedies(settings, available.bytes)
                               : "Any one of these is enough:" + single) +
               "\nmemory.check=warn starts it all the same"};
}

Result<std::int64_t> predict_memory(const Recipe& recipe, const ModelConfig& config, MemoryStage stage,
                                    const Ranks& ranks) {
  const MemorySettings settings = memory_settings(recipe, config, stage, ranks.all);
  if (recipe.memory.check == "off") return predicted_peak(settings);
  const Status fits = check_memory(settings, limit_of_rank(recipe, ranks));
  if (!fits && recipe.memory.check == "refuse") return fits.error();
  if (!fits) log_warning(fits.error().message);
  return predicted_peak(settings);
}

}  // namespace carnot
