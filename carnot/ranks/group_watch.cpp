#include "carnot/ranks/group_watch.h"

#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/ranks/first_line.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kVerdictKey = "verdict";
constexpr const char* kStopKey = "stop";

std::string sign_key(int rank) { return "sign/" + std::to_string(rank); }

std::string in_seconds(WatchTime time) {
  std::ostringstream out;
  out << std::round(static_cast<double>(time.count()) / 100) / 10 << " s";
  return out.str();
}

std::string text_at(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return {};
  const auto bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

/// A sign of life: a beat's number, how many things the rank has come to, and what the last of them is.
struct Sign {
  std::int64_t entered = 0;
  std::string doing{};
};

Sign read_sign(const std::string& text) {
  std::istringstream in(text);
  std::int64_t beat = 0;
  Sign sign;
  in >> beat >> sign.entered;
  in.ignore(1);
  std::getline(in, sign.doing);
  return sign;
}

// In the store a verdict begins with the number of the rank that found it: the one that reports it.
std::string text_of_verdict(int rank, const std::string& verdict) { return std::to_string(rank) + " " + verdict; }
std::string verdict_of_text(const std::string& text) { return text.substr(text.find(' ') + 1); }

void write_at(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

}  // namespace

GroupWatch::GroupWatch(c10::intrusive_ptr<c10d::Store> store, GroupWatchOptions options)
    : store_(std::move(store)),
      options_(std::move(options)),
      neighbour_moved_(Clock::now()),
      last_beat_(Clock::now()),
      thread_([this] { run(); }) {}

GroupWatch::~GroupWatch() { CARNOT_CHECK(!thread_.joinable() || stop(), "the store does not answer"); }

bool GroupWatch::stop() {
  {
    std::unique_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, options_.lost_after, [this] { return ended_; });
    if (!ended_) return false;
  }
  if (thread_.joinable()) thread_.join();
  return true;
}

void GroupWatch::enter(const std::string& what) {
  const std::lock_guard lock(mutex_);
  doing_ = what;
  ++entered_;
}

std::optional<std::string> GroupWatch::verdict() {
  const std::lock_guard lock(mutex_);
  const auto silent = std::chrono::duration_cast<WatchTime>(Clock::now() - last_beat_);
  if (!verdict_ && !ended_ && silent >= options_.lost_after) {
    verdict_ = options_.store_name + " has not answered for " + in_seconds(silent);
    is_to_tell_ = options_.tells_of_store;
  }
  return verdict_;
}

bool GroupWatch::is_to_tell() {
  const std::lock_guard lock(mutex_);
  return is_to_tell_;
}

void GroupWatch::wake(std::unique_lock<std::mutex>& lock, WatchTime longest) {
  changed_.notify_all();
  changed_.wait_for(lock, longest, [this] { return verdict_.has_value() || ended_; });
}

void GroupWatch::fail(const std::string& verdict) {
  std::unique_lock lock(mutex_);
  if (verdict_ || ended_) return;
  to_publish_ = verdict;
  wake(lock, options_.lost_after);
}

std::string GroupWatch::verdict_after(const std::string& what, const std::string& reason) {
  std::unique_lock lock(mutex_);
  const std::string own = options_.names[options_.rank] + ": " + what + ": " + reason;
  if (verdict_) return *verdict_;
  broken_ = own;
  wake(lock, options_.lost_after + 4 * options_.beat);
  if (!verdict_) {
    verdict_ = own;
    is_to_tell_ = true;
  }
  return *verdict_;
}

std::optional<std::string> GroupWatch::verdict_on_absent(WatchTime waited) {
  std::unique_lock lock(mutex_);
  waited_ = waited;
  changed_.notify_all();
  changed_.wait_for(lock, options_.lost_after, [this] { return verdict_ || ended_ || !waited_; });
  return verdict_;
}

void GroupWatch::settle(const std::string& verdict, bool is_to_tell) {
  const std::lock_guard lock(mutex_);
  if (!verdict_) {
    verdict_ = verdict;
    is_to_tell_ = is_to_tell;
  }
  changed_.notify_all();
}

void GroupWatch::publish(const std::string& verdict) {
  const std::string own = text_of_verdict(options_.rank, verdict);
  const auto written = store_->compareSet(kVerdictKey, {}, std::vector<std::uint8_t>(own.begin(), own.end()));
  const std::string first(written.begin(), written.end());
  settle(verdict_of_text(first), first == own);
}

