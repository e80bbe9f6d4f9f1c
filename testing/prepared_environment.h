// testing/prepared_environment.h -- an environment with settings, set up as by a recipe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/config/document.h"
#include "carnot/core/config/reader.h"
#include "carnot/core/env/environment.h"

namespace carnot::testing {

/// `factory` with settings such as "timeout=2", prepared; or what is wrong with them.
inline Result<std::shared_ptr<EnvironmentFactory>> prepared(std::shared_ptr<EnvironmentFactory> factory,
                                                            const std::vector<std::string>& settings) {
  const auto document = Document::parse("", "test", {.overrides = settings, .aliases = {}});
  if (!document) return document.error();
  ConfigReader reader(*document);
  reader.read("", *factory);
  if (const Status read = reader.finish(); !read) return read.error();
  if (const Status ready = factory->prepare(5); !ready) return ready.error();
  return factory;
}

}  // namespace carnot::testing
