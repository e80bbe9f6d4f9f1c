// worlds/search_qa/names.h -- invented names: one pronounceable word each, whose ending shows its kind.
//
// A list depends on its kind alone, never on a seed, and a longer list begins with the shorter one: tokenizers and
// checkpoints fit every run whose worlds are not larger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carnot {

enum class NameKind : std::uint8_t { FirstName, LastName, Town, Region, Company };

/// Most names of one kind.
inline constexpr int kMostNames = 2000;

/// The first `count` names of a kind, all different, and different from those of every other kind.
/// REQUIRES: 0 <= count <= kMostNames.
std::vector<std::string> invent_names(NameKind kind, int count);

}  // namespace carnot
