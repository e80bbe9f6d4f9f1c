// env/open_qa/factory.h -- the tasks of open_qa: rows of questions, a retriever, demonstrations.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_open_qa();

}  // namespace carnot
