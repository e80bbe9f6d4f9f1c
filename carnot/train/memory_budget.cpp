#include "carnot/train/memory_budget.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "carnot/train/workbench.h"

namespace carnot {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

// Code of LibTorch that a run reads in after its start, and the heap's holes: measured (bench/results/memory.md).
constexpr std::int64_t kLaterProgramBytes = 30 * kMegabyte;
// LibTorch's compiled bfloat16 products and their buffers: measured.
constexpr std::int64_t kCompiledProductBytes = 170 * kMegabyte;
// Columns, credit and rows of a file, for each token of a step's trajectories: measured.
constexpr std::int64_t kBytesPerTrajectoryToken = 600;
constexpr std::int64_t kStripLogits = 1 << 22;  // of nn/token_statistics

std::int64_t value_bytes(const std::string& dtype) { return dtype == "float64" ? 8 : dtype == "bfloat16" ? 2 : 4; }

std::string count(std::int64_t n, const std::string& what) { return std::to_string(n) + " " + what; }

/// Sizes that the parts are made of; numbers of values unless they say bytes.
struct Sizes {
  explicit Sizes(const MemorySettings& s)
      : value(value_bytes(s.run.dtype)),
        wide(std::max<std::int64_t>(4, value)),
        own(s.run.device == "cpu" && s.run.dtype != "bfloat16"),
        hidden(s.model.hidden_size),
        inner(s.model.intermediate_size),
        queries(std::int64_t{s.model.num_heads} * s.model.head_dim),
        keys(std::int64_t{s.model.num_kv_heads} * s.model.head_dim),
        layers(s.model.num_layers),
        head(std::int64_t{s.model.vocab_size} * hidden),
        parameters(s.model.num_parameters()),
        projections(layers * (hidden * (queries + 2 * keys) + queries * hidden + 3 * hidden * inner)) {
    const std::array<std::int64_t, 7> widths{hidden + queries, hidden + keys,  hidden + keys, queries + hidden,
                                             hidden + inner,   hidden + inner, inner + hidden};
    for (std::size_t i = 0; s.lora.rank > 0 && i < widths.size(); ++i) {
      targeted[i] =
          std::find(s.lora.targets.begin(), s.lora.targets.end(), kProjectionNames[i]) != s.lora.targets.end();
      if (targeted[i]) adapters += layers * s.lora.rank * widths[i];
    }
  }

  bool targets(Projection projection) const { return targeted[static_cast<std::size_t>(projection)]; }

  std::int64_t value, wide;  ///< bytes
  bool own;                  ///< the own kernels run; LibTorch's operators otherwise
  std::int64_t hidden, inner, queries, keys, layers, head, parameters, projections;
  std::array<bool, 7> targeted{};
  std::int64_t adapters = 0;
};

/// Bytes that a layer keeps for one row: what nn/ saves, operator by operator. `trained`: weights, not adapters.
std::int64_t kept_by_layer(const MemorySettings& s, const Sizes& n, std::int64_t length, bool trained) {
  const std::int64_t projected = n.queries + 2 * n.keys;
  const bool keeps_attention_input =
      trained || n.targets(Projection::Query) || n.targets(Projection::Key) || n.targets(Projection::Value);
  const bool keeps_mlp_input = trained || n.targets(Projection::Gate) || n.targets(Projection::Up);
  const bool keeps_product = trained || n.targets(Projection::Down);
  const std::int64_t narrow = !trained ? s.lora.rank * std::count(n.targeted.begin(), n.targeted.end(), true) : 0;
  const std::int64_t inputs = (keeps_attention_input ? n.hidden : 0) + (keeps_mlp_input ? n.hidden : 0) +
                              (keeps_product ? n.inner : 0) + narrow;
  if (n.own) return n.value * (inputs + 2 * n.hidden + 2 + projected + n.queries + 2 * n.inner);
  // LibTorch's: norms in float32 with their product before the weight, rotated queries, repeated keys and values,
  // the attention's weights, the two halves of the gate.
  const std::int64_t norms = 2 * n.hidden * (n.wide + (trained ? n.value : 0));
  const std::int64_t attention = n.value * (projected + 4 * n.queries + length * s.model.num_heads);
  return n.value * inputs + norms + attention + n.value * 3 * n.inner;
}

ActivationBytes activations(const MemorySettings& s, const Sizes& n, std::int64_t rows, std::int64_t length,
                            bool trained) {
  const std::int64_t layer = kept_by_layer(s, n, length, trained);
  // The last layer's output and the final norm's.
  const std::int64_t ends = n.value * n.hidden * (n.own || trained ? 2 : 1) + (n.own ? 0 : n.wide * n.hidden);
  // Each operator's gradient takes the place of what it saved, but for the MLP's first and the residual stream's.
  const std::int64_t mlp = rows * n.value * (n.inner + n.hidden + n.hidden / 2);
  // LibTorch's attention goes sequence by sequence, when what the MLP saved is gone.
  const std::int64_t attention =
      n.own ? 0 : 4 * length * length * s.model.num_heads * n.value - rows * n.value * 3 * n.inner;
  const std::int64_t passing = std::max(mlp, attention);
  if (!s.train.activation_checkpointing) return {rows * (n.layers * layer + ends), passing};
  return {rows * (n.layers * n.hidden * n.value + ends), rows * layer + passing};
}

/// What comes and goes at one time.
struct Phase {
  std::vector<MemoryPart> parts{};
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const MemoryPart& part : parts) sum += part.bytes;
    return sum;
  }
};

