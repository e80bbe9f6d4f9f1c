#include "carnot/core/run/memory_budget.h"

#include <algorithm>

#include "carnot/core/collectives/gradient_exchange.h"
#include "carnot/core/collectives/in_flight.h"
#include "carnot/core/nn/gated_delta_net.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/optim/rules.h"
#include "carnot/core/run/activation_budget.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/trainer.h"

namespace carnot {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

// Code of LibTorch that a run reads in after its start, and the heap's holes: measured (bench/results/memory.md).
constexpr std::int64_t kLaterProgramBytes = 30 * kMegabyte;
// Columns, credit and rows of a file, for each token of a step's trajectories: measured.
constexpr std::int64_t kBytesPerTrajectoryToken = 600;
// Columns of a sampled token and the rows of the evaluation's file; columns alone, of an evaluation that is kept to be
// shown next to the next one; tokens, targets and weights of a demonstration: measured.
constexpr std::int64_t kBytesPerEvaluatedToken = 120;
constexpr std::int64_t kBytesPerKeptToken = 30;
// A token and its columns between two ranks (data/group_bytes.h): four bytes, and eight for each of six columns.
constexpr std::int64_t kBytesPerGatheredToken = 52;
constexpr std::int64_t kBytesPerDemonstratedToken = 100;

std::string count(Count n, const std::string& what) { return std::to_string(n.value()) + " " + what; }

/// What comes and goes at one time.
struct Phase {
  std::vector<BudgetPart> parts{};
  Count bytes() const { return total_bytes(parts); }
};

BudgetPart part(const std::string& name, Count bytes, const std::string& explanation) {
  return {.name = name, .bytes = bytes.value(), .explanation = explanation};
}

Count context_of(const MemorySettings& s) { return s.rollout.options.episode.max_context_tokens; }
Count step_trajectories(const MemorySettings& s) { return carnot::step_trajectories<Count>(s.train, s.rollout); }
Count evaluated_trajectories(const MemorySettings& s) { return Count(s.evaluation.tasks) * s.evaluation.samples; }

/// Of this many tasks, those of one rank: the first has the most.
Count tasks_of_rank(const MemorySettings& s, Count tasks) { return (tasks + s.ranks - 1) / s.ranks; }

/// What one rank rolls out.
Count own_trajectories(const MemorySettings& s) {
  return carnot::step_trajectories<Count>(s.train, s.rollout, s.ranks);
}
Count own_evaluated_trajectories(const MemorySettings& s) {
  return tasks_of_rank(s, s.evaluation.tasks) * s.evaluation.samples;
}

Count blocks_of_cache(const MemorySettings& s) { return cache_blocks(s.rollout, own_trajectories(s).value()); }

Count states_of_cache(const MemorySettings& s, const ModelSizes& n) {
  return n.deltas > 0 ? Count(cache_states(s.rollout, own_trajectories(s).value())) : Count(0);
}

/// Of one sequence: of each layer the rule's state, and the last rows of its convolution.
Count state_bytes(const MemorySettings& s, const ModelSizes& n) {
  if (n.deltas == 0) return 0;
  const Count rows = (s.model.convolution_width - 1) * n.delta_width;
  return n.deltas * (delta_state_size(s.model, n.wide > 4) * n.wide + rows * n.value);
}

Count window_blocks_of_cache(const MemorySettings& s) {
  return cache_window_blocks(s.rollout, s.model, own_trajectories(s).value());
}

Count cache_bytes(const MemorySettings& s, const ModelSizes& n) {
  const Count in_window = window_blocks_of_cache(s);
  const Count windows = in_window > 0 ? Count(s.model.num_windowed_layers()) : Count(0);
  const Count numbers =
      blocks_of_cache(s) * ((n.attention_layers() - windows) * 2 * n.keys + n.convolutions * n.hidden) +
      in_window * windows * 2 * n.keys;
  return numbers * kBlockTokens * n.value + states_of_cache(s, n) * state_bytes(s, n);
}

BudgetPart cache_part(const MemorySettings& s, const ModelSizes& n) {
  std::string others = n.deltas > 0 ? count(states_of_cache(s, n), "states and ") : "";
  if (const Count in_window = window_blocks_of_cache(s); in_window > 0) others += count(in_window, "in windows and ");
  return part("KV cache", cache_bytes(s, n),
              others + count(blocks_of_cache(s), "blocks of 16 positions; rollout.cache_tokens"));
}

/// Whether it holds memory during generation alone.
bool cache_is_given_back(const MemorySettings& s, const ModelSizes& n) {
  return n.own && KvCache::is_given_back(cache_bytes(s, n).value());
}

/// Of this many trajectories at one time.
Phase generation_phase(const MemorySettings& s, const ModelSizes& n, Count trajectories) {
  const Count rows = std::min<Count>(s.rollout.engine.max_batch_tokens, trajectories * context_of(s));
  const Count strip = Count(s.rollout.engine.logits_megabytes) * kMegabyte;
  const Count logits = std::min(strip, std::min(rows, trajectories) * s.model.vocab_size * 4);
  // LibTorch's attention gathers the keys and values of every sequence that the cache holds.
  const Count held = std::min(trajectories * context_of(s), blocks_of_cache(s) * kBlockTokens);
  const Count gathered = n.own ? 0 : 4 * held * n.keys * n.value;
  Phase phase{{part("rollout pass", pass_bytes(s, n, rows, context_of(s)) + gathered,
                    count(rows, "rows; rollout.max_batch_tokens")),
               part("logits", logits, "that exist at one time; rollout.logits_megabytes")}};
  // SFT's engine comes when the demonstrations have gone.
  if (s.stage == MemoryStage::Sft || cache_is_given_back(s, n)) phase.parts.push_back(cache_part(s, n));
  return phase;
}

Phase evaluation_phase(const MemorySettings& s, const ModelSizes& n) {
  const Count tokens = evaluated_trajectories(s) * context_of(s);
  Phase phase = generation_phase(s, n, own_evaluated_trajectories(s));
  phase.parts.push_back(part("evaluated trajectories", tokens * kBytesPerEvaluatedToken,
                             count(tokens, "tokens at most; eval.tasks, eval.samples")));
  return phase;
}

Phase log_prob_phase(const MemorySettings& s, const ModelSizes& n) {
  const Count rows =
      std::min(std::max<Count>(s.rollout.log_prob_tokens, context_of(s)), step_trajectories(s) * context_of(s));
  return {{part("log-prob pass", pass_bytes(s, n, rows, context_of(s)), count(rows, "rows; rollout.log_prob_tokens")),
           part("logits", statistics_bytes(s, n, false), "one strip; never tokens x vocabulary")}};
}

/// Of one step of SFT: the last demonstration may go beyond sft.batch_tokens.
Count demonstrated_tokens(const MemorySettings& s) { return s.sft.batch_tokens + context_of(s); }

/// Rows of the largest micro-batch.
Count update_rows(const MemorySettings& s) {
  const Count limit = std::max<Count>(s.train.micro_batch_tokens, context_of(s));
  if (s.stage == MemoryStage::Sft) return std::min(limit, demonstrated_tokens(s));
  return std::min(limit, (step_trajectories(s) + s.train.mini_batches - 1) / s.train.mini_batches * context_of(s));
}

Count trained_parameters(const MemorySettings& s, const ModelSizes& n) {
  return (s.lora.rank > 0 ? n.adapters : n.parameters) + (s.critic ? n.parameters : 0);
}

const OptimizerOptions& optimizer_of(const MemorySettings& s) {
  return s.stage == MemoryStage::Sft ? s.sft.optimizer : s.train.optimizer;
}

/// Of each number that the optimizer's rule keeps.
Count bytes_per_moment(const MemorySettings& s, const ModelSizes& n) {
  return optimizer_of(s).moments == "bfloat16" ? 2 : n.wide;
}

/// What the optimizer keeps of this many parameters, `matrices` of which are in the layers' matrices.
Count optimizer_bytes(const MemorySettings& s, const ModelSizes& n, Count parameters, Count matrices) {
  const auto rule = make_update_rule(optimizer_of(s));
  const auto kept = [&](WeightKind kind) { return Count(std::ssize(rule->kept(kind))); };
  const Count moments = matrices * kept(WeightKind::Matrix) + (parameters - matrices) * kept(WeightKind::Table);
  return moments * bytes_per_moment(s, n) + (n.value < 4 && optimizer_of(s).master_weights ? parameters * 2 : 0);
}

Count optimizer_bytes(const MemorySettings& s, const ModelSizes& n) {
  const Count policy = s.lora.rank > 0 ? optimizer_bytes(s, n, n.adapters, n.adapters)
                                       : optimizer_bytes(s, n, n.parameters, n.projections);
  return policy + (s.critic ? optimizer_bytes(s, n, n.parameters, n.projections) : 0);
}

/// Whether gradients of shards are added up (collectives/gradient_exchange.h).
bool exchanges_gradients(const MemorySettings& s) {
  return s.stage != MemoryStage::Rollout && num_shards(s.train, s.ranks) > 1;
}

/// Numbers of a rank's slice of a row: its part of the gradients, and of what the optimizer keeps.
Count slice_of(const MemorySettings& s, Count row) { return (row + s.ranks - 1) / s.ranks; }

/// Buckets of a row that are on their way at a time, as they are sent and, from other ranks, as they come.
Count travelling_numbers(const MemorySettings& s, Count row) {
  const Count bucket = std::min<Count>(row, bucket_elements(s.ranks));
  return s.ranks == 1 ? bucket : 2 * std::min(row, InFlight::kMost * bucket);
}

Phase update_phase(const MemorySettings& s, const ModelSizes& n) {
  const bool adapted = s.lora.rank > 0;
  const Count rows = update_rows(s);
  const Count trained = trained_parameters(s, n);
  Activations all = activations(s, n, rows, context_of(s), !adapted);
  if (s.critic) {
    const Activations critic = activations(s, n, rows, context_of(s), true);
    all.kept += critic.kept;
    all.passing = std::max(all.passing, critic.passing);
  }
  // Of bfloat16, it is the head's among the trained parameters' (nn/weight_gradients.h), but where it has to travel.
  const bool is_own = n.own && n.value < n.wide && !exchanges_gradients(s);
  const Count head_gradient = adapted || is_own ? 0 : n.head * n.wide;
  const Count statistics = statistics_bytes(s, n, true) + head_gradient;
  Phase phase{{part("gradients", trained * n.wide, count(trained, "trained parameters")),
               part("activations", all.kept,
                    count(rows, "rows a micro-batch; train.micro_batch_tokens, train.activation_checkpointing")),
               part("backward pass", std::max(all.passing, statistics),
                    "one layer, or the statistics of one strip of logits")}};
  if (exchanges_gradients(s)) {
    phase.parts.push_back(part("gradients of the own slice", slice_of(s, trained) * n.wide,
                               "summed over " + count(num_shards(s.train, s.ranks), "shards; train.virtual_shards")));
    phase.parts.push_back(part("travelling gradients", travelling_numbers(s, trained) * n.wide,
                               count(s.ranks, "ranks; a few buckets at a time")));
  }
  if (s.stage == MemoryStage::Sft)
    phase.parts.push_back(part("demonstrations", demonstrated_tokens(s) * kBytesPerDemonstratedToken,
                               count(demonstrated_tokens(s), "tokens a step at most; sft.batch_tokens")));
  return phase;
}

/// The optimizer's state is brought together on the first rank, moment by moment.
Phase checkpoint_phase(const MemorySettings& s, const ModelSizes& n) {
  const Count trained = trained_parameters(s, n);
  const Count travelling = travelling_numbers(s, trained) * std::max<Count>(4, bytes_per_moment(s, n));
  return {{part("gathered optimizer", optimizer_bytes(s, n) + travelling, "for a checkpoint, on the first rank")}};
}

/// A step's trajectories as bytes: this rank's, padded, and all that come.
Phase gather_phase(const MemorySettings& s) {
  const Count tokens = 3 * step_trajectories(s) * context_of(s);
  return {{part("gathered trajectories", tokens * kBytesPerGatheredToken,
                count(tokens, "tokens at most, as they travel between ranks"))}};
}

std::vector<BudgetPart> lasting_parts(const MemorySettings& s, const ModelSizes& n) {
  const bool adapted = s.lora.rank > 0, updates = s.stage != MemoryStage::Rollout;
  // With adapters the reference shares the weights below them.
  const Count copies = 1 + (s.critic ? 1 : 0) + (s.reference && !adapted ? 1 : 0);
  const Count weights = copies * n.parameters + n.adapters * (s.reference ? 2 : 1);
  const Count trained = trained_parameters(s, n), optimizer = optimizer_bytes(s, n);
  const Count owners = exchanges_gradients(s) ? s.ranks : 1;
  // The product's layout of every model; heads, but not the critic's. For gradients, the widest product of a layer at
  // a time: its weights or its rows.
  const Count heads = copies - (s.critic ? 1 : 0);
  const Count once = updates ? std::max(2 * n.hidden, update_rows(s)) * n.widest_inner() : 0;
  const Count packed = n.own ? copies * n.projections + heads * n.head + n.adapters + once : 0;
  std::vector<BudgetPart> parts{
      part("program", Count(s.program_bytes) + kLaterProgramBytes, "LibTorch, tokenizer, environment"),
      part("weights", weights * n.value,
           count(n.parameters, "parameters") + " x " + count(copies, "models") + " in " + s.run.dtype +
               (adapted ? " and " + count(n.adapters, "of adapters") : "")),
      part("packed weights", packed * n.value, "layouts for the matrix products of Carnot's kernels"),
      part("optimizer", (optimizer + owners - 1) / owners,
           count(optimizer / std::max<Count>(1, trained), "bytes for each trained parameter; lora.rank, dtype") +
               (owners > 1 ? ", shared by " + count(owners, "ranks") : ""))};
  return parts;
}

/// What lasts as well once there is an engine that rolls out steps.
std::vector<BudgetPart> rollout_parts(const MemorySettings& s, const ModelSizes& n) {
  const Count tokens = step_trajectories(s) * context_of(s);
  std::vector<BudgetPart> parts;
  if (!cache_is_given_back(s, n)) parts.push_back(cache_part(s, n));
  parts.push_back(part("trajectories", tokens * kBytesPerTrajectoryToken, count(tokens, "tokens a step at most")));
  const Count evaluated = evaluated_trajectories(s) * context_of(s);
  if (s.stage == MemoryStage::Training && s.evaluation.before_training)
    parts.push_back(part("evaluation before training", evaluated * kBytesPerKeptToken,
                         count(evaluated, "tokens at most; eval.tasks, eval.samples")));
  return parts;
}

/// What comes and goes.
std::vector<Phase> phases_of(const MemorySettings& s, const ModelSizes& n) {
  std::vector<Phase> phases;
  if (exchanges_gradients(s)) phases.push_back(checkpoint_phase(s, n));
  if (s.stage != MemoryStage::Rollout) phases.push_back(update_phase(s, n));
  if (s.stage != MemoryStage::Rollout) phases.push_back(evaluation_phase(s, n));
  if (s.stage == MemoryStage::Sft) return phases;
  phases.push_back(generation_phase(s, n, own_trajectories(s)));
  phases.push_back(log_prob_phase(s, n));
  if (s.ranks > 1) phases.push_back(gather_phase(s));
  return phases;
}

std::vector<BudgetPart> stage_budget(const MemorySettings& settings) {
  const ModelSizes sizes(settings);
  std::vector<BudgetPart> parts = lasting_parts(settings, sizes);
  if (settings.stage != MemoryStage::Sft)
    for (BudgetPart& lasting : rollout_parts(settings, sizes)) parts.push_back(std::move(lasting));
  const std::vector<Phase> phases = phases_of(settings, sizes);
  const auto largest = std::max_element(phases.begin(), phases.end(),
                                        [](const Phase& a, const Phase& b) { return a.bytes() < b.bytes(); });
  parts.insert(parts.end(), largest->parts.begin(), largest->parts.end());
  return parts;
}

}  // namespace

