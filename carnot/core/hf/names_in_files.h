// hf/names_in_files.h -- what a family's files call weights and adapters. No LibTorch.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "carnot/core/nn/model_family.h"

namespace carnot {

/// The name with `by` in place of the first `part` that a dot follows; nothing without such a part.
std::optional<std::string> with_part(const std::string& name, std::string_view part, std::string_view by);

/// The name in the family's files, as ModelFamily::names_in_files says.
std::string name_in_files(const ModelFamily& family, const std::string& name);

}  // namespace carnot
