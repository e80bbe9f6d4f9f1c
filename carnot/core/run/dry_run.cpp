// `--dry-run`: what a run would do, without running it.
#include <ostream>

#include "carnot/core/base/saturating.h"
#include "carnot/core/run/disk_budget.h"
#include "carnot/core/run/memory_advice.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/start.h"
#include "carnot/core/train/shard_work.h"

namespace carnot {

Status dry_run(Recipe& recipe, MemoryStage stage, int ranks, std::ostream& out) {
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(recipe.run));
  CARNOT_RETURN_IF_ERROR(check_ranks(recipe.train, ranks));
  if (stage == MemoryStage::Training) CARNOT_RETURN_IF_ERROR(recipe.check_trainable());
  CARNOT_ASSIGN_OR_RETURN(const auto bundle, ModelBundle::open(recipe));
  CARNOT_ASSIGN_OR_RETURN(const auto rows, sft_rows(recipe, bundle, stage));  // counted in what the process holds
  const MemorySettings settings = memory_settings(recipe, bundle.config, stage, ranks);
  out << recipe.to_yaml() << "\n# Disk at the most\n" << budget_table(disk_budget(settings));
  if (const auto free = free_space(recipe.run.run_folder))
    out << "  of the " << (*free >> 20) << " MiB that are free in " << recipe.run.run_folder << "\n";
  out << "\n# Memory at the peak" << (ranks > 1 ? ", of each rank" : "") << "\n"
      << budget_table(memory_budget(settings));
  if (const MachineMemory limit = memory_limit(recipe); limit.bytes > 0)
    out << "  of the " << (limit.bytes >> 20) << " MiB " << limit.source << "\n";
  const auto memory = predict_memory(recipe, bundle.config, stage, {.all = ranks});
  if (memory && ranks > 1)
    out << "  " << ((Saturating(*memory) * ranks).value() >> 20) << " MiB for " << ranks << " ranks on one machine\n";
  return memory ? Status(Done{}) : memory.error();
}

}  // namespace carnot
