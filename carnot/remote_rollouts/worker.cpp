// The command `carnot worker`: rolls out a trainer's tasks until it is asked to stop.
//
// The worker finds the trainer at a NATS server. It takes a task on lease, rolls it out with the weights that the
// task names, and hands the result to the trainer. If it dies in between, the lease expires and another worker computes
// the same.
#include <chrono>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/core/rollout/rollout_bytes.h"
#include "carnot/remote_rollouts/trainer_copy.h"
#include "carnot/remote_rollouts/transport/task_source.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPause{300};         // before another try
constexpr milliseconds kBetweenSigns{700};  // of life, while a task is in work
constexpr milliseconds kBetweenLooks{2000};

struct WorkerRequest {
  std::string address{};       ///< nats://HOST:PORT[/NAME]
  std::string key_variable{};  ///< environment variable with the key of the trainer's HTTP server; empty: none needed
  BrokerKeys keys{};
  int threads = -1;         ///< of the kernels; -1: as the trainer's recipe says
  std::string serve{};      ///< HOST[:PORT] that it serves weights on to other workers; empty: it does not
  std::string serve_url{};  ///< under which they reach it; empty: host and port
  bool one_run = false;     ///< ends with the trainer's run
};

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
    CARNOT_ASSIGN_OR_RETURN(auto trainer, source_.trainer());
    if (!trainer && copy_) return Done{};  // the broker is away, or forgot: the trainer announces itself again
    trainer_ = std::move(trainer);
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
    CARNOT_ASSIGN_OR_RETURN(const auto task, source_.next_task(*trainer_));
    if (!task) return Done{};
    const Announcement lessor = *trainer_;
    CARNOT_ASSIGN_OR_RETURN(const auto ready, is_ready_for(*task));
    if (!ready) {
      source_.give_back(lessor, *task);
      std::this_thread::sleep_for(kPause);
      return Done{};
    }
    idle_seconds_ += idle_since_.seconds();
    const Rollout rollout = copy_->roll_out(
        *task, {.go_on = [&] { return is_wanted(*task); }, .newer_weights = [&] { return newer_weights(*task); }});
    if (rollout.stopped)
      source_.give_back(*trainer_, *task);
    else
      CARNOT_RETURN_IF_ERROR(hand_in(*task, {.worker = this_place(),
                                             .kernels = copy_->kernels(),
                                             .idle_seconds = std::exchange(idle_seconds_, 0),
                                             .rollout = bytes_of_rollout(rollout)}));
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
  std::optional<int> newer_weights(const WorkerTask& task) {
    const auto now = Clock::now();
    if (!copy_->recipe().rollout.workers.in_flight_updates || now < next_weights_) return std::nullopt;
    next_weights_ = now + kBetweenSigns;
    const auto announced = source_.trainer();
    if (!announced || !*announced || !(*announced)->open || (*announced)->run != copy_->run()) return std::nullopt;
    if ((*announced)->version <= copy_->version()) return std::nullopt;
    const auto taken = copy_->take_weights(source_, **announced, [&] { return is_wanted(task); });
    if (!taken || !taken->done) return std::nullopt;
    return static_cast<int>(copy_->version());
  }

  /// While a task is in work: the lease is kept, and the trainer looked for. One that does not answer is asked less
  /// often, since each try may take a while.
  bool is_wanted(const WorkerTask& task) {
    if (!go_on()) return false;
    const auto now = Clock::now();
    if (now >= next_sign_) {
      const bool answered = source_.extend(*trainer_, task);
      source_.keep_announced();
      next_sign_ = now + (answered ? kBetweenSigns : kBetweenLooks);
    }
    if (now < next_look_) return true;
    next_look_ = now + kBetweenLooks;
    const auto trainer = source_.trainer();
    return !trainer || !*trainer || ((*trainer)->open && (*trainer)->run == copy_->run());
  }

  /// Tries until the trainer has the result, or another one has taken its place.
  Status hand_in(const WorkerTask& task, const WorkerResult& result) {
    while (is_wanted(task)) {
      const auto handed_in = source_.hand_in(*trainer_, task, result);
      if (handed_in && handed_in->done) return Done{};
      if (!handed_in) {
        source_.give_back(*trainer_, task);
        return handed_in.error();
      }
      not_yet(handed_in->why_not);
      std::this_thread::sleep_for(kPause);
    }
    source_.give_back(*trainer_, task);
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

/// Waits for broker and trainer, however often they go and come. What it holds is given back where
/// `control.stop_requested` ends it, and that is no failure. The error says why it cannot work for this trainer:
/// another version or kernel set, a wrong key, an environment that is not there.
Status run_worker(const WorkerRequest& request, const RunControl& control) {
  CARNOT_ASSIGN_OR_RETURN(const auto address, parse_broker_address(request.address, "ADDRESS"));
  CARNOT_ASSIGN_OR_RETURN(const auto broker, broker_options(address, request.keys, "carnot worker, " + this_place()));
  CARNOT_ASSIGN_OR_RETURN(const auto key, key_of_variable(request.key_variable, "--key-env"));
  CARNOT_ASSIGN_OR_RETURN(const auto source,
                          TaskSource::connect(address, broker, key, [&control] { return !control.stop_requested(); }));
  if (!source) return Done{};
  if (!request.serve.empty()) {
    CARNOT_ASSIGN_OR_RETURN(const auto options, serving_options(request, key));
    CARNOT_RETURN_IF_ERROR(source->serve_to_peers(options));
  }
  return Worker(request, control, *source).run();
}

class WorkerCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("ADDRESS", request_.address, "nats://HOST:PORT[/NAME], as in the trainer's rollout.workers",
                 Presence::Required);
    take.text("--key-env", "NAME", request_.key_variable,
              "environment variable with the key of the trainer's HTTP server; default: it needs none");
    take.text("--credentials", "FILE", request_.keys.credentials, "for the NATS server, as nsc writes them");
    take.text("--authority", "FILE", request_.keys.authority,
              "PEM file of the authority of the NATS server's certificate; default: the system's");
    take.text("--certificate", "FILE", request_.keys.certificate,
              "PEM file of the certificate shown to the NATS server");
    take.text("--private-key", "FILE", request_.keys.private_key, "PEM file of that certificate's key");
    take.count("--threads", "N", request_.threads, 0, "of the kernels; default: as the trainer's recipe says");
    take.text(
        "--serve", "HOST[:PORT]", request_.serve,
        "serve the weights to other workers on this address; beyond loopback only with --key-env; default: do not");
    take.text("--serve-url", "URL", request_.serve_url,
              "under which others reach that; default: this machine's name and the port");
    take.flag("--one-run", request_.one_run, "end when the trainer's run has ended; default: wait for the next one");
  }

  Exit run(const Console& console) override {
    return ended(run_worker(request_, prepare_run(console, StopLeaves::Nothing)), console);
  }

 private:
  WorkerRequest request_;
};

}  // namespace

CommandEntry worker_entry() {
  return {.name = "worker",
          .arguments = "ADDRESS",
          .summary = "roll out the training steps of a trainer elsewhere",
          .example = "nats://node-1:4222",
          .make = make_command<WorkerCommand>};
}

}  // namespace carnot