std::int64_t strip_rows(const MemorySettings& s) {
  return std::clamp<std::int64_t>(kStripLogits / std::max(1, s.model.vocab_size), 16, 256);
}

/// Logits of a strip in float32 (LibTorch's operators hold five of them), and for the own kernels `packed` packed
/// heads.
std::int64_t statistics_bytes(const MemorySettings& s, const Sizes& n, std::int64_t packed) {
  const std::int64_t strip = strip_rows(s) * s.model.vocab_size * n.wide;
  return n.own ? strip + packed * n.head * n.value : 5 * strip;
}

/// Rows without gradients: two residual streams beside the widest of a layer's results.
std::int64_t pass_bytes(const MemorySettings& s, const Sizes& n, std::int64_t rows, std::int64_t length) {
  const std::int64_t widest = std::max(3 * n.inner, 2 * n.queries + 2 * n.keys) + (n.own ? 0 : 2 * n.inner);
  const std::int64_t attention = n.own ? 0 : 3 * s.model.num_heads * n.value * length * length;
  return rows * n.value * (3 * n.hidden + widest) + attention;
}

std::int64_t trajectories_of(const MemorySettings& s) {
  return std::int64_t{s.train.groups} * s.rollout.explore.budget;
}
std::int64_t context_of(const MemorySettings& s) { return s.rollout.explore.episode.max_context_tokens; }

Phase generation_phase(const MemorySettings& s, const Sizes& n) {
  const std::int64_t rows =
      std::min<std::int64_t>(s.rollout.engine.max_batch_tokens, trajectories_of(s) * context_of(s));
  const std::int64_t strip = std::int64_t{s.rollout.engine.logits_megabytes} << 20;
  const std::int64_t logits = std::min(strip, std::min(rows, trajectories_of(s)) * s.model.vocab_size * 4);
  // LibTorch's attention gathers the keys and values of every sequence.
  const std::int64_t gathered = n.own ? 0 : 4 * trajectories_of(s) * context_of(s) * n.keys * n.value;
  return {{{"rollout pass", pass_bytes(s, n, rows, context_of(s)) + gathered,
            count(rows, "rows; rollout.max_batch_tokens")},
           {"logits", logits, "that exist at one time; rollout.logits_megabytes"}}};
}

Phase scoring_phase(const MemorySettings& s, const Sizes& n) {
  const std::int64_t rows =
      std::min(std::max<std::int64_t>(s.rollout.score_tokens, context_of(s)), trajectories_of(s) * context_of(s));
  return {{{"scoring pass", pass_bytes(s, n, rows, context_of(s)), count(rows, "rows; rollout.score_tokens")},
           {"logits", statistics_bytes(s, n, 1), "one strip; never tokens x vocabulary"}}};
}

/// Rows of the largest micro-batch.
std::int64_t update_rows(const MemorySettings& s) {
  const std::int64_t limit = std::max<std::int64_t>(s.train.micro_batch_tokens, context_of(s));
  if (s.stage == MemoryStage::Supervised) return std::min<std::int64_t>(limit, s.sft.batch_tokens + context_of(s));
  return std::min(limit, (trajectories_of(s) + s.train.mini_batches - 1) / s.train.mini_batches * context_of(s));
}

Phase update_phase(const MemorySettings& s, const Sizes& n) {
  const bool adapted = s.lora.rank > 0;
  const std::int64_t rows = update_rows(s);
  const std::int64_t trained = (adapted ? n.adapters : n.parameters) + (s.critic ? n.parameters : 0);
  ActivationBytes all = activations(s, n, rows, context_of(s), !adapted);
  if (s.critic) {
    const ActivationBytes critic = activations(s, n, rows, context_of(s), true);
    all.kept += critic.kept;
    all.passing = std::max(all.passing, critic.passing);
  }
  const std::int64_t head_gradient = adapted ? 0 : n.head * n.wide;
  const std::int64_t statistics = statistics_bytes(s, n, 2) + head_gradient;
  return {
      {{"gradients", trained * n.value, count(trained, "trained parameters")},
       {"activations", all.kept,
        count(rows, "rows a micro-batch; train.micro_batch_tokens, train.activation_checkpointing")},
       {"backward pass", std::max(all.passing, statistics), "one layer, or the statistics of one strip of logits"}}};
}

