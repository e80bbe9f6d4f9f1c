// rank/processors.h -- how the ranks on one machine share its processors.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace carnot {

/// Where a rank runs: its host, and the processors that the system lets it use there.
struct RankPlace {
  std::string host{};
  std::vector<int> processors{};

  bool operator==(const RankPlace&) const = default;
};

/// Of this process.
RankPlace own_place();

/// As bytes for the other ranks, and back; an empty place if the bytes cannot be read.
std::string bytes_of_place(const RankPlace& place);
RankPlace place_of_bytes(const std::string& bytes);

/// What a rank has of its machine.
struct MachineShare {
  int ranks = 1;    ///< of the group, on this machine
  int threads = 1;  ///< that take no processor from the others; at least one

  bool operator==(const MachineShare&) const = default;
};

/// Each processor is shared evenly by the ranks that may use it. A launcher that has bound ranks to processors of their
/// own has shared them out already. REQUIRES: 0 <= rank < number of places.
MachineShare share_of_machine(std::span<const RankPlace> places, int rank);

}  // namespace carnot
