// subprocess/supervisor/protocol.h -- what Carnot and carnot-supervisor share: descriptors and a report.
#pragma once

namespace carnot::supervisor {

inline constexpr int kCarnot = 3;  ///< a pipe that nothing is written into; it hangs up when Carnot ends
inline constexpr int kReport = 4;  ///< SupervisorReports; the stream ends once the program runs or cannot

struct SupervisorReport {
  enum class Kind { Started, Failed };
  Kind kind = Kind::Started;
  int value = 0;  ///< the program's process number, or the system's error
};

}  // namespace carnot::supervisor
