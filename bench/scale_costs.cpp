// What a step costs next to its models: the bookkeeping of many ranks, a token's way through the parts of a step that
// every rank computes, messages, the group's store, and gradients between two processes. No model is computed.
//
//   scale_bench [--json FILE]
//
// The figures are the measured inputs of bench/scaling.py. Groups of up to 4,096 ranks are one process here, whose
// other ranks repeat what it says; connections and the store are measured with processes of this machine.
#include <ATen/Functions.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/collectives/gradient_exchange.h"
#include "carnot/core/collectives/sharded_optimizer.h"
#include "carnot/core/data/group_bytes.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/optim/chunks.h"
#include "carnot/core/optim/norm.h"
#include "carnot/core/rollout/rollout_bytes.h"
#include "carnot/core/train/packing.h"
#include "carnot/core/train/recipe.h"
#include "carnot/core/train/step_gather.h"
#include "carnot/core/train/step_metrics.h"
#include "carnot/http/server.h"
#include "carnot/http/url.h"
#include "carnot/ranks/process_group.h"
#include "carnot/remote_rollouts/transport/served_files.h"
#include "carnot/worlds/worlds.h"
#include "figures.h"
#include "mirrored_ranks.h"
#include "testing/forked_ranks.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr int kSizes[] = {8, 64, 512, 4096};

struct Shape {
  const char* name;
  std::int64_t hidden, inner, layers, keys, vocabulary;
  bool tied;
};
// Qwen2.5's. The queries are as wide as the hidden state.
constexpr Shape kShapes[] = {{"0.5B", 896, 4864, 24, 128, 151936, true},
                             {"7B", 3584, 18944, 28, 512, 152064, false},
                             {"32B", 5120, 27648, 64, 1024, 152064, false}};

std::vector<std::int64_t> tensor_sizes(const Shape& s) {
  std::vector<std::int64_t> sizes{s.vocabulary * s.hidden};
  for (std::int64_t layer = 0; layer < s.layers; ++layer)
    for (const std::int64_t size :
         {s.hidden * s.hidden, s.hidden, s.keys * s.hidden, s.keys, s.keys * s.hidden, s.keys, s.hidden * s.hidden,
          s.inner * s.hidden, s.inner * s.hidden, s.inner * s.hidden, s.hidden, s.hidden})
      sizes.push_back(size);
  sizes.push_back(s.hidden);
  if (!s.tied) sizes.push_back(s.vocabulary * s.hidden);
  return sizes;
}

void measure_plans(Figures& figures) {
  for (const Shape& shape : kShapes) {
    const std::vector<std::int64_t> sizes = tensor_sizes(shape);
    const std::int64_t numbers = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    figures.add(std::string("parameters/") + shape.name, static_cast<double>(numbers), "");
    for (const int ranks : kSizes) {
      std::int64_t longest = 0;
      const double seconds = seconds_of([&] {
        const FlatLayout layout(sizes, ranks, kChunkElements, bucket_elements(ranks));
        for (int rank = 0; rank < ranks; ++rank) longest = std::max(longest, layout.slice_size(rank));
      });
      const std::string at = std::string("/") + shape.name + "/" + std::to_string(ranks);
      figures.add("layout" + at, seconds, "s");
      figures.add("longest_slice" + at, static_cast<double>(longest) * ranks / static_cast<double>(numbers),
                  "of an even share");
    }
    std::int64_t chunks = 0;
    for (const std::int64_t size : sizes) chunks += num_chunks(size);
    const std::vector<double> sums(static_cast<std::size_t>(chunks), 1.0);
    figures.add(std::string("gradient_norm/") + shape.name, seconds_of([&] { (void)norm_of_chunk_sums(sums, sizes); }),
                "s");
  }
  for (const int ranks : kSizes) {
    // Sixteen micro-batches per rank, with 64 sampled tokens each.
    std::vector<std::int64_t> rows;
    std::vector<int> owners;
    for (int i = 0; i < 16 * ranks; ++i) {
      rows.push_back(1000 + i * 7919 % 997);
      owners.push_back(i % ranks);
    }
    const std::string at = "/" + std::to_string(ranks);
    figures.add("shares" + at, seconds_of([&] { (void)shares_by_size(rows, ranks); }), "s");
    MirroredRanks group(ranks);
    const std::vector<BatchReport> all(owners.size(), BatchReport{.logprob = std::vector<double>(64, -1.0)});
    figures.add("reports" + at,
                seconds_of(
                    [&] {
                      std::vector<BatchReport> reports = all;
                      gather_reports(group, owners, reports, "reports");
                    },
                    3),
                "s");
  }
}

