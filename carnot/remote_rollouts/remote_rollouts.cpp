#include "carnot/remote_rollouts/remote_rollouts.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/rollout/info_gain.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/core/rollout/rollout_bytes.h"
#include "carnot/core/run/rollout_service.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"
#include "carnot/remote_rollouts/transport/staleness.h"
#include "carnot/remote_rollouts/transport/task_board.h"

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

/// Shared ones once.
std::vector<const Turn*> sampled_turns(const Rollout& rollout) {
  std::vector<const Turn*> turns;
  for (const Group& group : rollout.groups)
    for (const Tree& tree : group.trees)
      for (const Turn& turn : tree.turns)
        if (turn.num_sampled() > 0) turns.push_back(&turn);
  return turns;
}

Result<TaskBoardOptions> board_options(const Recipe& recipe) {
  const WorkerOptions& workers = recipe.rollout.workers;
  CARNOT_ASSIGN_OR_RETURN(const auto address, parse_broker_address(workers.address, "rollout.workers"));
  if (workers.certificate.empty() != workers.private_key.empty())
    return Error{
        "rollout.workers_certificate and rollout.workers_private_key come together; only one of them is given"};
  const bool secure = address.server.starts_with("tls://");
  CARNOT_ASSIGN_OR_RETURN(auto broker, broker_options(address,
                                                      {.credentials = workers.credentials,
                                                       .authority = workers.authority,
                                                       .certificate = secure ? workers.certificate : "",
                                                       .private_key = secure ? workers.private_key : ""},
                                                      "carnot trainer, " + this_place()));
  CARNOT_ASSIGN_OR_RETURN(auto key, key_of_variable(workers.key_variable, "rollout.workers_key_env"));
  if (!workers.url.empty())
    if (const auto url = parse_url(workers.url); !url) return Error{"rollout.workers_url: " + url.error().message};
  return TaskBoardOptions{.address = address,
                          .broker = std::move(broker),
                          .host = workers.listen,
                          .port = workers.port,
                          .url = workers.url,
                          .certificate = workers.certificate,
                          .private_key = workers.private_key,
                          .key = std::move(key),
                          .lease = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * workers.lease_seconds)),
                          .kernels = own_kernels(recipe.run),
                          .most_uploads = workers.uploads,
                          .takes_other_kernels = workers.takes_other_kernels()};
}

Status check_workers(const Recipe& recipe) {
  if (recipe.rollout.workers.address.empty()) return Done{};
  CARNOT_ASSIGN_OR_RETURN(const auto options, board_options(recipe));
  CARNOT_RETURN_IF_ERROR(check_listening(options));
  return Broker::check(options.broker);
}

class RemoteRollouts final : public RolloutService {
 public:
  /// Meets the broker and announces the run; waits for the broker where it is away. Null if `go_on` ended that. The
  /// weights of a step are written into `folder` for a moment. Tasks of steps from `steps` on are never handed out.
  /// Recipe and bundle must outlive it.
  static Result<std::unique_ptr<RemoteRollouts>> open(Recipe& recipe, ModelBundle& bundle, fs::path folder,
                                                      std::int64_t steps, const GoOn& go_on) {
    CARNOT_ASSIGN_OR_RETURN(const auto options, board_options(recipe));
    CARNOT_ASSIGN_OR_RETURN(auto board, TaskBoard::open(options, go_on));
    if (!board) return std::unique_ptr<RemoteRollouts>();
    std::unique_ptr<RemoteRollouts> rollouts(
        new RemoteRollouts(recipe, bundle, std::move(folder), steps, std::move(board)));
    CARNOT_RETURN_IF_ERROR(rollouts->serve_setup());
    CARNOT_ASSIGN_OR_RETURN(const auto announced, rollouts->board_->announce(go_on));
    if (!announced) return std::unique_ptr<RemoteRollouts>();
    return rollouts;
  }

