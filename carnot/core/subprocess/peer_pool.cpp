#include "carnot/core/subprocess/peer_pool.h"

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/core/subprocess/restart_pause.h"

namespace carnot {

struct PeerPool::Slot {
  std::mutex mutex{};
  std::shared_ptr<Peer> peer{};
  int starts = 0;
  RestartPause pause{};
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
  slot.pause.check();
  if (slot.starts > 0) log_warning(options_.name + " is started again");
  try {
    ++slot.starts;
    slot.peer = std::make_shared<Peer>(options_, *greeting_);
    slot.pause.succeeded();
    return slot.peer;
  } catch (const PeerFailure& failure) {
    slot.pause.failed(failure.what());
    throw;
  }
}

}  // namespace carnot
