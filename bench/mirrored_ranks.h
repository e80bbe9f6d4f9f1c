// bench/mirrored_ranks.h -- a group of many ranks in one process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/collectives/collectives.h"

namespace carnot {

/// Rank 0 of a group whose other ranks repeat what it says.
class MirroredRanks : public Collectives {
 public:
  explicit MirroredRanks(int size) : size_(size) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  std::string name_of_rank(int rank) const override { return "rank " + std::to_string(rank); }
  std::vector<std::string> gather(const std::string& mine, const std::string&) override {
    return std::vector<std::string>(static_cast<std::size_t>(size_), mine);
  }
  Begun begin_exchange(const at::Tensor& row, std::span<const std::int64_t> sizes, const std::string& what) override {
    return alone_.begin_exchange(row.slice(0, 0, sizes[0]), sizes.first(1), what);
  }
  Begun begin_gather(const at::Tensor& part, std::span<const std::int64_t> sizes, const std::string& what) override {
    return alone_.begin_gather(part, sizes.first(1), what);
  }
  Begun begin_sum(const at::Tensor& row, const std::string& what) override { return alone_.begin_sum(row, what); }
  void check() override {}
  void ask_to_stop() override {}
  bool was_asked_to_stop() override { return false; }
  void leave() override {}
  void fail(const std::string&) override {}

 private:
  OneProcess alone_;
  int size_;
};

}  // namespace carnot
