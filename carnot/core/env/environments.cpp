#include "carnot/core/base/nearest_word.h"
#include "carnot/core/env/environment.h"

namespace carnot {
namespace {

const std::vector<EnvironmentEntry> kNone;
const std::vector<EnvironmentEntry>* offered = &kNone;

}  // namespace

void offer_environments(const std::vector<EnvironmentEntry>& table) { offered = &table; }

const std::vector<EnvironmentEntry>& environments() { return *offered; }

Result<std::unique_ptr<EnvironmentFactory>> make_environment_factory(std::string_view name) {
  std::vector<std::string> known;
  for (const EnvironmentEntry& entry : environments()) {
    if (entry.name == name && entry.make != nullptr) return entry.make();
    if (entry.name == name)
      return Error{"environment '" + std::string(name) + "' is not in this build of carnot; `./run build` adds it"};
    known.emplace_back(entry.name);
  }
  return Error{unknown_word("environment", name, known)};
}

}  // namespace carnot
