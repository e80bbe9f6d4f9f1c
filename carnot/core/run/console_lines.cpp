#include "carnot/core/run/console_lines.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "carnot/core/run/progress.h"

namespace carnot {
namespace {

constexpr std::string_view kGap = "  ";
constexpr const char* kNoSignal = "frac_reward_zero_std";
constexpr const char* kTruncated = "response_length/clip_ratio";

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// "step  12/130"
std::string position(const std::string& what, const ConsolePlace& place) {
  const std::string steps = std::to_string(place.steps);
  return what + " " + padded(std::to_string(place.step), steps.size()) + "/" + steps;
}

/// `first`, as many of `middle` as fit, `last`.
std::string fitted(const std::string& first, const std::vector<std::string>& middle, const std::string& last,
                   int width) {
  std::string line = first;
  for (const std::string& part : middle) {
    const std::size_t needed = line.size() + part.size() + last.size() + 2 * kGap.size();
    if (needed > static_cast<std::size_t>(std::max(width, 0))) break;
    line.append(kGap).append(part);
  }
  return line.append(kGap).append(last);
}

}  // namespace

std::string step_line(const ConsolePlace& place, const StepMetrics& metrics, const std::string& environment) {
  struct Part {
    std::string metric;
    const char* format;
    double scale = 1;
    bool only_if_any = false;
  };
  const Part parts[] = {{"env/" + environment + "/success", "success %5.1f %%", 100},
                        {kNoSignal, "no signal %5.1f %%", 100, true},
                        {kTruncated, "truncated %5.1f %%", 100, true},
                        {"critic/score/mean", "score %5.2f"},
                        {"actor/entropy", "entropy %5.3f"},
                        {"response_length/mean", "length %4.0f"},
                        {"num_turns/mean", "turns %4.2f"},
                        {"env/" + environment + "/format", "format %5.1f %%", 100},
                        {"actor/grad_norm", "gradient %7.2g"},
                        {"actor/pg_clipfrac", "clipped %4.1f %%", 100}};
  std::vector<std::string> shown;
  for (const Part& part : parts)
    if (const auto found = metrics.find(part.metric);
        found != metrics.end() && (found->second != 0 || !part.only_if_any))
      shown.push_back(formatted(part.format, part.scale * found->second));
  const auto seconds = metrics.find("timing_s/step");
  const std::string last = seconds == metrics.end() ? "" : formatted("%5.1f s", seconds->second);
  return fitted(position("step", place), shown, last, place.width);
}

void DeadShares::add(const StepMetrics& metrics) {
  const auto value = [&](const char* name) {
    const auto found = metrics.find(name);
    return found == metrics.end() ? 0 : found->second;
  };
  for (auto& [share, name] : {std::pair{&no_signal_, kNoSignal}, std::pair{&truncated_, kTruncated}}) {
    share->last = value(name);
    share->sum += share->last;
  }
  steps_ += 1;
}

std::string DeadShares::lines() const {
  std::string text;
  const auto line = [&](const char* title, const Share& share) {
    if (share.sum > 0)
      text += title + formatted(": %.1f %% of all, ", 100 * share.sum / steps_) +
              formatted("%.1f %% in the last step\n", 100 * share.last);
  };
  line("Groups without signal (equal rewards)", no_signal_);
  line("Truncated responses", truncated_);
  return text;
}

std::string sft_line(const ConsolePlace& place, const StepMetrics& metrics, double seconds) {
  std::vector<std::string> shown{formatted("loss %.3f", metrics.at("sft/loss"))};
  if (const auto held_out = metrics.find("val/loss"); held_out != metrics.end())
    shown.push_back(formatted("held out %.3f", held_out->second));
  return fitted(position("SFT", place), shown, clock_time(seconds), place.width);
}

std::string evaluation_line(const std::string& name, const Evaluation& evaluation, int width) {
  const Interval interval = evaluation.success.interval();
  const std::string success = formatted("success %.1f %% [", 100 * evaluation.success.value()) +
                              formatted("%.1f, ", 100 * interval.low) + formatted("%.1f]", 100 * interval.high);
  const std::vector<std::string> middle{success, std::to_string(evaluation.success.trials) + " trajectories",
                                        formatted("score %.3f", evaluation.mean_score),
                                        formatted("length %.1f", evaluation.response_length),
                                        formatted("entropy %.3f", evaluation.entropy)};
  return fitted("evaluation " + name, middle, clock_time(evaluation.seconds), width);
}

}  // namespace carnot
