#include "carnot/train/progress.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace carnot {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";
constexpr int kBarWidth = 24;

}  // namespace

std::string clock_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  std::ostringstream out;
  out << std::setfill('0');
  if (whole >= 3600) out << whole / 3600 << ":" << std::setw(2);
  out << whole / 60 % 60 << ":" << std::setw(2) << whole % 60;
  return out.str();
}

void Progress::begin(std::string_view stage, std::int64_t total) {
  end();
  stage_ = stage;
  total_ = std::max<std::int64_t>(total, 1);
  done_ = 0;
  quarters_ = 0;
  began_ = shown_ = options_.now();
  if (options_.terminal) draw();
}

void Progress::update(std::int64_t done) {
  if (stage_.empty()) return;
  done_ = std::clamp<std::int64_t>(done, 0, total_);
  const double now = options_.now();
  if (options_.terminal) {
    if (now - shown_ >= options_.redraw_every) draw();
    return;
  }
  const int quarters = static_cast<int>(4 * done_ / total_);
  if (quarters == quarters_ || now - shown_ < options_.quiet_for) return;
  out_ << status() << "\n" << std::flush;
  quarters_ = quarters;
  shown_ = now;
}

void Progress::end() {
  erase();
  stage_.clear();
}

void Progress::print(std::string_view line) {
  erase();
  out_ << line << "\n" << std::flush;
  if (options_.terminal && !stage_.empty()) draw();
}

/// "rollout 12/24 (50 %), 0:13 left"
std::string Progress::status() const {
  const double elapsed = options_.now() - began_;
  std::string text = stage_ + " " + std::to_string(done_) + "/" + std::to_string(total_) + " (" +
                     std::to_string(100 * done_ / total_) + " %)";
  if (done_ > 0 && done_ < total_)
    text += ", " + clock_time(elapsed * static_cast<double>(total_ - done_) / static_cast<double>(done_)) + " left";
  return text;
}

void Progress::draw() {
  const auto filled = static_cast<std::size_t>(kBarWidth * done_ / total_);
  const std::string bar = "[" + std::string(filled, '=') + std::string(kBarWidth - filled, ' ') + "] ";
  out_ << kEraseLine << (bar + status()).substr(0, static_cast<std::size_t>(options_.width)) << std::flush;
  on_screen_ = true;
  shown_ = options_.now();
}

void Progress::erase() {
  if (on_screen_) out_ << kEraseLine << std::flush;
  on_screen_ = false;
}

}  // namespace carnot
