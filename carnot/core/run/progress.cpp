#include "carnot/core/run/progress.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace carnot {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";
constexpr int kWidestBar = 24;
constexpr int kNarrowestBar = 4;
constexpr int kEchoedInterrupt = 2;  // "^C", which a terminal shows where the cursor is
constexpr int kWidthOffATerminal = 119;
constexpr double kLongestSilence = 600;  // seconds
constexpr double kShareThatTells = 0.02;

/// "[=====     ] "
std::string bar(const Pace& pace, int width) {
  const int filled = static_cast<int>(width * pace.done() / pace.total());
  return "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] ";
}

}  // namespace

void Pace::update(std::int64_t done, double now) {
  done_ = std::clamp(done, first_, std::max(first_, total_));
  updated_ = now;
}

std::optional<double> Pace::seconds_left(double now) const {
  const double share =
      static_cast<double>(done_ - first_) / static_cast<double>(std::max<std::int64_t>(total_ - first_, 1));
  if (share < kShareThatTells || done_ >= total_) return std::nullopt;
  const double seconds_a_unit = (updated_ - began_) / static_cast<double>(done_ - first_);
  return std::max(0.0, seconds_a_unit * static_cast<double>(total_ - done_) - (now - updated_));
}

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  std::ostringstream out;
  out << std::setfill('0');
  if (whole >= 3600) out << whole / 3600 << ":" << std::setw(2);
  out << whole / 60 % 60 << ":" << std::setw(2) << whole % 60;
  return out.str();
}

void Progress::begin(std::string_view stage, std::int64_t total, std::int64_t done) {
  const double now = options_.now();
  const Pace pace(done, std::max<std::int64_t>(total, 1), now);
  stages_.push_back({.name = std::string(stage), .pace = pace, .began = now, .shown = now});
  if (options_.terminal) draw();
}

void Progress::update(std::int64_t done) {
  if (stages_.empty()) return;
  Stage& stage = stages_.back();
  const double now = options_.now();
  stage.pace.update(done, now);
  if (options_.terminal) {
    if (now - stage.shown >= options_.redraw_every) draw();
    return;
  }
  const double silence =
      std::min(std::max(stage.shown - stage.began, options_.quiet_for), std::max(options_.quiet_for, kLongestSilence));
  if (now - stage.shown < silence || stage.pace.done() >= stage.pace.total()) return;
  out_ << status() << "\n" << std::flush;
  stage.shown = now;
}

void Progress::end() {
  erase();
  if (!stages_.empty()) stages_.pop_back();
  if (options_.terminal && !stages_.empty()) draw();
}

void Progress::print(std::string_view line) {
  erase();
  out_ << line << "\n" << std::flush;
  if (options_.terminal && !stages_.empty()) draw();
}

std::optional<double> Progress::seconds_left() const {
  return stages_.empty() ? std::nullopt : stages_.back().pace.seconds_left(options_.now());
}

int Progress::width() const { return options_.terminal ? std::max(1, options_.columns() - 1) : kWidthOffATerminal; }

/// "rollout 12/24 (50 %), 0:13 left"
std::string Progress::status() const {
  const Pace& pace = stages_.back().pace;
  std::string text = stages_.back().name + " " + std::to_string(pace.done()) + "/" + std::to_string(pace.total()) +
                     " (" + std::to_string(100 * pace.done() / pace.total()) + " %)";
  if (const auto left = seconds_left()) text += ", " + clock_time(*left) + " left";
  return text;
}

void Progress::draw() {
  Stage& stage = stages_.back();
  const std::string text = status();
  const int room = width() - kEchoedInterrupt;
  const int bar_width = std::min(kWidestBar, room - static_cast<int>(text.size()) - 3);
  const std::string line = bar_width < kNarrowestBar ? text : bar(stage.pace, bar_width) + text;
  out_ << kEraseLine << line.substr(0, std::max(room, 0)) << std::flush;
  on_screen_ = true;
  stage.shown = options_.now();
}

void Progress::erase() {
  if (on_screen_) out_ << kEraseLine << std::flush;
  on_screen_ = false;
}

}  // namespace carnot
