// cli/stop_signals.h -- Ctrl-C and SIGTERM: the first asks a command to stop, the second ends the program.
#pragma once

namespace carnot {

/// What a command leaves when it is asked to stop.
enum class StopLeaves {
  Checkpoint,  ///< a run: it can continue from there
  Nothing,     ///< the command has to be started again
};

/// From now on the first SIGINT or SIGTERM writes to standard error at once what will happen, and stop_requested() is
/// true; the second ends the program with Exit::Interrupted, whatever it is doing. So does the first while
/// stop_requested() has never been called: what starts may take long and has nothing to lose. Files are safe from that:
/// they are written under other names, and renamed once they are whole.
void catch_stop_signals(StopLeaves leaves);

/// Whether a signal has asked the program to stop.
bool stop_requested();

}  // namespace carnot
