// base/log.h -- one sink for messages; the library never prints on its own.
//
// Messages are dropped until a program installs a sink. Thread-safe.
// Uses neither spdlog nor fmt in its interface: LibTorch includes another fmt.
#pragma once

#include <functional>
#include <string>

namespace carnot {

enum class LogLevel { Debug, Info, Warning, Error };

using LogSink = std::function<void(LogLevel, const std::string&)>;

/// Replaces the sink and returns the previous one; an empty sink drops messages.
LogSink set_log_sink(LogSink sink);

/// Sends messages to standard error, and also to `file` if it is not empty, through spdlog.
void log_to_console(LogLevel least, const std::string& file = "");

/// Logs the message after making it printable (base/printable.h).
void log(LogLevel level, const std::string& message);
inline void log_info(const std::string& message) { log(LogLevel::Info, message); }
inline void log_warning(const std::string& message) { log(LogLevel::Warning, message); }

}  // namespace carnot
