#include "carnot/train/metrics_writer.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "carnot/base/file.h"
#include "carnot/base/json.h"
#include "carnot/train/event_file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Drops the lines of steps after `last`, and a last line without its end.
Status cut_back(const fs::path& path, std::int64_t last) {
  std::error_code missing;
  if (!fs::exists(path, missing)) return Done{};
  const auto text = read_file(path);
  if (!text) return text.error();
  const auto lines = split_lines(*text);
  std::string kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_cut_short = i + 1 == lines.size() && text->back() != '\n';
    if (is_cut_short) break;
    const std::string where = path.string() + ":" + std::to_string(i + 1);
    const auto row = parse_json_object<Json>(lines[i], where);
    if (!row) return row.error();
    const bool has_step = row->contains("step") && row->at("step").is_number_integer();
    if (!has_step) return Error{where + ": expected an object with a whole number `step`"};
    if (row->at("step").get<std::int64_t>() <= last) kept.append(lines[i]).append("\n");
  }
  if (kept == *text) return Done{};
  return write_file_atomically(path, kept);
}

Result<AppendFile> open_events(const MetricsWriter::Options& options) {
  const Status made = make_folder(options.tensorboard);
  if (!made) return made.error();
  const double now = wall_time();
  const std::string name =
      "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(now)) + ".carnot." + std::to_string(::getpid());
  auto file = AppendFile::open(options.tensorboard / name);
  if (!file) return file;
  std::string head = version_event(now);
  if (options.resume_step) head += restart_event(now, *options.resume_step + 1);
  const Status written = file->append(head);
  if (!written) return written.error();
  return file;
}

}  // namespace

Result<MetricsWriter> MetricsWriter::open(const Options& options) {
  if (options.resume_step) {
    const Status cut = cut_back(options.jsonl, *options.resume_step);
    if (!cut) return cut.error();
  }
  auto jsonl = AppendFile::open(options.jsonl);
  if (!jsonl) return jsonl.error();
  if (options.tensorboard.empty()) return MetricsWriter(std::move(jsonl).value(), std::nullopt);
  auto events = open_events(options);
  if (!events) return events.error();
  return MetricsWriter(std::move(jsonl).value(), std::move(events).value());
}

Status MetricsWriter::write(std::int64_t step, const StepMetrics& metrics) {
  const Status line = jsonl_.append(metrics_line(step, metrics) + "\n");
  if (!line || !events_) return line;
  return events_->append(scalars_event(wall_time(), step, metrics));
}

std::string metrics_line(std::int64_t step, const StepMetrics& metrics) {
  Json line = {{"step", step}};
  for (const auto& [name, value] : metrics) line[name] = std::isfinite(value) ? Json(value) : Json();
  return line.dump();
}

}  // namespace carnot
