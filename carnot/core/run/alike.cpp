#include "carnot/core/run/alike.h"

#include <map>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"

namespace carnot {
namespace {

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
                    " does not have; expected the same on all ranks");
  return join_errors(lines);
}

}  // namespace

Status agree_on_start(Collectives& group, const Status& mine, Recipe& recipe, const ModelBundle& bundle) {
  if (group.size() == 1) return mine;
  ByteWriter out;
  out.add(mine ? std::string() : mine.error().message);
  out.add(mine && bundle.policy ? own_facts(recipe, bundle) : Facts());
  const auto gathered = group.gather(out.take(), "the start");
  std::vector<Facts> facts(gathered.size());
  for (int rank = 0; rank < group.size(); ++rank) {
    std::string problem;
    ByteReader in(gathered[rank]);
    in.get(problem);
    in.get(facts[rank]);
    CARNOT_CHECK(in.complete(), group.name_of_rank(rank));
    if (!problem.empty()) return Error{group.name_of_rank(rank) + ": " + problem};
  }
  for (int rank = 1; rank < group.size(); ++rank)
    if (facts[rank] != facts[0]) return difference_to_first(group, rank, facts[0], facts[rank]);
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