  Rollout roll_out(const StepTasks& tasks, const RolloutEvents& events) override {
    if (failure_) return {.stopped = true};
    auto rollout = collect(tasks, events);
    if (rollout) return std::move(rollout).value();
    failure_ = rollout.error();
    return {.stopped = true};
  }

  std::map<std::string, double> take_metrics() override {
    const std::lock_guard lock(mutex_);
    const StepSums sums = std::exchange(sums_, {});
    std::map<std::string, double> metrics{{"timing_s/trainer_idle", sums.trainer_idle},
                                          {"timing_s/worker_idle", sums.worker_idle}};
    const std::int64_t sent = board_->files().bytes_sent();
    metrics["perf/uploaded_bytes"] = static_cast<double>(sent - std::exchange(bytes_reported_, sent));
    if (recipe_.rollout.workers.takes_other_kernels()) {
      metrics["rollout/other_kernels/tokens"] = sums.other_tokens;
      metrics["rollout/other_kernels/log_prob_abs_diff/max"] = sums.other_difference;
      metrics["timing_s/other_kernels"] = sums.other_seconds;
    }
    if (!recipe_.rollout.workers.is_asynchronous()) return metrics;
    metrics["async/staleness/mean"] = sums.turns > 0 ? sums.staleness / sums.turns : 0;
    metrics["async/staleness/max"] = sums.largest_staleness;
    metrics["async/tasks_again"] = sums.tasks_again;
    metrics["async/weight_swaps"] = sums.weight_swaps;
    return metrics;
  }

  const std::optional<Error>& failure() const override { return failure_; }

 private:
  struct StepSums {
    double turns = 0, staleness = 0, largest_staleness = 0;
    double weight_swaps = 0, tasks_again = 0;
    double trainer_idle = 0, worker_idle = 0;                          ///< seconds
    double other_tokens = 0, other_difference = 0, other_seconds = 0;  ///< of workers with other kernels
  };

  struct TakenResult {
    Rollout rollout{};
    bool other_kernels = false;  ///< than this machine's
  };

  RemoteRollouts(Recipe& recipe, ModelBundle& bundle, fs::path folder, std::int64_t steps,
                 std::unique_ptr<TaskBoard> board)
      : recipe_(recipe),
        bundle_(bundle),
        folder_(std::move(folder)),
        kernels_(own_kernels(recipe.run)),
        bound_(recipe.rollout.workers.max_staleness, steps),
        board_(std::move(board)) {
    board_->set_accept([this](const WorkerTask& task, const WorkerResult& result) { return take(task, result); });
  }

  Status serve_setup() {
    WorkerSetup setup{.recipe = recipe_.to_yaml(), .files = bundle_.model_files};
    setup.files["config.json"] = model_config_json(bundle_.policy->config(), recipe_.run.dtype);
    setup.files["tokenizer.json"] = bundle_.tokenizer->json();
    std::optional<WorkerFile> base;
    if (bundle_.policy->has_adapters()) {
      CARNOT_ASSIGN_OR_RETURN(auto served, serve_tensors(bundle_.policy->parameters()));
      base = std::move(served);
    }
    board_->set_setup(board_->files().add(setup_json(setup)), base);
    return Done{};
  }

  Result<WorkerFile> serve_tensors(const std::vector<NamedTensor>& tensors) {
    CARNOT_ASSIGN_OR_RETURN(const auto name, temporary_name());
    const fs::path path = folder_ / name;
    CARNOT_RETURN_IF_ERROR(write_safetensors(path, tensors));
    return board_->files().take(path);
  }

  /// Announces the policy's weights, unless they are those of `version` already.
  Result<bool> announce_weights(std::int64_t version, const GoOn& go_on) {
    if (board_->version() == version) return true;
    CARNOT_ASSIGN_OR_RETURN(const auto served, serve_tensors(bundle_.policy->trained()));
    board_->set_weights(version, served);
    return board_->announce(go_on);
  }