/// Groups of eight chains of `turns` turns, each of 64 tokens from outside and 448 that were sampled.
std::vector<Group> chains(int groups, int turns) {
  std::vector<Group> all;
  for (int g = 0; g < groups; ++g) {
    Group group{.uid = "train_" + std::to_string(g), .task_index = g};
    for (int member = 0; member < 8; ++member) {
      Tree tree;
      for (int t = 0; t < turns; ++t) {
        Turn turn{.parent = t - 1,
                  .tokens = std::vector<TokenId>(512, 1000 + member),
                  .sampled_begin = 64,
                  .sampled_end = 512};
        extend_spans(turn.spans, t == 0 ? SpanKind::Prompt : SpanKind::Observation, 64);
        extend_spans(turn.spans, SpanKind::Action, 448);
        tree.turns.push_back(std::move(turn));
        for (const Column column :
             {Column::LogProbRollout, Column::EntropyRollout, Column::LogProbOld, Column::EntropyOld}) {
          std::vector<double>& values = tree.columns.edit(column, t, 512);
          for (int i = 64; i < 512; ++i) values[static_cast<std::size_t>(i)] = -0.7 - 1e-3 * ((i * 31 + t) % 97);
        }
      }
      const double score = member % 3 == 0 ? 1 : 0;
      tree.turns.back().reward = score;
      tree.leaves.push_back({.turn = turns - 1,
                             .sibling = member,
                             .trajectory_id = group.uid + "/" + std::to_string(member),
                             .score = score,
                             .success = score > 0});
      group.trees.push_back(std::move(tree));
    }
    all.push_back(std::move(group));
  }
  return all;
}

