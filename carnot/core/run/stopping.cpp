#include "carnot/core/run/stopping.h"

#include <algorithm>
#include <cctype>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

std::string shell_word(const std::string& text) {
  const bool is_plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-+./:=@%,").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return is_plain ? text : in_single_quotes(text);
}

}  // namespace

bool stop_is_requested(const Run& run) {
  return is_true_anywhere(*run.control.group, run.control.stop_requested(), "asking whether to stop");
}

RolloutEvents stoppable(const RunControl& control) {
  return {.go_on = [&control] { return !control.stop_requested(); }};
}

std::string after_step(const std::string& stage, std::int64_t step) {
  return "after " + stage + " step " + std::to_string(step) + "; a checkpoint is written";
}

std::string how_to_continue(const Run& run) {
  if (run.control.command.empty()) return "To continue, run the same command with resume=auto";
  return "To continue: " + run.control.command + " " + shell_word(run.folder.root.string()) + " resume=auto";
}

RunEnd stopped(Run& run, const std::string& where) {
  run.progress.print("Stopped " + where + ".\n" + how_to_continue(run));
  return RunEnd::Interrupted;
}

RunEnd ended_by_alarm(Run& run, const std::string& names, const std::string& where) {
  run.progress.print("Ended by the alarm " + names + " " + where + ".\n" + how_to_continue(run));
  return RunEnd::Alarm;
}

Error ended_by(const Run& run, const std::string& why) {
  return {why + ". A checkpoint is written. " + how_to_continue(run)};
}

}  // namespace carnot
