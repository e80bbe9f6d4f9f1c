// credit/shared_prefix.h -- ARPO's hard attribution for turns that several trajectories share (arXiv:2507.19849).
#pragma once

#include "carnot/core/credit/rule.h"

namespace carnot {

/// A modulator: on a turn that several included leaves of a tree share, each one's advantage becomes the mean of all of
/// them, token by token. No effect on chains.
CreditRule shared_prefix();

}  // namespace carnot
