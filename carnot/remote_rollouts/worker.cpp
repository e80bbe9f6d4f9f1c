#include "carnot/remote_rollouts/worker.h"

#include <chrono>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/rollout/rollout_bytes.h"
#include "carnot/remote_rollouts/trainer_copy.h"
#include "carnot/remote_rollouts/transport/task_source.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{500};      // for a task
constexpr milliseconds kPause{300};         // before another try
constexpr milliseconds kBetweenSigns{700};  // of life, while a task is in work
constexpr milliseconds kBetweenLooks{2000};

class Worker {
 public:
  Worker(const WorkerRequest& request, const RunControl& control, TaskSource& source)
      : request_(request), control_(control), source_(source) {}

  Status run() {
    while (go_on()) {
      source_.keep_announced();
      CARNOT_RETURN_IF_ERROR(look());
      if (request_.one_run && run_ended_) return Done{};
      CARNOT_ASSIGN_OR_RETURN(const auto ready, trainer_ ? prepare() : Result<bool>(wait_for_trainer()));
      if (!ready) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      CARNOT_RETURN_IF_ERROR(work());
    }
    return Done{};
  }

 private:
  bool go_on() const { return !control_.stop_requested(); }

  /// Says a thing once, until there is another one to say.
  void say(const std::string& what) {
    if (what != said_) log_info(what);
    said_ = what;
  }

  bool wait_for_trainer() {
    say("waiting for a trainer: carnot train RECIPE rollout.workers=" + request_.address);
    return false;
  }

  /// trainer_ as it is announced now; empty if the run has ended.
  Status look() {
    auto trainer = source_.trainer();
    if (!trainer) return trainer.error();
    if (!*trainer && copy_) return Done{};  // the broker is away, or forgot: the trainer will tell it again
    trainer_ = std::move(trainer).value();
    if (!trainer_) return Done{};
    if (trainer_->protocol == kWorkerProtocol && !trainer_->open) {
      run_ended_ = copy_ != nullptr;
      trainer_.reset();
      return Done{};
    }
    return check_same_program(*trainer_);
  }

  /// Settings and weights of the trainer in place? False if something has still to come.
  Result<bool> prepare() {
    std::string why_not;
    if (!copy_ || copy_->run() != trainer_->run) {
      copy_.reset();
      CARNOT_ASSIGN_OR_RETURN(
          auto made, TrainerCopy::make(source_, *trainer_, request_.threads, [this] { return go_on(); }, why_not));
      if (!made) return not_yet(why_not);
      copy_ = std::move(made);
      say("working for " + trainer_->place + ": " + copy_->recipe().environment_name + ", " +
          copy_->recipe().method.name);
      if (copy_->kernels() != trainer_->kernels)
        log_info("kernels: " + copy_->kernels() + " here, " + trainer_->kernels +
                 " there: the trainer computes the log-probabilities again");
    }
    if (trainer_->version < 0) return false;
    if (copy_->version() == trainer_->version) return true;
    CARNOT_ASSIGN_OR_RETURN(const auto taken, copy_->take_weights(source_, *trainer_, [this] { return go_on(); }));
    return taken.done ? true : not_yet(taken.why_not);
  }

  bool not_yet(const std::string& why) {
    if (go_on()) say("waiting for the trainer: " + why);
    return false;
  }

  Status work() {
    auto leased = source_.next_task(copy_->run(), kPatience);
    if (!leased) return leased.error();
    if (!*leased) return Done{};
    LeasedTask& held = **leased;
    CARNOT_ASSIGN_OR_RETURN(const auto ready, is_ready_for(held.task));
    if (!ready) {
      held.lease.give_back();
      std::this_thread::sleep_for(kPause);
      return Done{};
    }
    idle_seconds_ += idle_since_.seconds();
    const Rollout rollout = copy_->roll_out(held.task, {.go_on = [&] { return is_wanted(held.lease); },
                                                        .newer_weights = [&] { return newer_weights(held.lease); }});
    if (rollout.stopped)
      held.lease.give_back();
    else if (const Status handed_in = hand_in(held, {.worker = this_place(),
                                                     .kernels = copy_->kernels(),
                                                     .idle_seconds = std::exchange(idle_seconds_, 0),
                                                     .rollout = bytes_of_rollout(rollout)});
             !handed_in)
      return handed_in;
    idle_since_ = Stopwatch();
    return Done{};
  }

