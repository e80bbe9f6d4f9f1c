#include "carnot/distributed/collectives.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "carnot/base/check.h"

namespace carnot {
namespace {

// A status as bytes: a mark, then the message.
constexpr char kSuccess = '+';
constexpr char kFailure = '-';

std::string bytes_of_status(const Status& status) {
  return status ? std::string(1, kSuccess) : kFailure + status.error().message;
}

Status status_of_bytes(const std::string& bytes) {
  if (bytes.starts_with(kFailure)) return Error{bytes.substr(1)};
  return Done{};
}

}  // namespace

std::string OneProcess::name_of_rank(int rank) const { return "rank " + std::to_string(rank); }

std::vector<std::string> OneProcess::gather(const std::string& mine, const std::string&) { return {mine}; }

at::Tensor OneProcess::exchange(const at::Tensor& row, const FlatLayout& layout, const std::string&) {
  CARNOT_CHECK_EQ(row.numel(), layout.size());
  CARNOT_CHECK_EQ(layout.num_slices(), 1);
  return row.view({1, row.numel()});
}

void OneProcess::gather_slices(const at::Tensor& slice, const FlatLayout& layout, const at::Tensor& row,
                               const std::string&) {
  CARNOT_CHECK_EQ(slice.numel(), layout.size());
  row.copy_(slice);
}

void wait_for_all(Collectives& collectives, const std::string& what) { collectives.gather({}, what); }

std::string from_first_rank(Collectives& collectives, const std::string& bytes, const std::string& what) {
  return collectives.gather(collectives.rank() == 0 ? bytes : std::string(), what).front();
}

bool is_true_anywhere(Collectives& collectives, bool mine, const std::string& what) {
  const auto all = collectives.gather(mine ? "1" : "0", what);
  return std::find(all.begin(), all.end(), "1") != all.end();
}

Status agree(Collectives& collectives, const Status& mine, const std::string& what) {
  const auto all = collectives.gather(bytes_of_status(mine), what);
  for (int rank = 0; rank < collectives.size(); ++rank) {
    const Status status = status_of_bytes(all[rank]);
    if (status) continue;
    return collectives.size() == 1 ? status : Error{collectives.name_of_rank(rank) + ": " + status.error().message};
  }
  return Done{};
}

Status on_first_rank(Collectives& collectives, const std::string& what, const std::function<Status()>& body) {
  return status_of_bytes(
      from_first_rank(collectives, collectives.rank() == 0 ? bytes_of_status(body()) : std::string(), what));
}

}  // namespace carnot
