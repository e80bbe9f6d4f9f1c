#include "carnot/remote_rollouts/trainer_copy.h"

#include <filesystem>
#include <utility>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/train/trainer.h"
#include "carnot/remote_rollouts/remote_rollouts.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// In the system's folder for such, removed at the end.
class FetchFolder {
 public:
  static Result<FetchFolder> make() {
    CARNOT_ASSIGN_OR_RETURN(auto path, make_temporary_folder(fs::temp_directory_path()));
    return FetchFolder(std::move(path));
  }
  ~FetchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  FetchFolder(FetchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  FetchFolder& operator=(FetchFolder&&) = delete;

  const fs::path& path() const { return path_; }

 private:
  explicit FetchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

/// The trainer's settings; empty if they may come another time.
Result<std::optional<WorkerSetup>> fetch_setup(TaskSource& source, const Announcement& trainer, const GoOn& go_on,
                                               std::string& why_not) {
  CARNOT_ASSIGN_OR_RETURN(const auto folder, FetchFolder::make());
  const fs::path file = folder.path() / "setup.json";
  CARNOT_ASSIGN_OR_RETURN(const auto fetched, source.fetch(trainer, trainer.setup, file, go_on));
  why_not = fetched.why_not;
  if (!fetched.done) return std::optional<WorkerSetup>();
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(file));
  CARNOT_ASSIGN_OR_RETURN(auto setup, parse_setup(text));
  return std::optional(std::move(setup));
}

}  // namespace

Result<std::unique_ptr<TrainerCopy>> TrainerCopy::make(TaskSource& source, const Announcement& trainer, int threads,
                                                       const GoOn& go_on, std::string& why_not) {
  CARNOT_ASSIGN_OR_RETURN(const auto setup, fetch_setup(source, trainer, go_on, why_not));
  if (!setup) return std::unique_ptr<TrainerCopy>();
  CARNOT_ASSIGN_OR_RETURN(auto recipe, Recipe::parse(setup->recipe, "the trainer's recipe", {}));
  std::unique_ptr<TrainerCopy> copy(new TrainerCopy(trainer.run, std::move(recipe)));
  copy->kernels_ = own_kernels(copy->recipe_.run);
  if (const Status same = check_same_kernels(trainer, copy->kernels_);
      !same && !copy->recipe_.rollout.workers.takes_other_kernels())
    return same.error();
  CARNOT_RETURN_IF_ERROR(copy->open(*setup, threads));
  if (copy->lora_.rank == 0) return copy;
  if (!trainer.base) return Error{"the trainer's announcement: has no weights below its adapters"};
  CARNOT_ASSIGN_OR_RETURN(const auto base, copy->add_weights(source, trainer, "base", *trainer.base,
                                                             copy->bundle_.policy->parameters(), go_on));
  why_not = base.why_not;
  if (!base.done) return std::unique_ptr<TrainerCopy>();
  copy->bundle_.policy->add_adapters(copy->lora_, derive_seed(0, "adapters"));
  return copy;
}

Status TrainerCopy::open(const WorkerSetup& setup, int threads) {
  if (threads >= 0) recipe_.run.threads = threads;
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(recipe_.run));
  // The trainer's files take the place of the folders that the recipe names; adapters are put on here.
  lora_ = std::exchange(recipe_.lora, {});
  recipe_.model.path.clear();
  recipe_.model.adapter.clear();
  recipe_.tokenizer.path.clear();
  CARNOT_ASSIGN_OR_RETURN(const auto folder, FetchFolder::make());
  for (const auto& [name, content] : setup.files)
    CARNOT_RETURN_IF_ERROR(write_file_atomically(folder.path() / name, content));
  CARNOT_ASSIGN_OR_RETURN(auto bundle, ModelBundle::open(recipe_, folder.path()));
  bundle_ = std::move(bundle);
  const auto seed = static_cast<std::uint64_t>(recipe_.run.seed);
  bundle_.policy = std::make_unique<Model>(bundle_.config, derive_seed(seed, "weights"), tensor_options(recipe_.run),
                                           recipe_.model.init_std);
  bundle_.policy->requires_grad(false);
  return Done{};
}

Result<WorkerAttempt> TrainerCopy::add_weights(TaskSource& source, const Announcement& trainer, const std::string& kind,
                                               const WorkerFile& file, const std::vector<NamedTensor>& into,
                                               const GoOn& go_on) {
  CARNOT_ASSIGN_OR_RETURN(const auto folder, FetchFolder::make());
  const fs::path path = folder.path() / "weights.safetensors";
  auto fetched = source.fetch_from_any(trainer, file, path, go_on);
  if (!fetched || !fetched->done) return fetched;
  CARNOT_ASSIGN_OR_RETURN(const auto tensors, read_safetensors(path));
  CARNOT_RETURN_IF_ERROR(copy_tensors(into, tensors.tensors, "the trainer's weights"));
  CARNOT_RETURN_IF_ERROR(source.keep(kind, file, path));
  return fetched;
}

Result<WorkerAttempt> TrainerCopy::take_weights(TaskSource& source, const Announcement& trainer, const GoOn& go_on) {
  Result<WorkerAttempt> taken = WorkerAttempt{.done = true};
  if (weights_ != trainer.weights.sha256)
    taken = add_weights(source, trainer, "weights", trainer.weights, bundle_.policy->trained(), go_on);
  if (!taken || !taken->done) return taken;
  weights_ = trainer.weights.sha256;
  version_ = trainer.version;
  if (generation_.engine) return taken;
  const std::int64_t trajectories =
      std::int64_t{recipe_.rollout.workers.task_groups} * recipe_.rollout.options.group_size;
  generation_ = make_generation(bundle_, recipe_.rollout_settings(), trajectories);
  return taken;
}

bool TrainerCopy::can_roll_out(const WorkerTask& task) const {
  if (task.run != run_) return false;
  return recipe_.rollout.workers.max_staleness > 0 ? task.version <= version_ : task.weights == weights_;
}

Rollout TrainerCopy::roll_out(const WorkerTask& task, const RolloutEvents& events) {
  StepTasks tasks = tasks_of(task);
  if (recipe_.rollout.workers.max_staleness > 0) tasks.key.policy_version = static_cast<int>(version_);
  return carnot::roll_out(*generation_.engine, *bundle_.chat, *recipe_.method.branch, rollout_tasks(recipe_, tasks),
                          recipe_.rollout_options(), tasks.key, events);
}

}  // namespace carnot
