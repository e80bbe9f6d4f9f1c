// The speed of environments, rollouts and training on a run's own model and data, as one table.
//
//   speed_bench [RUN_FOLDER] [--workload FILE] [--json FILE]
//
// RUN_FOLDER (runs/quickstart) holds a finished run: its config.yaml and a checkpoint. --workload writes the token
// sequences that were timed, for bench/peers/compare.py; --json writes the figures.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "carnot/core/base/json.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/optim/local_optimizer.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/train/trainer.h"
#include "carnot/worlds/worlds.h"
#include "figures.h"

namespace carnot {
namespace {

/// One sequence to train on: tokens, and which of them the loss counts.
struct Sequence {
  std::vector<TokenId> tokens{};
  std::vector<bool> counts{};
};
using Batch = std::vector<Sequence>;  // of one optimizer step

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Sequence sequence_of(const Trajectory& view) { return {.tokens = view.tokens(), .counts = view.sampled()}; }

std::int64_t tokens_of(const Batch& batch) {
  std::int64_t sum = 0;
  for (const Sequence& sequence : batch) sum += static_cast<std::int64_t>(sequence.tokens.size());
  return sum;
}

/// Forward, backward and one optimizer step on packed micro-batches.
void train_on(const Model& model, LocalOptimizer& optimizer, const Batch& batch, std::size_t micro_batch_tokens) {
  std::size_t next = 0;
  while (next < batch.size()) {
    std::vector<std::int64_t> tokens, positions, rows, targets;
    PackedAttention plan;
    for (; next < batch.size() && (tokens.empty() || tokens.size() + batch[next].tokens.size() <= micro_batch_tokens);
         ++next) {
      const Sequence& sequence = batch[next];
      for (std::size_t i = 0; i < sequence.tokens.size(); ++i) {
        if (i + 1 < sequence.tokens.size() && sequence.counts[i + 1]) {
          rows.push_back(static_cast<std::int64_t>(tokens.size()));
          targets.push_back(sequence.tokens[i + 1]);
        }
        tokens.push_back(sequence.tokens[i]);
        positions.push_back(static_cast<std::int64_t>(i));
      }
      plan.offsets.push_back(static_cast<int>(tokens.size()));
    }
    const at::Tensor hidden = model.hidden(at::tensor(tokens, at::kLong), at::tensor(positions, at::kLong), plan);
    const auto statistics =
        token_statistics(hidden.index_select(0, at::tensor(rows, at::kLong)), model, at::tensor(targets, at::kLong));
    (-statistics.logprob_T.mean()).backward();
  }
  optimizer.step(1e-5);
}

/// Tokens per second, median of passes over the batches.
double training_speed(const ModelBundle& bench, const std::vector<Batch>& batches, std::size_t micro_batch_tokens) {
  Model model = bench.policy->clone();
  model.requires_grad(true);
  LocalOptimizer optimizer(optimizer_weights(model.parameters()), {});
  std::vector<double> speeds;
  for (int pass = 0; pass < 6; ++pass) {
    std::int64_t tokens = 0;
    const double begin = now();
    for (const Batch& batch : batches) {
      train_on(model, optimizer, batch, micro_batch_tokens);
      tokens += tokens_of(batch);
    }
    if (pass > 0) speeds.push_back(static_cast<double>(tokens) / (now() - begin));
  }
  return median(speeds);
}

std::vector<Batch> sft_batches(const Recipe& recipe, const ModelBundle& bench) {
  std::vector<Batch> batches;
  std::int64_t index = 0;
  for (int b = 0; b < 16; ++b) {
    Batch batch;
    while (tokens_of(batch) < recipe.sft.batch_tokens) {
      auto tree = demonstrate(
          *recipe.environment, *bench.chat,
          {.index = index, .seed = static_cast<std::uint64_t>(index), .episode = recipe.rollout.options.episode});
      ++index;
      Group group{.trees = {std::move(tree).value()}};
      batch.push_back(sequence_of(trajectory(group, 0, 0, 0)));
      batch.back().counts.assign(batch.back().tokens.size(), true);
    }
    batches.push_back(batch);
  }
  return batches;
}

/// The sequences of at least `length` tokens, cut to it.
std::vector<Batch> equal_lengths(const std::vector<Batch>& batches, std::size_t length) {
  std::vector<Batch> out;
  for (const Batch& batch : batches) {
    Batch cut;
    for (const Sequence& sequence : batch) {
      if (sequence.tokens.size() < length) continue;
      cut.push_back(sequence);
      cut.back().tokens.resize(length);
      cut.back().counts.resize(length);
    }
    if (!cut.empty()) out.push_back(cut);
  }
  return out;
}

OrderedJson workload_json(const std::vector<Batch>& batches) {
  OrderedJson all = OrderedJson::array();
  for (const Batch& batch : batches) {
    OrderedJson one = OrderedJson::array();
    for (const Sequence& sequence : batch)
      one.push_back(
          {{"tokens", sequence.tokens}, {"counts", std::vector<int>(sequence.counts.begin(), sequence.counts.end())}});
    all.push_back(one);
  }
  return all;
}

/// Turns of every trajectory: the tokens before each response, and the number of tokens in the response.
OrderedJson episodes_json(const std::vector<Trajectory>& views) {
  OrderedJson all = OrderedJson::array();
  for (const Trajectory& view : views) {
    OrderedJson turns = OrderedJson::array();
    for (int k = 0; k < view.num_turns(); ++k)
      turns.push_back({{"begin", view.sampled_begin(k)}, {"end", view.sampled_end(k)}});
    all.push_back({{"tokens", view.tokens()}, {"turns", turns}});
  }
  return all;
}

/// Bare games: steps per second on one thread, text of the state included.
double game_speed(const std::string& name, const std::vector<std::string>& actions) {
  auto factory = std::move(make_environment_factory(name)).value();
  CARNOT_CHECK(factory->prepare(0).ok(), name);
  std::int64_t steps = 0;
  std::size_t characters = 0;
  const double begin = now();
  while (now() - begin < 0.5) {
    auto game = std::move(factory->make_game(static_cast<std::uint64_t>(123 + steps % 16))).value();
    for (int i = 0; i < 64; ++i) {
      const GameStep step = game->step(actions[static_cast<std::size_t>(i) % actions.size()]);
      characters += step.observation.size();
      ++steps;
      if (step.done) break;
    }
  }
  CARNOT_CHECK_GT(characters, 0u);
  return static_cast<double>(steps) / (now() - begin);
}

std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(file, line))
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " processors";
}

