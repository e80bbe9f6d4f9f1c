#include "carnot/run/progress.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace carnot {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";
constexpr int kBarWidth = 24;
constexpr int kWidthOffATerminal = 119;

int quarters_of(const Pace& pace) { return static_cast<int>(4 * pace.done() / pace.total()); }

}  // namespace

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
  stages_.push_back({.name = std::string(stage), .pace = pace, .shown = now, .quarters = quarters_of(pace)});
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
  const int quarters = quarters_of(stage.pace);
  if (quarters == stage.quarters || now - stage.shown < options_.quiet_for) return;
  out_ << status() << "\n" << std::flush;
  stage.quarters = quarters;
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
  const auto filled = static_cast<std::size_t>(kBarWidth * stage.pace.done() / stage.pace.total());
  const std::string bar = "[" + std::string(filled, '=') + std::string(kBarWidth - filled, ' ') + "] ";
  out_ << kEraseLine << (bar + status()).substr(0, width()) << std::flush;
  on_screen_ = true;
  stage.shown = options_.now();
}

void Progress::erase() {
  if (on_screen_) out_ << kEraseLine << std::flush;
  on_screen_ = false;
}

}  // namespace carnot
