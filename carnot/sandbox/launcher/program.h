// sandbox/launcher/program.h -- starts the program inside: in namespaces of its own under an init, or as a child.
#pragma once

#include <sys/types.h>

#include <memory>

#include "plan.h"

namespace carnot::launcher {

/// How the program ended, written by the init to its pipe.
struct ProgramEnd {
  int status = 0;  ///< as waitpid() has it
  double cpu_seconds = 0;
};

struct Program {
  pid_t id = -1;    ///< the init of the namespaces, or the program itself
  int result = -1;  ///< with namespaces: a ProgramEnd can be read here after its end
};

/// What fails after the fork is written to the report. Throws SetupFailure.
Program start_program(const Plan& plan);

}  // namespace carnot::launcher
