#include "carnot/core/run/run_alarms.h"

#include "carnot/core/alarm/example.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

AlarmSetting alarm_setting(const Recipe& recipe) {
  const WorkerOptions& workers = recipe.rollout.workers;
  return {.options = recipe.alarm,
          .environment = recipe.environment_name,
          .evaluation =
              "val-core/" + recipe.environment_name + "/success/mean@" + std::to_string(recipe.evaluation.samples),
          .max_grad_norm = recipe.train.optimizer.max_grad_norm,
          .one_kernel_set = recipe.run.device == "cpu" && !workers.is_asynchronous() && !workers.takes_other_kernels()};
}

void print_alarms(Progress& progress, const std::vector<RaisedAlarm>& raised, std::int64_t step,
                  std::span<const Group> groups, const Decode& decode) {
  const std::vector<Trajectory> all = raised.empty() ? std::vector<Trajectory>() : trajectories(groups);
  for (const RaisedAlarm& alarm : raised)
    progress.print(alarm_text(alarm, step, example(alarm.row->example, all, decode)));
}

}  // namespace carnot