std::vector<MemoryPart> lasting_parts(const MemorySettings& s, const Sizes& n) {
  const bool adapted = s.lora.rank > 0, updates = s.stage != MemoryStage::Rollout;
  // With adapters the reference shares the weights below them.
  const std::int64_t copies = 1 + (s.critic ? 1 : 0) + (s.reference && !adapted ? 1 : 0);
  const std::int64_t weights = copies * n.parameters + n.adapters * (s.reference ? 2 : 1);
  const std::int64_t trained = (adapted ? n.adapters : n.parameters) + (s.critic ? n.parameters : 0);
  const AdamWOptions& optimizer = s.stage == MemoryStage::Supervised ? s.sft.optimizer : s.train.optimizer;
  const std::int64_t moment = optimizer.moments == "bfloat16" ? 2 : n.wide;
  const std::int64_t per_trained = 2 * moment + (n.value < 4 && optimizer.master_weights ? 4 : 0);
  // The product's layout of every model, the gradient's of those that are trained; the engine's head.
  const std::int64_t layouts = copies + (updates ? 1 + (s.critic ? 1 : 0) : 0);
  const std::int64_t packed = n.own ? layouts * n.projections + n.head + (updates ? 2 : 1) * n.adapters : 0;
  const std::int64_t blocks = cache_blocks(s.rollout, static_cast<int>(trajectories_of(s)));
  const std::int64_t block = n.layers * 2 * n.keys * kBlockTokens * n.value;
  const std::int64_t tokens = trajectories_of(s) * context_of(s);
  const std::int64_t products = s.run.device == "cpu" && s.run.dtype == "bfloat16" ? kCompiledProductBytes : 0;
  return {
      {"program", s.program_bytes + kLaterProgramBytes + products, "LibTorch, tokenizer, environment"},
      {"weights", weights * n.value,
       count(n.parameters, "parameters") + " x " + count(copies, "models") +
           (adapted ? " and " + count(n.adapters, "of adapters") : "")},
      {"packed weights", packed * n.value, "layouts for the matrix products of the own kernels"},
      {"optimizer", trained * per_trained, count(per_trained, "bytes for each trained parameter; lora.rank, dtype")},
      {"KV cache", blocks * block, count(blocks, "blocks of 16 positions; rollout.cache_tokens")},
      {"trajectories", tokens * kBytesPerTrajectoryToken, count(tokens, "tokens a step at most")}};
}

}  // namespace

MemorySettings memory_settings(const Recipe& recipe, const ModelConfig& model, MemoryStage stage) {
  const auto signals = required_signals(recipe.method);
  const bool companions = stage != MemoryStage::Supervised;
  return {.run = recipe.run,
          .model = model,
          .lora = recipe.lora,
          .sft = recipe.sft,
          .rollout = recipe.rollout,
          .train = recipe.train,
          .stage = stage,
          .reference = companions && signals.contains(Signal::Reference),
          .critic = companions && signals.contains(Signal::Value),
          .program_bytes = memory_in_use()};
}

ActivationBytes activation_bytes(const MemorySettings& settings, std::int64_t rows, std::int64_t length) {
  return activations(settings, Sizes(settings), rows, length, settings.lora.rank == 0);
}

std::vector<MemoryPart> memory_budget(const MemorySettings& settings) {
  const Sizes sizes(settings);
  std::vector<Phase> phases{generation_phase(settings, sizes)};
  if (settings.stage != MemoryStage::Supervised) phases.push_back(scoring_phase(settings, sizes));
  if (settings.stage != MemoryStage::Rollout) phases.push_back(update_phase(settings, sizes));
  std::vector<MemoryPart> parts = lasting_parts(settings, sizes);
  const auto largest = std::max_element(phases.begin(), phases.end(),
                                        [](const Phase& a, const Phase& b) { return a.bytes() < b.bytes(); });
  parts.insert(parts.end(), largest->parts.begin(), largest->parts.end());
  return parts;
}

std::int64_t predicted_peak(const MemorySettings& settings) { return Phase{memory_budget(settings)}.bytes(); }

std::string memory_table(const std::vector<MemoryPart>& parts) {
  std::string text;
  const auto line = [&](std::int64_t bytes, const std::string& what) {
    char number[32];
    std::snprintf(number, sizeof number, "  %10.1f MiB  ", static_cast<double>(bytes) / kMegabyte);
    text += number + what + "\n";
  };
  for (const MemoryPart& part : parts) line(part.bytes, part.name + " (" + part.explanation + ")");
  line(Phase{parts}.bytes(), "in all");
  return text;
}

MachineMemory memory_limit(const Recipe& recipe) {
  const std::int64_t limit = recipe.memory.limit_megabytes;
  if (limit > 0) return {limit * kMegabyte, "that memory.limit_megabytes allows"};
  return recipe.run.device == "cpu" ? available_memory() : MachineMemory{};
}

}  // namespace carnot