  Result<Rollout> collect(const StepTasks& tasks, const RolloutEvents& events) {
    const Stopwatch watch;
    const GoOn go_on = events.go_on ? events.go_on : [] { return true; };
    const std::int64_t step = tasks.key.step, version = tasks.key.policy_version;
    {
      const std::lock_guard lock(mutex_);
      bound_.begin(step, version);  // first, since results of these weights come as soon as they are announced
    }
    CARNOT_ASSIGN_OR_RETURN(const auto announced, announce_weights(version, go_on));
    if (!announced) return Rollout{.stopped = true};
    hand_out(tasks);
    const std::vector<WorkerTask> own = messages_of(tasks);
    const auto on_progress = [&](std::size_t done) {
      if (events.on_progress)
        events.on_progress(static_cast<std::int64_t>(done) * recipe_.rollout.workers.task_groups *
                           recipe_.rollout.options.group_size);
    };
    const Stopwatch waiting;
    CARNOT_ASSIGN_OR_RETURN(const auto complete, board_->wait_for(own, go_on, on_progress));
    if (!complete) return Rollout{.stopped = true};
    Rollout whole = put_together(own);
    add_to_sums(step, whole, waiting.seconds());
    whole.metrics.seconds = watch.seconds();
    return whole;
  }

  std::vector<WorkerTask> messages_of(const StepTasks& all) const {
    std::vector<WorkerTask> messages;
    for (std::int64_t begin = 0; begin < all.groups; begin += messages.back().groups) {
      const StepTasks part = part_of(all, begin, recipe_.rollout.workers.task_groups);
      messages.push_back({.run = board_->run(),
                          .step = part.key.step,
                          .seed = part.key.seed,
                          .first_task = part.first_task,
                          .first_group = part.key.first_group,
                          .groups = part.groups,
                          .version = board_->version(),
                          .weights = board_->weights().sha256});
    }
    return messages;
  }

  /// These and, as far as the bound allows, later steps' are handed out, those that are not yet.
  void hand_out(const StepTasks& tasks) {
    const std::int64_t step = tasks.key.step;
    std::vector<StepTasks> due;
    if (tasks.key.first_group > 0 || step >= asked_before_) due.push_back(tasks);
    for (asked_before_ = std::max(asked_before_, step + 1); asked_before_ < bound_.handed_out_before(); ++asked_before_)
      due.push_back(step_tasks(recipe_, asked_before_, 0, tasks.key.policy_version));
    for (const StepTasks& of_step : due) board_->hand_out(messages_of(of_step));
  }

  /// On one of the server's threads.
  Result<TaskBoard::Verdict> take(const WorkerTask& task, const WorkerResult& result) {
    CARNOT_ASSIGN_OR_RETURN(auto rollout, rollout_of_bytes(result.rollout));
    const bool synchronous = !recipe_.rollout.workers.is_asynchronous();
    StepTasks tasks = tasks_of(task);
    if (!synchronous) tasks.key.policy_version = 0;  // how old weights may be, the bound says
    const auto asked = rollout_tasks(recipe_, tasks);
    const Status good = check_rollout(rollout, {.tasks = asked,
                                                .key = tasks.key,
                                                .newest_version = static_cast<int>(board_->version()),
                                                .vocabulary = bundle_.policy->config().vocab_size});
    if (!good) return good.error();
    const std::lock_guard lock(mutex_);
    sums_.worker_idle += result.idle_seconds;
    for (const Turn* turn : sampled_turns(rollout)) {
      if (synchronous || bound_.admits(task.step, turn->policy_version)) continue;
      ++sums_.tasks_again;
      return TaskBoard::Verdict::Again;
    }
    results_[task.key()] = {.rollout = std::move(rollout), .other_kernels = result.kernels != kernels_};
    return TaskBoard::Verdict::Taken;
  }

