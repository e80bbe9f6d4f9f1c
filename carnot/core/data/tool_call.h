// data/tool_call.h -- how a turn's tool call ended.
#pragma once

#include "carnot/core/data/tree.h"

namespace carnot {

/// The turn called a tool, which reported a status other than that it answered ("ok") or found nothing ("empty").
inline bool is_failed_call(const Turn& turn) {
  return !turn.tool.empty() && !turn.status.empty() && turn.status != "ok" && turn.status != "empty";
}

}  // namespace carnot
