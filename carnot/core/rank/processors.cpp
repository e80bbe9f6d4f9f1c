#include "carnot/core/rank/processors.h"

#include <sched.h>

#include <algorithm>
#include <map>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/check.h"
#include "carnot/core/base/host_name.h"

namespace carnot {

RankPlace own_place() {
  RankPlace place{.host = host_name()};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return place;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &allowed)) place.processors.push_back(processor);
  return place;
}

std::string bytes_of_place(const RankPlace& place) {
  ByteWriter out;
  out.add(place.host);
  out.add(place.processors);
  return out.take();
}

RankPlace place_of_bytes(const std::string& bytes) {
  RankPlace place;
  ByteReader in(bytes);
  in.get(place.host);
  in.get(place.processors);
  return in.complete() ? place : RankPlace{};
}

MachineShare share_of_machine(std::span<const RankPlace> places, int rank) {
  CARNOT_CHECK_GE(rank, 0);
  CARNOT_CHECK_LT(rank, static_cast<int>(places.size()));
  const RankPlace& own = places[static_cast<std::size_t>(rank)];
  MachineShare share{.ranks = 0};
  std::map<int, int> users;  // of each processor of this machine
  for (const RankPlace& place : places) {
    if (place.host != own.host) continue;
    ++share.ranks;
    for (const int processor : place.processors) ++users[processor];
  }
  double processors = 0;
  for (const int processor : own.processors) processors += 1.0 / users[processor];
  share.threads = std::max(1, static_cast<int>(processors + 1e-6));
  return share;
}

}  // namespace carnot