  /// The result of this task; with the log-probabilities that the trainer's kernels give.
  Rollout taken(const WorkerTask& task) {
    std::unique_lock lock(mutex_);
    TakenResult result = std::move(results_.extract(task.key()).mapped());
    lock.unlock();
    if (result.other_kernels) measure_again(result.rollout);
    return std::move(result.rollout);
  }

  /// The columns of what other kernels sampled. In asynchronous mode they are only counted: the weights that sampled
  /// may be gone, and the objective takes the log-probabilities of the behaviour policy, which are those of the worker.
  void measure_again(Rollout& rollout) {
    clear_info_gain(rollout.groups);
    ColumnDifference difference;
    const Stopwatch watch;
    if (recipe_.rollout.workers.is_asynchronous())
      for (const Turn* turn : sampled_turns(rollout)) difference.tokens += turn->num_sampled();
    else
      difference = measure_rollout(
          *bundle_.policy, rollout.groups,
          {.max_tokens = recipe_.rollout.log_prob_tokens, .temperature = recipe_.rollout.options.sampling.temperature});
    const std::lock_guard lock(mutex_);
    sums_.other_tokens += static_cast<double>(difference.tokens);
    sums_.other_difference = std::max(sums_.other_difference, difference.largest);
    sums_.other_seconds += watch.seconds();
  }

  /// The results of these tasks, in their order.
  Rollout put_together(const std::vector<WorkerTask>& tasks) {
    Rollout whole;
    for (const WorkerTask& task : tasks) {
      Rollout part = taken(task);
      add_metrics(whole.metrics, part.metrics, PartTimes::Added);
      std::move(part.groups.begin(), part.groups.end(), std::back_inserter(whole.groups));
      std::move(part.failures.begin(), part.failures.end(), std::back_inserter(whole.failures));
    }
    return whole;
  }

  void add_to_sums(std::int64_t step, const Rollout& rollout, double waited) {
    const std::lock_guard lock(mutex_);
    sums_.trainer_idle += waited;
    sums_.weight_swaps += static_cast<double>(rollout.metrics.weight_swaps);
    for (const Turn* turn : sampled_turns(rollout)) {
      const auto staleness = static_cast<double>(bound_.staleness(step, turn->policy_version));
      sums_.turns += 1;
      sums_.staleness += staleness;
      sums_.largest_staleness = std::max(sums_.largest_staleness, staleness);
    }
  }

  Recipe& recipe_;
  ModelBundle& bundle_;
  std::filesystem::path folder_;
  std::string kernels_;
  std::int64_t asked_before_ = 0;  ///< tasks of the steps before this one are handed out
  std::mutex mutex_{};             ///< of the three below
  StalenessBound bound_;
  std::map<std::string, TakenResult> results_{};  ///< by the tasks' keys
  StepSums sums_{};
  std::int64_t bytes_reported_ = 0;  ///< sent to workers, as of the last metrics
  std::optional<Error> failure_{};
  std::unique_ptr<TaskBoard> board_;  ///< last, since its threads call take()
};

}  // namespace

StepTasks tasks_of(const WorkerTask& task) {
  return {.first_task = task.first_task,
          .groups = task.groups,
          .key = {.seed = task.seed,
                  .step = task.step,
                  .first_group = task.first_group,
                  .policy_version = static_cast<int>(task.version)}};
}

void offer_remote_rollouts() {
  offer_rollout_service({.check = check_workers,
                         .open = [](Recipe& recipe, ModelBundle& bundle, fs::path folder, std::int64_t steps,
                                    const GoOn& go_on) -> Result<std::unique_ptr<RolloutService>> {
                           CARNOT_ASSIGN_OR_RETURN(
                               auto opened, RemoteRollouts::open(recipe, bundle, std::move(folder), steps, go_on));
                           return std::unique_ptr<RolloutService>(std::move(opened));
                         }});
}

}  // namespace carnot
