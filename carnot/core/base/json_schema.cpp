#include "carnot/core/base/json_schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#define VALIJSON_USE_EXCEPTIONS 1
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "carnot/core/base/limits.h"

namespace carnot {
namespace {

using valijson::adapters::NlohmannJsonAdapter;

/// "items[2]" from {"<root>", "[items]", "[2]"}; empty for the value itself.
std::string place_of(const std::vector<std::string>& context) {
  std::string place;
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::string key = context[i].substr(1, context[i].size() - 2);
    const bool is_index = !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
    place += is_index ? context[i] : (place.empty() ? "" : ".") + key;
  }
  return place;
}

/// Whether references lead from `part` to references without end; valijson would follow them until the stack overflows.
bool leads_in_a_circle(const nlohmann::json& schema, const nlohmann::json& part) {
  const nlohmann::json* at = &part;
  for (std::size_t step = 0; step < kMaxJsonDepth; ++step) {
    const auto reference = at->is_object() ? at->find("$ref") : at->end();
    if (!at->is_object() || reference == at->end() || !reference->is_string()) return false;
    const auto& text = reference->get_ref<const std::string&>();
    if (!text.starts_with("#")) return false;
    try {
      at = &schema.at(nlohmann::json::json_pointer(text.substr(1)));
    } catch (const nlohmann::json::exception&) {
      return false;  // a dangling reference, which valijson reports
    }
  }
  return true;
}

bool has_a_circle(const nlohmann::json& schema, const nlohmann::json& part) {
  return leads_in_a_circle(schema, part) ||
         (part.is_structured() &&
          std::any_of(part.begin(), part.end(), [&](const auto& one) { return has_a_circle(schema, one); }));
}

}  // namespace

struct JsonSchema::State {
  valijson::Schema schema{};
};

JsonSchema::JsonSchema(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonSchema::~JsonSchema() = default;
JsonSchema::JsonSchema(JsonSchema&&) noexcept = default;
JsonSchema& JsonSchema::operator=(JsonSchema&&) noexcept = default;

Result<JsonSchema> JsonSchema::compile(const nlohmann::json& schema, const std::string& where) {
  if (has_a_circle(schema, schema)) return Error{where + ": not a JSON schema: its references lead in a circle"};
  auto state = std::make_unique<State>();
  try {
    valijson::SchemaParser().populateSchema(NlohmannJsonAdapter(schema), state->schema);
  } catch (const std::exception& problem) {
    return Error{where + ": not a JSON schema: " + problem.what()};
  }
  return JsonSchema(std::move(state));
}

bool JsonSchema::fits(const nlohmann::json& value) const {
  return valijson::Validator().validate(state_->schema, NlohmannJsonAdapter(value), nullptr);
}

std::vector<std::string> JsonSchema::problems(const nlohmann::json& value) const {
  valijson::ValidationResults results;
  if (valijson::Validator().validate(state_->schema, NlohmannJsonAdapter(value), &results)) return {};
  std::vector<std::string> found;
  for (const auto& error : results) {
    if (found.size() == kMaxProblems) break;
    const std::string place = place_of(error.context);
    found.push_back((place.empty() ? "" : place + ": ") + error.description);
  }
  if (found.empty()) found.emplace_back("does not fit the schema");
  return found;
}

}  // namespace carnot
