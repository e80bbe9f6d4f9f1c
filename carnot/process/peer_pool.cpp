#include "carnot/process/peer_pool.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "carnot/base/check.h"
#include "carnot/base/log.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLongestPause = 30;  ///< seconds between two tries to start a program

}  // namespace

struct PeerPool::Slot {
  std::mutex mutex{};
  std::shared_ptr<Peer> peer{};
  int starts = 0;
  int failed_starts = 0;  ///< in a row
  Clock::time_point next_try{};
  std::string failure{};
};

PeerPool::PeerPool(PeerOptions options, nlohmann::json greeting, int processes)
    : options_(std::move(options)), greeting_(std::make_unique<const nlohmann::json>(std::move(greeting))) {
  CARNOT_CHECK_GE(processes, 1);
  for (int i = 0; i < processes; ++i) slots_.push_back(std::make_unique<Slot>());
}

PeerPool::~PeerPool() = default;

Status PeerPool::start() {
  try {
    for (const auto& slot : slots_) live_peer(*slot);
    return Done{};
  } catch (const PeerFailure& failure) {
    return Error{failure.what()};
  }
}

std::shared_ptr<Peer> PeerPool::take() {
  Slot* freest = nullptr;
  long fewest = 0;
  for (const auto& slot : slots_) {
    const std::lock_guard lock(slot->mutex);
    const long holders = slot->peer && slot->peer->is_alive() ? slot->peer.use_count() : 0;
    if (freest != nullptr && holders >= fewest) continue;
    freest = slot.get();
    fewest = holders;
  }
  return live_peer(*freest);
}

std::shared_ptr<Peer> PeerPool::live_peer(Slot& slot) {
  const std::lock_guard lock(slot.mutex);
  if (slot.peer && slot.peer->is_alive()) return slot.peer;
  if (Clock::now() < slot.next_try) throw PeerFailure(slot.failure);
  if (slot.starts > 0) log_warning(options_.name + " is started again");
  try {
    ++slot.starts;
    slot.peer = std::make_shared<Peer>(options_, *greeting_);
    slot.failed_starts = 0;
    return slot.peer;
  } catch (const PeerFailure& failure) {
    slot.failure = failure.what();
    slot.next_try =
        Clock::now() + std::chrono::seconds(std::min(1 << std::min(slot.failed_starts++, 5), kLongestPause));
    throw;
  }
}

}  // namespace carnot
