#include "carnot/core/run/tracking.h"

#include <algorithm>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/subprocess/python_folder.h"

namespace carnot {
namespace {

constexpr int kProtocol = 1;

std::string line(const OrderedJson& message) {
  return message.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Numbers and booleans as such; a string as it is; a list as a recipe writes it.
OrderedJson value_of(const FieldRow& row) {
  const bool is_quoted = row.value.starts_with('"');
  if (row.type.starts_with("list") || (row.type == "str" && !is_quoted)) return row.value;
  auto parsed = parse_json<OrderedJson>(row.value, row.key);
  return parsed ? std::move(parsed).value() : OrderedJson(row.value);
}

OrderedJson settings_of(Recipe& recipe) {
  OrderedJson settings = OrderedJson::object();
  const FieldTable table = recipe.table();
  for (const FieldRow& row : table.rows()) settings[row.key] = value_of(row);
  return settings;
}

/// The folder's id, or a new one of sixteen hexadecimal digits.
Result<std::string> id_of(const RunFolder& folder) {
  if (const auto kept = read_file(folder.run_id())) {
    const std::string id(trim(*kept));
    const bool is_id = !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_';
    });
    if (is_id) return id;
  }
  CARNOT_ASSIGN_OR_RETURN(const auto unguessable, temporary_name());  // ".carnot-0123456789abcdef.tmp"
  const std::size_t begin = unguessable.find('-') + 1;
  return unguessable.substr(begin, unguessable.rfind('.') - begin);
}

OrderedJson transcript_of(const Trajectory& trajectory, std::int64_t step, const Decode& decode) {
  const Leaf& leaf = trajectory.leaf();
  const std::vector<TokenId> tokens = trajectory.tokens();
  const std::vector<bool> sampled = trajectory.sampled();
  const auto first = static_cast<std::size_t>(std::ranges::find(sampled, true) - sampled.begin());
  const std::span<const TokenId> all(tokens);
  OrderedJson message{{"type", "transcript"},
                      {"stage", kTrainingStage},
                      {"step", step},
                      {"uid", trajectory.group->uid},
                      {"traj_id", leaf.trajectory_id},
                      {"outcome", name_of(leaf.outcome)},
                      {"success", leaf.success},
                      {"score", leaf.score},
                      {"turns", trajectory.num_turns()},
                      {"gts", trajectory.group->ground_truth},
                      {"measures", leaf.measures}};
  message["input"] = decode(all.first(first));
  message["output"] = decode(all.subspan(first));
  return message;
}

}  // namespace

Tracking::~Tracking() {
  if (listener_) end("failed", "the run ended without saying why");
}

Result<Tracking> Tracking::start(Recipe& recipe, const RunFolder& folder, bool resumed) {
  Tracking tracking;
  const TrackOptions& options = recipe.track;
  if (options.command.empty()) return tracking;
  CARNOT_ASSIGN_OR_RETURN(auto id, id_of(folder));
  tracking.id_ = std::move(id);
  tracking.transcripts_ = options.transcripts;
  const std::filesystem::path path = std::filesystem::absolute(folder.root).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  const OrderedJson greeting{{"type", "start"},    {"protocol", kProtocol},        {"run", tracking.id_},
                             {"name", name},       {"folder", path.string()},      {"resumed", resumed},
                             {"restarted", false}, {"config", settings_of(recipe)}};
  auto listener =
      Listener::start({.name = "tracker",
                       .program = {.command = options.command, .environment = python_variables()},
                       .finish_seconds = options.finish_seconds},
                      {.greeting =
                           [greeting](int start) {
                             OrderedJson message = greeting;
                             message["restarted"] = start > 1;
                             return line(message);
                           },
                       .dropped = [](std::int64_t lines) { return line({{"type", "dropped"}, {"lines", lines}}); }});
  if (!listener) return Error{"track.command: " + listener.error().message};
  tracking.listener_ = std::move(listener).value();
  return tracking;
}

Status Tracking::keep_id(const RunFolder& folder) const {
  if (id_.empty()) return Done{};
  const auto kept = read_file(folder.run_id());
  return kept && trim(*kept) == id_ ? Status(Done{}) : write_file_atomically(folder.run_id(), id_ + "\n");
}

void Tracking::stage(std::string_view name, std::int64_t step, std::int64_t steps) {
  if (!listener_) return;
  listener_->introduce(line({{"type", "stage"}, {"stage", name}, {"step", step}, {"steps", steps}}));
}

void Tracking::metrics(std::string_view stage, std::int64_t step, const StepMetrics& metrics) {
  if (!listener_) return;
  listener_->tell(line({{"type", "metrics"}, {"stage", stage}, {"step", step}, {"metrics", metrics}}));
}

void Tracking::transcripts(std::int64_t step, std::span<const Group> groups, const Decode& decode) {
  if (!listener_ || transcripts_ == 0) return;
  const std::vector<Trajectory> all = trajectories(groups);
  const std::size_t wanted = std::min(all.size(), static_cast<std::size_t>(transcripts_));
  for (std::size_t i = 0; i < wanted; ++i)
    listener_->tell(line(transcript_of(all[i * all.size() / wanted], step, decode)));
}

void Tracking::end(std::string_view status, const std::string& message) {
  if (!listener_) return;
  OrderedJson last{{"type", "end"}, {"status", status}};
  if (!message.empty()) last["message"] = message;
  listener_->finish(line(last));
  listener_.reset();
}

}  // namespace carnot
