// serving/model_options.h -- the flags of commands that load one model.
#pragma once

#include "carnot/core/cli/option_parser.h"
#include "carnot/serving/loaded_model.h"

namespace carnot {

void declare_model(OptionParser& take, ModelRequest& model);

}  // namespace carnot
