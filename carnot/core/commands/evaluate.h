// commands/evaluate.h -- what `carnot eval` takes from annexes.
#pragma once

#include <memory>

#include "carnot/core/cli/option_parser.h"
#include "carnot/core/run/run.h"

namespace carnot {

/// The flags of `carnot eval` that name a policy behind an API.
class ApiPolicyFlags {
 public:
  virtual ~ApiPolicyFlags() = default;
  virtual void declare(OptionParser& take) = 0;

  /// Null if no flag names a policy. The error says which flags have no effect, or which are missing. `model_given`:
  /// --model names a model of this machine.
  virtual Result<std::shared_ptr<ApiPolicy>> policy(bool model_given) const = 0;
};

}  // namespace carnot