MemorySettings memory_settings(const Recipe& recipe, const ModelConfig& model, MemoryStage stage, int ranks) {
  const auto needed = recipe.measurements();
  const bool companions = stage != MemoryStage::Sft;
  return {.run = recipe.run,
          .model = model,
          .lora = recipe.lora,
          .sft = recipe.sft,
          .rollout = recipe.rollout_settings(),
          .train = recipe.train,
          .evaluation = recipe.evaluation,
          .stage = stage,
          .reference = companions && needed.contains(Measurement::Reference),
          .critic = companions && needed.contains(Measurement::Values),
          .ranks = ranks,
          .program_bytes = memory_in_use()};
}

StoredBytes stored_bytes(const MemorySettings& settings) {
  const ModelSizes n(settings);
  const bool adapted = settings.lora.rank > 0;
  const Count trained = adapted ? n.adapters : n.parameters;
  const Count whole = optimizer_bytes(settings, n, n.parameters, n.projections);
  return {.policy = (trained * n.value).value(),
          .optimizer = (adapted ? optimizer_bytes(settings, n, trained, trained) : whole).value(),
          .reference = settings.reference ? (trained * n.value).value() : 0,
          .critic = settings.critic ? (n.parameters * n.value + whole).value() : 0,
          .base = adapted ? (n.parameters * n.value).value() : 0};
}