/// The work of each rank on all tokens of a step, and of rank 0 alone.
void measure_tokens(Figures& figures) {
  const std::vector<Group> groups = chains(8, 8);
  const auto views = trajectories(groups);
  double tokens = 0;
  for (const Trajectory& view : views) tokens += view.num_tokens();
  const auto add = [&](const std::string& name, const std::function<void()>& body) {
    figures.add("token/" + name, seconds_of(body) / tokens * 1e9, "ns");
  };
  std::string bytes;
  add("write_bytes", [&] { bytes = bytes_of_groups(groups); });
  figures.add("token/bytes", static_cast<double>(bytes.size()) / tokens, "bytes");
  add("read_bytes", [&] { CARNOT_CHECK(groups_of_bytes(bytes), "bytes of groups"); });
  const Recipe recipe = Recipe::parse("env: frozen_lake\nmethod: grpo\n", "scale_bench", {}).value();
  CreditTable credit;
  add("credit", [&] { credit = run_credit(credit_chain(recipe.method, 0), views); });
  add("metrics", [&] {
    (void)trajectory_metrics(views, "search_qa");
    (void)credit_metrics(views, credit);
    (void)mismatch_metrics(views, 2);
  });
  std::vector<int> step(views.size());
  std::iota(step.begin(), step.end(), 0);
  add("pack", [&] { (void)pack(views, credit, step, {.max_tokens = 16384, .shards = 8}); });
  std::string rows;
  add("rows", [&] {
    rows = rollout_rows(groups, credit, [](std::span<const TokenId> ids) { return std::string(4 * ids.size(), 'x'); });
  });
  figures.add("token/row_bytes", static_cast<double>(rows.size()) / tokens, "bytes");

  Rollout rollout{.groups = groups};
  const std::string result = bytes_of_rollout(rollout);
  std::vector<RolloutTask> tasks;
  for (const Group& group : groups) tasks.push_back({.uid = group.uid, .task_index = group.task_index});
  add("accept_result", [&] {
    const auto read = rollout_of_bytes(result);
    CARNOT_CHECK(read, "a result");
    (void)check_rollout(*read, {.tasks = tasks, .vocabulary = 10'000});
  });
  const std::string weights(std::size_t{256} << 20, 'w');
  figures.add("sha256", static_cast<double>(weights.size()) / seconds_of([&] { (void)sha256_hex(weights); }, 2) / 1e9,
              "GB/s");
}

/// Packing with as many sequences and micro-batches as 4,096 ranks have.
void measure_packing(Figures& figures) {
  for (const int ranks : {64, 512, 4096}) {
    std::vector<Group> groups;
    for (int g = 0; g < 2 * ranks; ++g) {
      Group group{.uid = std::to_string(g)};
      for (int member = 0; member < 8; ++member) {
        const int length = 8 + (g * 8 + member) * 7919 % 25;
        Tree tree;
        tree.turns.push_back({.tokens = std::vector<TokenId>(static_cast<std::size_t>(length), 1),
                              .sampled_begin = 1,
                              .sampled_end = length});
        extend_spans(tree.turns[0].spans, SpanKind::Prompt, 1);
        extend_spans(tree.turns[0].spans, SpanKind::Action, length - 1);
        tree.leaves.push_back({.turn = 0, .sibling = member});
        group.trees.push_back(std::move(tree));
      }
      groups.push_back(std::move(group));
    }
    const auto views = trajectories(groups);
    const CreditTable credit = fresh_credit(views);
    std::vector<int> step(views.size());
    std::iota(step.begin(), step.end(), 0);
    figures.add("packing/" + std::to_string(ranks),
                seconds_of([&] { (void)pack(views, credit, step, {.max_tokens = 64, .shards = ranks}); }, 1), "s");
  }
}

c10::intrusive_ptr<c10d::TCPStore> store_at(const RankSetting& place) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

/// Requests per second that the store answers for two clients, and how long one for 4,096 values takes.
void measure_store(Figures& figures) {
  constexpr int kRequests = 20'000;
  const auto reports = testing::fork_ranks(3, [](const RankSetting& place) {
    const auto store = store_at(place);
    const std::string me = std::to_string(place.rank);
    if (place.rank == 0) {
      store->wait({"done/1", "done/2"});
      return std::string();
    }
    store->set("key" + me, std::vector<std::uint8_t>(60, 'x'));
    const Stopwatch watch;
    for (int i = 0; i < kRequests; ++i) (void)store->check({"key" + me});
    std::string report = std::to_string(kRequests / watch.seconds());
    if (place.rank == 1) {
      std::vector<std::string> keys;
      for (int i = 0; i < 4096; ++i) {
        keys.push_back("member/" + std::to_string(i));
        store->set(keys.back(), std::vector<std::uint8_t>(60, 'x'));
      }
      const double together = seconds_of([&] { (void)store->multiGet(keys); });
      const double one_by_one = seconds_of(
          [&] {
            for (const std::string& key : keys) (void)store->get(key);
          },
          2);
      report += " " + std::to_string(together) + " " + std::to_string(one_by_one);
    }
    store->set("done/" + me, std::vector<std::uint8_t>(1, 'x'));
    return report;
  });
  std::istringstream first(reports[1].report);
  double requests = 0, together = 0, one_by_one = 0;
  first >> requests >> together >> one_by_one;
  figures.add("store/requests", requests + std::stod(reports[2].report), "a second");
  figures.add("store/4096_values_in_one_request", together, "s");
  figures.add("store/4096_values_one_by_one", one_by_one, "s");
}

/// Meeting, and a small gather, with this many processes on this machine.
void measure_groups(Figures& figures) {
  for (const int size : {2, 4, 8, 16, 32, 64}) {
    const auto reports = testing::fork_ranks(size, [](const RankSetting& place) {
      const Stopwatch watch;
      auto group = ProcessGroup::join(place, {.lost_after_seconds = 60});
      if (!group) return group.error().message;
      const double joined = watch.seconds();
      wait_for_all(**group, "start");
      const Stopwatch gathers;
      for (int i = 0; i < 20; ++i) (void)(*group)->gather("x", "gather");
      const std::string report = std::to_string(joined) + " " + std::to_string(gathers.seconds() / 20);
      (*group)->leave();
      return report;
    });
    double joined = 0, gather = 0;
    for (const auto& rank : reports) {
      std::istringstream in(rank.report);
      double own_join = 0, own_gather = 0;
      in >> own_join >> own_gather;
      if (!in) std::printf("%s\n", rank.report.c_str());
      joined = std::max(joined, own_join);
      gather = std::max(gather, own_gather);
    }
    figures.add("join/" + std::to_string(size), joined, "s");
    figures.add("gather/" + std::to_string(size), gather, "s");
  }
}

/// One shard each of two processes: gradients exchanged and added, weights updated and gathered.
void measure_exchange(Figures& figures) {
  for (const std::int64_t numbers : {std::int64_t{4} << 20, std::int64_t{95} * 1'000'000}) {
    const auto reports = testing::fork_ranks(2, [numbers](const RankSetting& place) {
      const auto group = std::move(ProcessGroup::join(place)).value();
      at::Tensor weights = at::zeros({numbers}, at::kFloat);
      GradientExchange exchange(*group, {weights}, 2);
      ShardedOptimizer optimizer(*group, exchange, {{"weights", weights}}, {});
      double best = 1e9;
      for (int i = 0; i < 4; ++i) {
        weights.mutable_grad() = at::ones({numbers}, at::kFloat);
        wait_for_all(*group, "start");
        const Stopwatch watch;
        exchange.add_round("gradients");
        optimizer.step(0);
        best = std::min(best, watch.seconds());
      }
      group->leave();
      return std::to_string(best);
    });
    const double seconds = std::max(std::stod(reports[0].report), std::stod(reports[1].report));
    figures.add("exchange/" + std::to_string(numbers), seconds, "s for gradients, update and weights of two ranks");
  }
}

/// A file from one process to another on this machine.
void measure_files(Figures& figures) {
  const fs::path folder = fs::temp_directory_path() / ("scale_bench." + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path path = folder / "weights";
  std::ofstream(path) << std::string(std::size_t{512} << 20, 'w');
  ServedFiles files;
  const auto file = files.take(path);
  CARNOT_CHECK(file, "a served file");
  const auto http =
      HttpServer::start({}, [&](const HttpCall& call, const HttpConnection&) { return files.answer(call.path); });
  CARNOT_CHECK(http, "a server");
  const auto url = parse_url("http://127.0.0.1:" + std::to_string((*http)->port()));
  const double seconds = seconds_of(
      [&] {
        const auto fetched = fetch_file(*url, "", *file, folder / "copy", [] { return true; });
        CARNOT_CHECK(fetched && fetched->done, "a fetched file");
      },
      3);
  figures.add("http/fetch_and_hash", static_cast<double>(file->bytes) / seconds / 1e9, "GB/s");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) {
  carnot::offer_worlds();
  carnot::Figures figures;
  // Forks first: this process must have one thread then.
  carnot::measure_store(figures);
  carnot::measure_groups(figures);
  carnot::measure_exchange(figures);
  carnot::measure_files(figures);
  carnot::set_num_threads(1);
  carnot::measure_plans(figures);
  carnot::measure_tokens(figures);
  carnot::measure_packing(figures);
  if (argc == 3 && std::string(argv[1]) == "--json") std::ofstream(argv[2]) << figures.json();
}
