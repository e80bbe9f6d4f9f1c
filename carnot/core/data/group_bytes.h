// data/group_bytes.h -- groups of trees as bytes, for another process of the same program (base/byte_stream.h).
//
// Every member of every struct, bit for bit. Files use rows instead (data/rollout_row.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"

namespace carnot {

std::string bytes_of_groups(const std::vector<Group>& groups);

/// Refuses bytes that do not encode groups, and groups whose trees break an invariant of data/tree.h.
Result<std::vector<Group>> groups_of_bytes(std::string_view bytes);

}  // namespace carnot