  /// With the weights that the task needs, for which the trainer is looked at once more where they are not here.
  Result<bool> is_ready_for(const WorkerTask& task) {
    if (copy_->can_roll_out(task)) return true;
    CARNOT_RETURN_IF_ERROR(look());
    const auto ready = trainer_ ? prepare() : Result<bool>(false);
    if (!ready || !*ready) return ready;
    return copy_->can_roll_out(task);
  }

  /// In the middle of a task: takes what the trainer has announced meanwhile, where the recipe says so. What goes wrong
  /// here is reported where the next task is prepared.
  std::optional<int> newer_weights(Lease& lease) {
    const auto now = Clock::now();
    if (!copy_->recipe().rollout.workers.in_flight_updates || now < next_weights_) return std::nullopt;
    next_weights_ = now + kBetweenSigns;
    const auto announced = source_.trainer();
    if (!announced || !*announced || !(*announced)->open || (*announced)->run != copy_->run()) return std::nullopt;
    if ((*announced)->version <= copy_->version()) return std::nullopt;
    const auto taken = copy_->take_weights(source_, **announced, [&] { return is_wanted(lease); });
    if (!taken || !taken->done) return std::nullopt;
    return static_cast<int>(copy_->version());
  }

  /// While a task is in work: the lease is kept, and the trainer looked after.
  bool is_wanted(Lease& lease) {
    if (!go_on()) return false;
    const auto now = Clock::now();
    if (now >= next_sign_) {
      lease.extend();
      source_.keep_announced();
      next_sign_ = now + kBetweenSigns;
    }
    if (now < next_look_) return true;
    next_look_ = now + kBetweenLooks;
    const auto trainer = source_.trainer();
    return !trainer || !*trainer || ((*trainer)->open && (*trainer)->run == copy_->run());
  }

  /// Tries until the trainer has the result, or another one has taken its place.
  Status hand_in(LeasedTask& held, const WorkerResult& result) {
    while (is_wanted(held.lease)) {
      const auto handed_in = source_.hand_in(*trainer_, held.task, result);
      if (!handed_in) {
        held.lease.give_back();
        return handed_in.error();
      }
      if (handed_in->done) {
        held.lease.finish();
        return Done{};
      }
      not_yet(handed_in->why_not);
      std::this_thread::sleep_for(kPause);
    }
    held.lease.give_back();
    return Done{};
  }

  const WorkerRequest& request_;
  const RunControl& control_;
  TaskSource& source_;
  std::optional<Announcement> trainer_{};
  std::unique_ptr<TrainerCopy> copy_{};
  bool run_ended_ = false;  ///< that this worker has worked for
  std::string said_{};
  Clock::time_point next_sign_{}, next_look_{}, next_weights_{};
  Stopwatch idle_since_{};   ///< since when there is nothing to roll out
  double idle_seconds_ = 0;  ///< before that, not reported yet
};

Result<PeerServerOptions> serving_options(const WorkerRequest& request, const std::string& key) {
  auto options = parse_serving_address(request.serve, "--serve");
  if (!options) return options;
  if (!request.serve_url.empty() && !parse_url(request.serve_url))
    return Error{"--serve-url: " + request.serve_url + ": expected the address of an HTTP server"};
  options->url = request.serve_url;
  options->key = key;
  options->certificate = request.keys.certificate;
  options->private_key = request.keys.private_key;
  return options;
}

}  // namespace

Status run_worker(const WorkerRequest& request, const RunControl& control) {
  CARNOT_ASSIGN_OR_RETURN(const auto address, parse_broker_address(request.address, "ADDRESS"));
  CARNOT_ASSIGN_OR_RETURN(const auto broker, broker_options(address, request.keys, "carnot worker, " + this_place()));
  CARNOT_ASSIGN_OR_RETURN(const auto key, key_of_variable(request.key_variable, "--key-env"));
  const auto source = TaskSource::connect(address, broker, key, [&control] { return !control.stop_requested(); });
  if (!source) return source.error();
  if (!*source) return Done{};
  if (!request.serve.empty()) {
    const auto options = serving_options(request, key);
    const Status served = options ? (*source)->serve_to_peers(*options) : Status(options.error());
    if (!served) return served;
  }
  return Worker(request, control, **source).run();
}

}  // namespace carnot
