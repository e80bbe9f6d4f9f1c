// train/packing.h -- trajectories and their credit to packed micro-batches: what one optimizer step computes.
//
// A growing trajectory is one sequence; every fresh turn begins its own. Sequences follow one another
// without padding, and end at the last row that predicts a sampled token. Trajectories that do not count are left out
// of everything. What trajectories of a group begin with alike (the prompt, turns that branches share) is computed for
// each of them, or once for all that are in the same micro-batch.
//
// Shapes: R = rows (tokens fed to the model), T = sampled tokens, each predicted by one of the rows. A sampled token
// that begins its sequence is predicted by no row and takes no part.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/token_statistics.h"

namespace carnot {

struct PackingOptions {
  int max_tokens = 16384;                            ///< rows of a micro-batch; a longer sequence gets its own pass
  SequenceUnit sequence = SequenceUnit::Trajectory;  ///< what LossInputs::sequence_T and the denominators count
  /// Keeps all turns of a trajectory in one micro-batch, however long: a trajectory's ratio is a mean over them.
  bool whole_trajectories = false;
  /// Computes what trajectories of a group begin with alike once. The same gradients up to rounding.
  bool share_prefixes = false;
  int shards = 1;       ///< micro-batches are made so small that each of this many shards can have about as many rows
  double constant = 0;  ///< Denominators::constant
  /// Advantages are multiplied by AEPO's factor of the token's EntropyOld among the step's (credit/entropy_modulate.h).
  /// 0: off. REQUIRES the column EntropyOld where it is not 0.
  double entropy_scale = 0;
  /// A signal that only some trajectories have is absent from all, as in rows from outside; else it is a bug.
  bool partial_signals = false;
};

/// A sampled token's place: trajectory (as the step numbers them) and offset in it.
struct TokenPlace {
  int trajectory = 0;
  int token = 0;

  bool operator==(const TokenPlace&) const = default;
};

struct MicroBatch {
  at::Tensor tokens_R;               ///< int64
  at::Tensor positions_R;            ///< int64, from 0 in every sequence and on behind what it shares
  PackedAttention plan{};            ///< which rows attend to which
  at::Tensor rows_T;                 ///< int64: the row that predicts each sampled token; a shared one several times
  at::Tensor targets_T;              ///< int64: that token
  std::vector<TokenPlace> places{};  ///< by T
  LossInputs inputs{};               ///< all but the current policy's tensors; float64
  Denominators step{};               ///< the optimizer step's, for policy_loss
};

/// The batch's inputs with the current policy's log-probabilities and entropies, which have gradients in grad mode.
/// `balance`: as in Model::hidden(). REQUIRES: some token.
LossInputs policy_inputs(const Model& policy, const MicroBatch& batch, const StatisticsOptions& options,
                         ExpertBalance* balance = nullptr);

enum class MinibatchUnit { Group, Trajectory };

struct MinibatchOptions {
  int count = 1;                              ///< optimizer steps per training step; fewer if there are fewer units
  MinibatchUnit unit = MinibatchUnit::Group;  ///< what is never split
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< of the shuffle: derive_seed(run's seed, "minibatches", training step and epoch)
};

/// Splits a training step's included trajectories into optimizer steps of nearly equal numbers of units.
/// No part is empty; every trajectory is in exactly one.
std::vector<std::vector<int>> split_minibatches(std::span<const Trajectory> trajectories,
                                                const MinibatchOptions& options);

/// First-fit by decreasing size; among equals the earlier item first. An item larger than `room` gets its own bin.
/// Returns the items of each bin, in ascending order. Takes O(n log n) time.
std::vector<std::vector<std::size_t>> first_fit_decreasing(std::span<const int> sizes, int room);

/// The trajectories of one optimizer step, in micro-batches. `step` lists indices into `trajectories`; those that do
/// not count are left out. First-fit by decreasing length: the same trajectories always pack alike.
/// REQUIRES: each signal is present for all trajectories of the step or for none, unless options.partial_signals.
std::vector<MicroBatch> pack(std::span<const Trajectory> trajectories, const CreditTable& credit,
                             std::span<const int> step, const PackingOptions& options);

}  // namespace carnot
