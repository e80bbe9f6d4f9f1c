// config/yaml_events.h -- YAML text to a flat list of settings; the only place that knows the YAML library's parser.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/config/document.h"

namespace carnot {

/// One key with its value, in the order of the text.
struct FlatSetting {
  std::string key{};
  int line = 1;    ///< of the key, from 1
  int column = 1;  ///< of the key, from 1
  SettingValue value{};
};

/// The settings of a YAML document whose top level is a map. An empty document has none. The error begins with
/// `name:line:column`.
Result<std::vector<FlatSetting>> flatten_yaml(std::string_view text, const std::string& name);

/// The settings below `key` that the YAML text `value` gives: one, or several where it is a map.
Result<std::vector<FlatSetting>> flatten_override(const std::string& key, std::string_view value);

}  // namespace carnot