int measure(const std::string& folder, const std::string& workload_file, const std::string& json_file) {
  Recipe recipe = Recipe::load(folder + "/config.yaml", {}).value();
  CARNOT_CHECK(ModelBundle::prepare_device(recipe.run).ok(), "device");
  const auto checkpoint = latest_checkpoint(folder + "/checkpoints").value();
  CARNOT_CHECK(checkpoint.has_value(), folder + " holds no checkpoint");
  ModelBundle bench = ModelBundle::make(recipe, checkpoint->path).value();
  bench.add_companions(recipe);

  std::printf("%s\n%s, %ld parameters\n\n", machine().c_str(), folder.c_str(),
              static_cast<long>(bench.policy->config().num_parameters()));
  Figures figures;
  figures.add("sokoban, steps and text, one thread", game_speed("sokoban", {"Up", "Left", "Down", "Right"}), "steps/s");
  figures.add("frozen_lake, steps and text, one thread", game_speed("frozen_lake", {"Up", "Left", "Down", "Right"}),
              "steps/s");
  figures.add("sudoku, steps and text, one thread",
              game_speed("sudoku", {"place 1 at row 1 col 1", "place 2 at row 2 col 3"}), "steps/s");

  const std::vector<Batch> warm = sft_batches(recipe, bench);
  recipe.train.groups_per_step = 8;  // 64 trajectories at a time
  recipe.rollout.options.group_size = 8;
  OneProcess alone;
  Trainer trainer(recipe, bench, alone);
  std::map<std::string, std::vector<double>> stages;
  TrainingStep last;
  for (int step = 0; step < 6; ++step) {
    last = trainer.step(step).value();
    if (step == 0) continue;  // the first one warms up
    for (const auto& [name, value] : last.metrics)
      if (name.starts_with("timing_s/") || name == "perf/rollout_tokens_per_s") stages[name].push_back(value);
  }
  const auto views = trajectories(last.groups);
  std::vector<Batch> reinforcement(2);
  for (std::size_t i = 0; i < views.size(); ++i) reinforcement[i % 2].push_back(sequence_of(views[i]));
  const auto micro = static_cast<std::size_t>(recipe.train.micro_batch_tokens);
  const auto equal = equal_lengths(warm, 80);

  figures.add("rollout of 64 trajectories", median(stages["perf/rollout_tokens_per_s"]), "sampled tokens/s");
  figures.add("SFT, ragged", training_speed(bench, warm, micro), "tokens/s");
  figures.add("SFT, equal lengths", training_speed(bench, equal, micro), "tokens/s");
  figures.add("reinforcement update, ragged", training_speed(bench, reinforcement, micro), "tokens/s");
  figures.add("engine's bookkeeping, share of rollout",
              median(stages["timing_s/gen_scheduling"]) / median(stages["timing_s/gen"]), "");
  for (const std::string name :
       {"step", "gen", "gen_forward", "gen_sampling", "gen_scheduling", "gen_waiting", "score", "adv", "update_actor"})
    figures.add("step of 64 trajectories: " + name, 1000 * median(stages["timing_s/" + name]), "ms");

  if (!workload_file.empty())
    std::ofstream(workload_file) << OrderedJson{{"checkpoint", checkpoint->path.string()},
                                                {"SFT, ragged", workload_json(warm)},
                                                {"SFT, equal lengths", workload_json(equal)},
                                                {"reinforcement update, ragged", workload_json(reinforcement)},
                                                {"episodes", episodes_json(views)}};
  if (!json_file.empty()) std::ofstream(json_file) << figures.json();
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) {
  carnot::offer_worlds();
  std::string folder = "runs/quickstart", workload, json;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--workload" && i + 1 < argc) {
      workload = argv[++i];
    } else if (argument == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else {
      folder = argument;
    }
  }
  if (!std::filesystem::exists(folder + "/config.yaml")) {
    std::cerr << "speed_bench: " << folder << " holds no run; `./run train` makes one\n";
    return 2;
  }
  return carnot::measure(folder, workload, json);
}
