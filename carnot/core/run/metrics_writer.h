// run/metrics_writer.h -- a step's numbers: one line of metrics.jsonl, one TensorBoard event.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

/// Names as in docs/metrics.md.
using StepMetrics = std::map<std::string, double>;

/// A file that grows by whole records: a record is complete or absent.
class AppendFile {
 public:
  /// Opens for appending; makes the file if need be.
  static Result<AppendFile> open(const std::filesystem::path& path);

  /// Hands `record` to the system. Where it does not fit (full disk), the file is cut back to what it was. Also an
  /// error where the file was deleted or replaced meanwhile: what is appended would be lost.
  Status append(std::string_view record);

  /// Makes what was appended survive a power cut.
  Status sync();

 private:
  AppendFile(std::filesystem::path path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  Descriptor descriptor_;
};

class MetricsWriter {
 public:
  struct Options {
    std::filesystem::path jsonl{};        ///< appended to
    std::filesystem::path tensorboard{};  ///< folder; a new event file is made in it. Empty: none
    /// Step of the checkpoint that the run continues from: what is written about later steps is dropped, since those
    /// steps come again, and so are the unreadable lines that a crash or a power cut left. Where steps up to
    /// this one lack their line, a warning names them.
    std::optional<std::int64_t> resume_step{};
    /// Whether a step has a line.
    std::function<bool(std::int64_t step)> is_logged = [](std::int64_t) { return true; };
  };

  static Result<MetricsWriter> open(const Options& options);

  /// Everything has reached the operating system when this returns. NaN and infinities become null.
  Status write(std::int64_t step, const StepMetrics& metrics);

  /// What was written survives a power cut from here on. For a checkpoint to begin with: if it exists, so do the
  /// lines of the steps before it.
  Status sync();

 private:
  MetricsWriter(AppendFile jsonl, std::optional<AppendFile> events)
      : jsonl_(std::move(jsonl)), events_(std::move(events)) {}

  AppendFile jsonl_;
  std::optional<AppendFile> events_;
};

/// {"step": 12, "actor/entropy": 0.43, ...}, without an end of line.
std::string metrics_line(std::int64_t step, const StepMetrics& metrics);

}  // namespace carnot
