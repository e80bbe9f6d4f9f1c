// method/contestants.h -- methods to compare, as a user writes them.
//
//   grpo, grpo + aem, a2tgpo [train.learning_rate=1e-4 objective.clip_high=0.3]
//
// Entries are separated by commas; settings of one entry follow its method in brackets. `all` is
// every method but those for studies (MethodEntry::in_all): bases alone, add-ons after grpo. `sft [sft.steps=60]` is a
// control: demonstrations alone, from the recipe's own policy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct Contestant {
  std::string method{};                 ///< "grpo + aem"
  std::vector<std::string> settings{};  ///< `key=value`
  bool from_all = false;                ///< no one named it: where the recipe cannot have it, it is left out

  bool is_sft() const { return method == "sft"; }

  /// As shown in tables: "grpo + aem [train.epochs=2]".
  std::string name() const;

  /// The same as the name of a folder: "grpo+aem,train.epochs=2". What file systems or shells would mind becomes '_'.
  std::string folder() const;
};

/// Fails on empty entries, open brackets, settings without '=', and entries given twice. Does not know methods.
Result<std::vector<Contestant>> parse_contestants(std::string_view text);

}  // namespace carnot
