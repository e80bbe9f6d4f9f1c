// credit/shared_prefix.h -- ARPO's hard attribution: turns that several trajectories share (arXiv:2507.19849).
#pragma once

#include "carnot/credit/rule.h"

namespace carnot {

/// A modulator: on a turn that several counting leaves of a tree pass through, each one's advantage becomes the mean
/// of all of them, token by token. On chains it is the identity.
CreditRule shared_prefix();

}  // namespace carnot
