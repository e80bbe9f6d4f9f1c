// base/log.h -- one sink for messages; the library never prints by itself.
//
// Levels follow the usual words. Until a program installs a sink, messages are dropped. Thread-safe.
// Names neither spdlog nor fmt: LibTorch brings another fmt, so both stay in programs below that line.
#pragma once

#include <functional>
#include <string>

namespace carnot {

enum class LogLevel { Debug, Info, Warning, Error };

using LogSink = std::function<void(LogLevel, const std::string&)>;

/// Replaces the sink and returns the one before; an empty one drops messages.
LogSink set_log_sink(LogSink sink);

/// Messages go to standard error, and to `file` as well where it is not empty, through spdlog.
void log_to_console(LogLevel least, const std::string& file = "");

/// The sink gets the message as base/printable.h makes it fit to show.
void log(LogLevel level, const std::string& message);
inline void log_info(const std::string& message) { log(LogLevel::Info, message); }
inline void log_warning(const std::string& message) { log(LogLevel::Warning, message); }

}  // namespace carnot