ActivationBytes activation_bytes(const MemorySettings& settings, std::int64_t rows, std::int64_t length) {
  const Activations bytes = activations(settings, ModelSizes(settings), rows, length, settings.lora.rank == 0);
  return {.kept = bytes.kept.value(), .passing = bytes.passing.value()};
}

std::vector<BudgetPart> memory_budget(const MemorySettings& settings) {
  std::vector<BudgetPart> parts = stage_budget(settings);
  if (settings.stage != MemoryStage::Training || settings.sft.steps == 0) return parts;
  // SFT is over before reference, critic and engine are made.
  MemorySettings sft = settings;
  sft.stage = MemoryStage::Sft;
  sft.reference = sft.critic = false;
  sft.evaluation = {.tasks = 0, .samples = 0};
  std::vector<BudgetPart> first = stage_budget(sft);
  return Phase{first}.bytes() > Phase{parts}.bytes() ? first : parts;
}

std::int64_t predicted_peak(const MemorySettings& settings) { return Phase{memory_budget(settings)}.bytes().value(); }

MachineMemory memory_limit(const Recipe& recipe) {
  const std::int64_t limit = recipe.memory.limit_megabytes;
  if (limit > 0) return {limit * kMegabyte, "that memory.limit_megabytes allows"};
  return recipe.run.device == "cpu" ? available_memory() : MachineMemory{};
}

}  // namespace carnot
