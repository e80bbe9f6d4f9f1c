// tools/sandbox/worker.h -- the program that runs Python code in the sandbox: worker.py, which is part of the library.
#pragma once

#include <string_view>

namespace carnot {

extern const std::string_view kPythonWorker;

}  // namespace carnot
