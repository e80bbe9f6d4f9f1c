#include "carnot/core/run/metrics_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/run/event_file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The step of a whole line; empty if it cannot be read.
std::optional<std::int64_t> step_of(std::string_view line) {
  const auto row = parse_json_object<OrderedJson>(line, "");
  const bool has_step = row && row->contains("step") && row->at("step").is_number_integer();
  return has_step ? std::optional(row->at("step").get<std::int64_t>()) : std::nullopt;
}

/// "3, 7 to 9"
std::string in_ranges(const std::vector<std::int64_t>& steps) {
  std::string text;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t end = i + 1;
    while (end < steps.size() && steps[end] == steps[end - 1] + 1) ++end;
    text += (i == 0 ? "" : ", ") + std::to_string(steps[i]);
    if (end - i > 1) text += " to " + std::to_string(steps[end - 1]);
    i = end;
  }
  return text;
}

void tell_gaps(const MetricsWriter::Options& options, const std::set<std::int64_t>& held) {
  std::vector<std::int64_t> missing;
  for (std::int64_t step = 1; step <= *options.resume_step; ++step)
    if (!held.contains(step) && options.is_logged(step)) missing.push_back(step);
  if (missing.empty()) return;
  log_warning(options.jsonl.string() + ": the run continues after step " + std::to_string(*options.resume_step) +
              ", but the file has no line of step " + in_ranges(missing));
}

/// What a run lost that was killed.
void tell_repeated(const MetricsWriter::Options& options, const std::vector<std::int64_t>& dropped) {
  if (dropped.empty()) return;
  const std::int64_t saved = *options.resume_step;
  log_info(options.jsonl.string() + ": " +
           (saved == 0 ? "no checkpoint was saved" : "the last checkpoint is that of step " + std::to_string(saved)) +
           "; repeated: step " + in_ranges(dropped));
}

/// Drops the lines of steps after the one to continue from, and whatever unreadable follows the lines that are kept.
Status cut_back(const MetricsWriter::Options& options) {
  const fs::path& path = options.jsonl;
  std::set<std::int64_t> held;
  std::vector<std::int64_t> dropped;
  std::error_code missing;
  if (!fs::exists(path, missing)) {
    tell_gaps(options, held);
    return Done{};
  }
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  auto lines = split_lines(text);
  if (!lines.empty() && text.back() != '\n') lines.pop_back();
  std::string kept;
  std::optional<std::size_t> unreadable;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto step = step_of(lines[i]);
    if (!step && !unreadable) unreadable = i;
    if (step && *step > *options.resume_step) dropped.push_back(*step);
    if (!step || *step > *options.resume_step) continue;
    if (unreadable)
      return Error{path.string() + ":" + std::to_string(*unreadable + 1) +
                   ": expected an object with an integer `step`"};
    kept.append(lines[i]).append("\n");
    held.insert(*step);
  }
  tell_gaps(options, held);
  tell_repeated(options, dropped);
  if (kept == text) return Done{};
  return write_file_atomically(path, kept);
}

Result<AppendFile> open_events(const MetricsWriter::Options& options) {
  CARNOT_RETURN_IF_ERROR(make_folder(options.tensorboard));
  const double now = wall_time();
  const std::string name =
      "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(now)) + ".carnot." + std::to_string(::getpid());
  CARNOT_ASSIGN_OR_RETURN(auto file, AppendFile::open(options.tensorboard / name));
  std::string head = version_event(now);
  if (options.resume_step) head += restart_event(now, *options.resume_step + 1);
  CARNOT_RETURN_IF_ERROR(file.append(head));
  return file;
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor.is_open()) return system_error(path, "cannot open for appending");
  CARNOT_RETURN_IF_ERROR(sync_path(path.has_parent_path() ? path.parent_path() : "."));
  return AppendFile(path, std::move(descriptor));
}

Status AppendFile::append(std::string_view record) {
  struct stat before{};
  if (::fstat(descriptor_.get(), &before) != 0) return system_error(path_, "cannot append");
  struct stat named{};
  if (::stat(path_.c_str(), &named) != 0 || named.st_ino != before.st_ino || named.st_dev != before.st_dev)
    return Error{path_.string() + ": was deleted or replaced while it was written"};
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_.get(), record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const Error error = system_error(path_, "cannot append");
      if (::ftruncate(descriptor_.get(), before.st_size) != 0)
        return Error{error.message + "; its last record is incomplete"};
      return error;
    }
    record.remove_prefix(written);
  }
  return Done{};
}

Status AppendFile::sync() {
  if (::fsync(descriptor_.get()) != 0) return system_error(path_, "cannot sync");
  return Done{};
}

Result<MetricsWriter> MetricsWriter::open(const Options& options) {
  if (options.resume_step) CARNOT_RETURN_IF_ERROR(cut_back(options));
  CARNOT_ASSIGN_OR_RETURN(auto jsonl, AppendFile::open(options.jsonl));
  if (options.tensorboard.empty()) return MetricsWriter(std::move(jsonl), std::nullopt);
  CARNOT_ASSIGN_OR_RETURN(auto events, open_events(options));
  return MetricsWriter(std::move(jsonl), std::move(events));
}

Status MetricsWriter::write(std::int64_t step, const StepMetrics& metrics) {
  const Status line = jsonl_.append(metrics_line(step, metrics) + "\n");
  if (!line || !events_) return line;
  return events_->append(scalars_event(wall_time(), step, metrics));
}

Status MetricsWriter::sync() {
  const Status synced = jsonl_.sync();
  return synced && events_ ? events_->sync() : synced;
}

std::string metrics_line(std::int64_t step, const StepMetrics& metrics) {
  OrderedJson line = {{"step", step}};
  for (const auto& [name, value] : metrics) line[name] = std::isfinite(value) ? OrderedJson(value) : OrderedJson();
  return line.dump();
}

}  // namespace carnot
