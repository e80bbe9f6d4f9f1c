// tools/sandbox/launcher/program.h -- starts the program inside: in separate namespaces under an init, or as a child.
#pragma once

#include <sys/types.h>

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

/// The program's number in namespaces.
inline constexpr pid_t kProgramId = 2;

/// The first process of the namespaces: as restricted as the program, which it starts and waits for, and whose end it
/// writes to `result`. Its own end ends all others there. Throws SetupFailure.
[[noreturn]] void be_first_process(const Plan& plan, int result);

/// What fails after the fork is written to the report. Throws SetupFailure.
Program start_program(const Plan& plan);

/// Watches over the program from outside. Waits for orders and for the program's end, then ends every process that it
/// left behind, and reports. While the clock runs, looks every 20 ms at what all processes use together.
void watch(const Plan& plan, const Program& program);

}  // namespace carnot::launcher
