// base/json_schema.h -- validates values against JSON schemas (draft 7).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

class JsonSchema {
 public:
  /// The error begins with `where` and says why the schema is invalid. References must stay within the schema.
  static Result<JsonSchema> compile(const nlohmann::json& schema, const std::string& where);

  ~JsonSchema();
  JsonSchema(JsonSchema&&) noexcept;
  JsonSchema& operator=(JsonSchema&&) noexcept;

  /// Thread-safe.
  bool fits(const nlohmann::json& value) const;

  /// The problems, each with its place ("size: Value type not permitted by 'type' constraint."); at most kMaxProblems.
  std::vector<std::string> problems(const nlohmann::json& value) const;

 private:
  struct State;
  explicit JsonSchema(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace carnot
