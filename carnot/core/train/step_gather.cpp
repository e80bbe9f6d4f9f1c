#include "carnot/core/train/step_gather.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/check.h"
#include "carnot/core/data/group_bytes.h"
#include "carnot/core/rank/shares.h"
#include "carnot/core/rollout/rollout_bytes.h"

namespace carnot {
namespace {

std::string bytes_of_report(const BatchReport& report) {
  ByteWriter out;
  out.add(report.logprob);
  out.add(static_cast<std::uint64_t>(report.metrics.size()));
  for (const MetricSum& metric : report.metrics) {
    out.add(metric.name);
    out.add(metric.sum);
    out.add(metric.count);
  }
  out.add(report.compared_tokens);
  out.add(report.difference);
  out.add(report.largest_difference);
  return out.take();
}

BatchReport report_of_bytes(const std::string& bytes, const std::string& from) {
  BatchReport report;
  ByteReader in(bytes);
  in.get(report.logprob);
  for (std::size_t left = in.get_size(1); left > 0 && in.ok(); --left) {
    MetricSum& metric = report.metrics.emplace_back();
    in.get(metric.name);
    in.get(metric.sum);
    in.get(metric.count);
  }
  in.get(report.compared_tokens);
  in.get(report.difference);
  in.get(report.largest_difference);
  CARNOT_CHECK(in.complete(), "a micro-batch's report of " + from);
  return report;
}

/// Each owner's texts, by number: `mine` where this rank is the owner, else what it gave.
std::vector<std::string> gather_owned(Collectives& collectives, std::span<const int> owners,
                                      const std::vector<std::string>& mine, const std::string& what) {
  ByteWriter out;
  out.add(mine);
  const auto gathered = collectives.gather(out.take(), what);
  std::vector<std::size_t> owned(gathered.size(), 0);
  for (const int owner : owners) ++owned[owner];
  std::vector<std::vector<std::string>> given(gathered.size());
  for (int rank = 0; rank < collectives.size(); ++rank) {
    ByteReader in(gathered[rank]);
    in.get(given[rank]);
    CARNOT_CHECK(in.complete() && given[rank].size() == owned[rank], what + " of " + collectives.name_of_rank(rank));
  }
  std::vector<std::string> all(owners.size());
  std::vector<std::size_t> next(gathered.size(), 0);
  for (std::size_t i = 0; i < owners.size(); ++i) all[i] = std::move(given[owners[i]][next[owners[i]]++]);
  return all;
}

}  // namespace

Rollout roll_out_together(Collectives& collectives, Engine& engine, const ChatFamily& chat, const BranchPolicy& policy,
                          std::span<const RolloutTask> tasks, const RolloutOptions& options, const RolloutKey& key,
                          const RolloutEvents& events, const std::string& what) {
  const auto count = static_cast<std::int64_t>(tasks.size());
  const IndexRange share = even_share(count, collectives.rank(), collectives.size());
  RolloutKey own_key = key;
  own_key.first_group += static_cast<std::uint64_t>(share.begin);
  RolloutEvents own_events = events;
  own_events.go_on = [&] {
    collectives.check();
    if (!events.go_on()) collectives.ask_to_stop();
    return events.go_on() && !collectives.was_asked_to_stop();
  };
  if (events.on_progress && share.size() > 0)  // the others are about as far
    own_events.on_progress = [&](std::int64_t ended) { events.on_progress(ended * count / share.size()); };
  return gather_rollout(
      collectives,
      roll_out(engine, chat, policy, tasks.subspan(share.begin, share.size()), options, own_key, own_events), what);
}

Rollout roll_out_on_first_rank(Collectives& collectives,
                               const std::function<Rollout(const RolloutEvents& events)>& rollouts,
                               const RolloutEvents& events, const std::string& what) {
  Rollout mine;
  const auto roll_out_here = [&](const std::function<bool()>& go_on) {
    RolloutEvents own = events;
    own.go_on = go_on;
    mine = rollouts(own);
    return collectives.size() == 1 ? std::string() : bytes_of_rollout(mine);
  };
  const std::string bytes = await_first_rank(collectives, roll_out_here, events.go_on, what);
  if (collectives.rank() == 0) return mine;
  auto read = rollout_of_bytes(bytes);
  CARNOT_CHECK(read, what + (read ? "" : ": " + read.error().message));
  return std::move(read).value();
}

Rollout gather_rollout(Collectives& collectives, Rollout mine, const std::string& what) {
  if (collectives.size() == 1) return mine;  // the same, without a copy of it
  const auto gathered = collectives.gather(bytes_of_rollout(mine), what);
  Rollout all;
  for (int rank = 0; rank < collectives.size(); ++rank) {
    auto read = rollout_of_bytes(gathered[rank]);
    CARNOT_CHECK(read, what + " of " + collectives.name_of_rank(rank) + (read ? "" : ": " + read.error().message));
    Rollout part = std::move(read).value();
    all.stopped = all.stopped || part.stopped;
    add_metrics(all.metrics, part.metrics, PartTimes::Longest);
    std::move(part.groups.begin(), part.groups.end(), std::back_inserter(all.groups));
    std::move(part.failures.begin(), part.failures.end(), std::back_inserter(all.failures));
  }
  if (all.stopped) all.groups.clear();
  return all;
}

void gather_groups(Collectives& collectives, std::span<const int> owners, std::vector<Group>& groups,
                   const std::string& what) {
  CARNOT_CHECK_EQ(owners.size(), groups.size());
  if (collectives.size() == 1) return;
  std::vector<std::string> mine;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (owners[i] == collectives.rank()) mine.push_back(bytes_of_groups({groups[i]}));
  const auto all = gather_owned(collectives, owners, mine, what);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (owners[i] == collectives.rank()) continue;
    auto read = groups_of_bytes(all[i]);
    CARNOT_CHECK(read && read->size() == 1, what + (read ? "" : ": " + read.error().message));
    groups[i] = std::move(read->front());
  }
}

void gather_reports(Collectives& collectives, std::span<const int> owners, std::vector<BatchReport>& reports,
                    const std::string& what) {
  CARNOT_CHECK_EQ(owners.size(), reports.size());
  if (collectives.size() == 1) return;
  std::vector<std::string> mine;
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (owners[i] == collectives.rank()) mine.push_back(bytes_of_report(reports[i]));
  const auto all = gather_owned(collectives, owners, mine, what);
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (owners[i] != collectives.rank()) reports[i] = report_of_bytes(all[i], collectives.name_of_rank(owners[i]));
}

}  // namespace carnot
