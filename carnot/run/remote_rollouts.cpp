#include "carnot/run/remote_rollouts.h"

#include <algorithm>
#include <iterator>

#include "carnot/base/log.h"
#include "carnot/base/stopwatch.h"
#include "carnot/base/temporary_name.h"
#include "carnot/hf/model_config_file.h"
#include "carnot/hf/safetensors.h"
#include "carnot/rollout/rollout_bytes.h"
#include "carnot/run/own_kernels.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

StepTasks part_of(const StepTasks& all, std::int64_t begin, std::int64_t most) {
  StepTasks part = all;
  part.first_task += begin;
  part.key.first_group += static_cast<std::uint64_t>(begin);
  part.groups = std::min(most, all.groups - begin);
  return part;
}

Result<TaskBoardOptions> board_options(const Recipe& recipe) {
  const PlaneOptions& plane = recipe.rollout.plane;
  const auto address = parse_plane_address(plane.address, "rollout.plane");
  if (!address) return address.error();
  if (plane.certificate.empty() != plane.private_key.empty())
    return Error{"rollout.plane_certificate and rollout.plane_private_key come together; only one of them is given"};
  const bool secure = address->server.starts_with("tls://");
  auto broker = broker_options(*address,
                               {.credentials = plane.credentials,
                                .authority = plane.authority,
                                .certificate = secure ? plane.certificate : "",
                                .private_key = secure ? plane.private_key : ""},
                               "carnot trainer, " + this_place());
  if (!broker) return broker.error();
  auto key = key_of_variable(plane.key_variable, "rollout.plane_key_env");
  if (!key) return key.error();
  if (!plane.url.empty())
    if (const auto url = parse_url(plane.url); !url) return Error{"rollout.plane_url: " + url.error().message};
  return TaskBoardOptions{.address = *address,
                          .broker = std::move(broker).value(),
                          .host = plane.listen,
                          .port = plane.port,
                          .url = plane.url,
                          .certificate = plane.certificate,
                          .private_key = plane.private_key,
                          .key = std::move(key).value(),
                          .lease = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * plane.lease_seconds)),
                          .kernels = own_kernels(recipe.run)};
}

}  // namespace

Status check_plane(const Recipe& recipe) {
  if (recipe.rollout.plane.address.empty()) return Done{};
  const auto options = board_options(recipe);
  if (!options) return options.error();
  if (const Status listening = check_listening(*options); !listening) return listening;
  return Broker::check(options->broker);
}

RemoteRollouts::RemoteRollouts(Recipe& recipe, ModelBundle& bundle, fs::path folder, std::unique_ptr<TaskBoard> board)
    : recipe_(recipe), bundle_(bundle), folder_(std::move(folder)), board_(std::move(board)) {}

Result<std::unique_ptr<RemoteRollouts>> RemoteRollouts::open(Recipe& recipe, ModelBundle& bundle, fs::path folder,
                                                             const GoOn& go_on) {
  const auto options = board_options(recipe);
  if (!options) return options.error();
  auto board = TaskBoard::open(*options, go_on);
  if (!board) return board.error();
  if (!*board) return std::unique_ptr<RemoteRollouts>();
  std::unique_ptr<RemoteRollouts> rollouts(
      new RemoteRollouts(recipe, bundle, std::move(folder), std::move(board).value()));
  if (const Status served = rollouts->serve_setup(); !served) return served.error();
  const auto announced = rollouts->board_->announce(go_on);
  if (!announced) return announced.error();
  if (!*announced) return std::unique_ptr<RemoteRollouts>();
  return rollouts;
}

Status RemoteRollouts::serve_setup() {
  WorkerSetup setup{.recipe = recipe_.to_yaml(), .files = bundle_.model_files};
  setup.files["config.json"] = model_config_json(bundle_.policy->config(), recipe_.run.dtype);
  setup.files["tokenizer.json"] = bundle_.tokenizer->json();
  std::optional<PlaneFile> base;
  if (bundle_.policy->has_adapters()) {
    auto served = serve_tensors(bundle_.policy->parameters());
    if (!served) return served.error();
    base = std::move(served).value();
  }
  board_->set_setup(board_->files().add(setup_json(setup)), base);
  return Done{};
}

Result<PlaneFile> RemoteRollouts::serve_tensors(const std::vector<NamedTensor>& tensors) {
  const auto name = temporary_name();
  if (!name) return name.error();
  const fs::path path = folder_ / *name;
  if (const Status written = write_safetensors(path, tensors); !written) return written.error();
  return board_->files().take(path);
}

Result<bool> RemoteRollouts::announce_weights(std::int64_t version, const GoOn& go_on) {
  if (board_->version() == version) return true;
  const auto served = serve_tensors(bundle_.policy->trained());
  if (!served) return served.error();
  board_->set_weights(version, *served);
  return board_->announce(go_on);
}

Rollout RemoteRollouts::roll_out(const StepTasks& tasks, const RolloutEvents& events) {
  if (failure_) return {.stopped = true};
  auto rollout = collect(tasks, events);
  if (rollout) return std::move(rollout).value();
  failure_ = rollout.error();
  return {.stopped = true};
}

Result<Rollout> RemoteRollouts::collect(const StepTasks& all, const RolloutEvents& events) {
  const Stopwatch watch;
  const GoOn go_on = events.go_on ? events.go_on : [] { return true; };
  const auto announced = announce_weights(all.key.policy_version, go_on);
  if (!announced) return announced.error();
  if (!*announced) return Rollout{.stopped = true};
  const int vocabulary = bundle_.policy->config().vocab_size;
  std::vector<StepTasks> parts;
  std::vector<PlaneTask> tasks;
  for (std::int64_t begin = 0; begin < all.groups; begin += parts.back().groups) {
    const StepTasks& part = parts.emplace_back(part_of(all, begin, recipe_.rollout.plane.task_groups));
    tasks.push_back({.run = board_->run(),
                     .step = part.key.step,
                     .seed = part.key.seed,
                     .first_task = part.first_task,
                     .first_group = part.key.first_group,
                     .groups = part.groups,
                     .version = part.key.policy_version,
                     .weights = board_->weights().sha256});
  }
  std::vector<Rollout> results(tasks.size());
  const auto accept = [&](std::size_t task, const PlaneResult& result) -> Status {
    auto rollout = rollout_of_bytes(result.rollout);
    if (!rollout) return rollout.error();
    const auto asked = rollout_tasks(recipe_, parts[task]);
    const Status good = check_rollout(*rollout, {.tasks = asked, .key = parts[task].key, .vocabulary = vocabulary});
    if (good) results[task] = std::move(rollout).value();
    return good;
  };
  const auto on_progress = [&](std::size_t done) {
    if (events.on_progress)
      events.on_progress(static_cast<std::int64_t>(done) * recipe_.rollout.plane.task_groups *
                         recipe_.rollout.options.group_size);
  };
  const auto complete = board_->collect(tasks, accept, go_on, on_progress);
  if (!complete) return complete.error();
  if (!*complete) return Rollout{.stopped = true};
  Rollout whole;
  for (Rollout& part : results) {
    add_metrics(whole.metrics, part.metrics, PartTimes::Added);
    std::move(part.groups.begin(), part.groups.end(), std::back_inserter(whole.groups));
    std::move(part.failures.begin(), part.failures.end(), std::back_inserter(whole.failures));
  }
  whole.metrics.seconds = watch.seconds();
  return whole;
}

}  // namespace carnot
