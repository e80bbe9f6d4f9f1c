// ranks/process_group.h -- ranks in several processes, on one machine or more, over LibTorch's c10d with Gloo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/collectives/options.h"
#include "carnot/core/rank/launcher.h"

namespace carnot {

class ProcessGroup : public Collectives {
 public:
  /// Meets the other ranks. The error names those that did not come. A group of one is OneProcess.
  static Result<std::unique_ptr<Collectives>> join(const RankSetting& setting, const ProcessGroupOptions& options = {});

  /// Leaves without waiting. Where leave() was not called, the others learn that this rank ended.
  ~ProcessGroup() override;

  int rank() const override;
  int size() const override;
  std::string name_of_rank(int rank) const override;
  std::vector<std::string> gather(const std::string& mine, const std::string& what) override;
  Begun begin_exchange(const at::Tensor& row, std::span<const std::int64_t> sizes, const std::string& what) override;
  Begun begin_gather(const at::Tensor& part, std::span<const std::int64_t> sizes, const std::string& what) override;
  Begun begin_sum(const at::Tensor& row, const std::string& what) override;
  void check() override;
  void ask_to_stop() override;
  bool was_asked_to_stop() override;
  void leave() override;
  void fail(const std::string& why) override;

 private:
  class Connection;
  class BegunWork;
  explicit ProcessGroup(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

/// Lets join_ranks() meet other ranks.
void offer_process_groups();

}  // namespace carnot
