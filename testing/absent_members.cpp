#include "testing/absent_members.h"

#include <bit>
#include <cstdint>

namespace carnot::testing {
namespace {

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i])) return false;
  return true;
}

bool same_credit(const Credit& a, const Credit& b) {
  return same_bits(a.advantage, b.advantage) && same_bits(a.weight, b.weight) &&
         same_bits(a.clip_scale, b.clip_scale) && same_bits(a.value_target, b.value_target);
}

}  // namespace

std::vector<Group> without_absent_members(std::vector<Group> groups) {
  for (Group& group : groups)
    for (Tree& tree : group.trees) std::erase_if(tree.leaves, [](const Leaf& leaf) { return !leaf.is_included(); });
  return groups;
}

std::vector<std::string> changes_by_absent_members(const std::vector<Group>& groups, const Chain& chain) {
  const std::vector<Group> present = without_absent_members(groups);
  const std::vector<Trajectory> all = trajectories(groups);
  const std::vector<Trajectory> counting = trajectories(present);
  const CreditTable with = chain(all);
  const CreditTable without = chain(counting);
  const CreditTable fresh = fresh_credit(all);
  std::vector<std::string> changes;
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string who = "trajectory " + std::to_string(i);
    if (!all[i].leaf().is_included()) {
      if (!same_credit(with[i], fresh[i])) changes.push_back(who + " does not count but received credit");
    } else if (!same_credit(with[i], without[next++])) {
      changes.push_back(who + " has other credit when absent members are removed");
    }
  }
  return changes;
}

int absent_members(const std::vector<Group>& groups) {
  int absent = 0;
  for (const Group& group : groups)
    for (const Tree& tree : group.trees)
      for (const Leaf& leaf : tree.leaves) absent += leaf.is_included() ? 0 : 1;
  return absent;
}

}  // namespace carnot::testing