void GroupWatch::run() {
  try {
    while (!verdict()) {
      beat();
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, options_.beat, [this] { return ends_ || to_publish_ || broken_ || waited_; });
      const auto to_publish = to_publish_, broken = broken_;
      const auto waited = waited_;
      if (ends_ && !to_publish) break;
      lock.unlock();
      if (to_publish) publish(*to_publish);
      if (broken) find_silent_rank(*broken);
      if (waited) find_absent_rank(*waited);
    }
  } catch (const std::exception& error) {
    settle(options_.store_name + ", cannot be reached: " + first_line(error.what()), options_.tells_of_store);
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void GroupWatch::beat() {
  std::string sign = std::to_string(++beats_) + " ";
  {
    const std::lock_guard lock(mutex_);
    sign += std::to_string(entered_) + " " + doing_;
  }
  write_at(*store_, sign_key(options_.rank), sign);
  if (const std::string verdict = text_at(*store_, kVerdictKey); !verdict.empty())
    return settle(verdict_of_text(verdict), false);
  if (asks_to_stop_) write_at(*store_, kStopKey, "1");
  if (!others_ask_to_stop_) others_ask_to_stop_ = store_->check({kStopKey});
  look_after((options_.rank + 1) % static_cast<int>(options_.names.size()));
  const std::lock_guard lock(mutex_);
  last_beat_ = Clock::now();
}

std::string GroupWatch::sign_of(int rank) { return text_at(*store_, sign_key(rank)); }

std::vector<std::string> GroupWatch::signs() {
  std::vector<std::string> keys, all;
  for (std::size_t rank = 0; rank < options_.names.size(); ++rank) keys.push_back(sign_key(static_cast<int>(rank)));
  if (store_->check(keys)) {
    for (const auto& bytes : store_->multiGet(keys)) all.emplace_back(bytes.begin(), bytes.end());
  } else {  // some rank has shown none yet
    for (const std::string& key : keys) all.push_back(text_at(*store_, key));
  }
  return all;
}

void GroupWatch::look_after(int rank) {
  const std::string sign = sign_of(rank);
  const auto now = Clock::now();
  if (sign != neighbour_sign_) {
    neighbour_sign_ = sign;
    neighbour_moved_ = now;
  }
  const auto silent = std::chrono::duration_cast<WatchTime>(now - neighbour_moved_);
  if (silent >= options_.lost_after) publish(lost_sentence(rank, silent, sign));
}

/// A connection broke. The others live, though they may be about to leave because of it, too: the one who shows no sign
/// for four beats is lost. While there are several such, some may only be slow.
void GroupWatch::find_silent_rank(const std::string& reason) {
  const std::vector<std::string> first = signs();
  std::map<int, std::string> silent;  // ranks that have not moved since, with their last sign
  for (int rank = 0; rank < static_cast<int>(first.size()); ++rank)
    if (rank != options_.rank) silent[rank] = first[rank];
  const auto began = Clock::now();
  auto passed = WatchTime::zero();
  while (passed < 4 * options_.beat || (silent.size() > 1 && passed < options_.lost_after)) {
    std::this_thread::sleep_for(options_.beat);
    beat();
    if (verdict()) return;
    const std::vector<std::string> now = signs();
    std::erase_if(silent, [&now](const auto& last) { return now[last.first] != last.second; });
    passed = std::chrono::duration_cast<WatchTime>(Clock::now() - began);
  }
  if (silent.empty()) return publish(reason);
  publish(lost_sentence(silent.begin()->first, passed, silent.begin()->second));
}

void GroupWatch::find_absent_rank(WatchTime waited) {
  std::int64_t own = 0;
  std::string doing;
  {
    const std::lock_guard lock(mutex_);
    own = entered_;
    doing = doing_;
  }
  const std::vector<std::string> all = signs();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Sign sign = read_sign(all[rank]);
    if (sign.entered < own)
      return publish(options_.names[rank] + " lives, but has not come to \"" + doing + "\", where " +
                     options_.names[options_.rank] + " has waited for " + in_seconds(waited) +
                     (sign.doing.empty() ? "" : "; its last was \"" + sign.doing + "\""));
  }
  const std::lock_guard lock(mutex_);
  waited_.reset();
  changed_.notify_all();
}

std::string GroupWatch::lost_sentence(int rank, WatchTime silent, const std::string& sign) const {
  const std::string doing = read_sign(sign).doing;
  return options_.names[rank] + " has shown no sign of life for " + in_seconds(silent) +
         (doing.empty() ? "" : "; its last was \"" + doing + "\"");
}

}  // namespace carnot
