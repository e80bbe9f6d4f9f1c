#include "carnot/core/run/group_start.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/run/own_kernels.h"
#include "carnot/core/train/trainer.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

std::string hash_of_weights(const std::vector<NamedTensor>& weights) {
  std::string hashes;
  for (const NamedTensor& weight : weights) {
    const at::Tensor here = weight.tensor.detach().to(at::kCPU).contiguous();
    hashes += weight.name + " " +
              sha256_hex({static_cast<const char*>(here.const_data_ptr()), static_cast<std::size_t>(here.nbytes())});
  }
  return sha256_hex(hashes);
}

/// What has to be the same on all ranks, by what a message calls it.
using Facts = std::map<std::string, std::string>;

Facts own_facts(Recipe& recipe, const ModelBundle& bundle) {
  Facts facts;
  const FieldTable table = recipe.table();
  for (const FieldRow& row : table.rows())
    if (row.key != "threads") facts[row.key] = row.value;
  facts["the set of kernels"] = own_kernels(recipe.run);
  const auto program = sha256_of_file("/proc/self/exe");
  facts["the program's SHA-256"] = program ? *program : "unknown";
  std::vector<NamedTensor> weights = bundle.policy->parameters();
  for (const NamedTensor& adapter : bundle.policy->adapters()) weights.push_back(adapter);
  facts["the weights' SHA-256"] = hash_of_weights(weights);
  return facts;
}

/// "train.groups_per_step is 8, 16 on rank 0 on host a (process 7)" for each fact that differs.
Error difference_to_first(Collectives& group, int rank, const Facts& first, const Facts& other) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : first) {
    const auto found = other.find(name);
    const std::string have = found == other.end() ? "not set" : found->second;
    if (have != value)
      lines.push_back(group.name_of_rank(rank) + ": " + name + " is " + have + ", " + value + " on " +
                      group.name_of_rank(0) + "; expected the same on all ranks");
  }
  if (lines.empty())
    lines.push_back(group.name_of_rank(rank) + ": has settings that " + group.name_of_rank(0) +
                    " has not; expected the same on all ranks");
  return join_errors(lines);
}

/// Empty if there is no run, or none whose settings can be read: check_resumed_settings() says so.
std::optional<TrainOptions> recorded_options(const fs::path& config) {
  if (config.empty() || !fs::exists(config)) return std::nullopt;
  const auto recorded = Recipe::load_recorded(config, {});
  return recorded ? std::optional(recorded->train) : std::nullopt;
}

}  // namespace

MachineShare find_machine_share(Collectives& group) {
  if (group.size() == 1) return {};
  std::vector<RankPlace> places;
  for (const std::string& bytes : group.gather(bytes_of_place(own_place()), "where the ranks are"))
    places.push_back(place_of_bytes(bytes));
  return share_of_machine(places, group.rank());
}

Status settle_shards(Recipe& recipe, const fs::path& config, int ranks) {
  TrainOptions& options = recipe.train;
  if (options.gradient_reduction == "fast") return Done{};
  if (options.virtual_shards > 0) return check_ranks(options, ranks);
  options.virtual_shards = ranks;
  const auto recorded = recorded_options(config);
  if (!recorded || recorded->gradient_reduction == "fast") return Done{};
  const int shards = std::max(1, recorded->virtual_shards);
  if (shards % ranks == 0) {
    options.virtual_shards = shards;
    return Done{};
  }
  if (recipe.run.resume_changes == "allow") return Done{};
  return Error{"train.virtual_shards: the run to resume was made with " + std::to_string(shards) + ", which " +
               std::to_string(ranks) + " ranks cannot share evenly; expected a number of ranks that divides it, or " +
               "resume_changes=allow for a run that continues with " + std::to_string(ranks)};
}

Status check_alike(Collectives& group, Recipe& recipe, const ModelBundle& bundle) {
  if (group.size() == 1) return Done{};
  ByteWriter out;
  out.add(own_facts(recipe, bundle));
  const auto gathered = group.gather(out.take(), "what the ranks begin with");
  std::vector<Facts> facts(gathered.size());
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
    ByteReader in(gathered[rank]);
    in.get(facts[rank]);
    CARNOT_CHECK(in.complete(), group.name_of_rank(static_cast<int>(rank)));
  }
  for (std::size_t rank = 1; rank < facts.size(); ++rank)
    if (facts[rank] != facts[0]) return difference_to_first(group, static_cast<int>(rank), facts[0], facts[rank]);
  return Done{};
}

Status check_same_weights(Collectives& group, const std::vector<NamedTensor>& weights, const std::string& what) {
  if (group.size() == 1) return Done{};
  const auto hashes = group.gather(hash_of_weights(weights), what);
  for (std::size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0])
      return Error{group.name_of_rank(static_cast<int>(rank)) + ": has other weights than " + group.name_of_rank(0) +
                   "; expected the same on all ranks. The last checkpoint is as it was"};
  return Done{};
}

}  // namespace carnot
