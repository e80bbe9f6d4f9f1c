// env/search_qa/factory.h -- the tasks of search_qa: worlds, questions, demonstrations.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_search_qa();

}  // namespace carnot
