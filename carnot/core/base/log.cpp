#include "carnot/core/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

#include "carnot/core/base/printable.h"

namespace carnot {
namespace {

std::mutex& sink_mutex() {
  static std::mutex mutex;
  return mutex;
}

LogSink& current_sink() {
  static LogSink sink;
  return sink;
}

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  const std::lock_guard lock(sink_mutex());
  return std::exchange(current_sink(), std::move(sink));
}

void log_to_console(LogLevel least, const std::string& file) {
  std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
  if (!file.empty()) sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
  auto logger = std::make_shared<spdlog::logger>("carnot", sinks.begin(), sinks.end());
  logger->set_level(level_of(least));
  logger->set_pattern("%^%l%$: %v");
  logger->flush_on(spdlog::level::warn);
  set_log_sink([logger](LogLevel level, const std::string& message) { logger->log(level_of(level), message); });
}

void log(LogLevel level, const std::string& message) {
  const std::lock_guard lock(sink_mutex());
  if (current_sink()) current_sink()(level, printable_message(message));
}

}  // namespace carnot
