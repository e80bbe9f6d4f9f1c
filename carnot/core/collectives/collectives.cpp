#include "carnot/core/collectives/collectives.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

// A status as bytes: a mark, then the message.
constexpr char kSuccess = '+';
constexpr char kFailure = '-';

// What rank 0 says while the others wait for it.
constexpr char kWaiting = 'w';
constexpr char kGiven = 'g';
constexpr std::chrono::seconds kBetweenSigns{1};

std::string bytes_of_status(const Status& status) {
  return status ? std::string(1, kSuccess) : kFailure + status.error().message;
}

Status status_of_bytes(const std::string& bytes) {
  if (bytes.starts_with(kFailure)) return Error{bytes.substr(1)};
  return Done{};
}

class EndedCollective : public BegunCollective {
 public:
  explicit EndedCollective(at::Tensor result) : result_(std::move(result)) {}
  bool has_ended() override { return true; }
  at::Tensor result() override { return result_; }

 private:
  at::Tensor result_;
};

}  // namespace

std::string OneProcess::name_of_rank(int rank) const { return "rank " + std::to_string(rank); }

std::vector<std::string> OneProcess::gather(const std::string& mine, const std::string&) { return {mine}; }

Collectives::Begun OneProcess::begin_exchange(const at::Tensor& row, std::span<const std::int64_t> sizes,
                                              const std::string&) {
  CARNOT_CHECK_EQ(sizes.size(), std::size_t{1});
  CARNOT_CHECK_EQ(row.numel(), sizes[0]);
  return std::make_unique<EndedCollective>(row.view({1, row.numel()}));
}

Collectives::Begun OneProcess::begin_gather(const at::Tensor& part, std::span<const std::int64_t> sizes,
                                            const std::string& what) {
  return begin_exchange(part, sizes, what);
}

Collectives::Begun OneProcess::begin_sum(const at::Tensor& row, const std::string&) {
  return std::make_unique<EndedCollective>(row);
}

void wait_for_all(Collectives& collectives, const std::string& what) { collectives.gather({}, what); }

std::string from_first_rank(Collectives& collectives, const std::string& bytes, const std::string& what) {
  return collectives.gather(collectives.rank() == 0 ? bytes : std::string(), what).front();
}

std::string await_first_rank(Collectives& collectives,
                             const std::function<std::string(const std::function<bool()>& go_on)>& body,
                             const std::function<bool()>& go_on, const std::string& what) {
  if (collectives.size() == 1) return body(go_on);
  const auto may_go_on = [&] {
    collectives.check();
    const bool mine = go_on();
    if (!mine) collectives.ask_to_stop();
    return mine && !collectives.was_asked_to_stop();
  };
  if (collectives.rank() == 0) {
    auto last_sign = std::chrono::steady_clock::now();
    const std::string given = body([&] {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_sign < kBetweenSigns) return may_go_on();
      last_sign = now;
      from_first_rank(collectives, std::string(1, kWaiting), what);
      return may_go_on();
    });
    from_first_rank(collectives, kGiven + given, what);
    return given;
  }
  for (;;) {
    const std::string bytes = from_first_rank(collectives, {}, what);
    CARNOT_CHECK(!bytes.empty(), what);
    if (bytes.front() == kGiven) return bytes.substr(1);
    (void)may_go_on();
  }
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

Result<std::string> bytes_of_first_rank(Collectives& collectives, const std::string& what,
                                        const std::function<Result<std::string>()>& make) {
  std::string mine;
  if (collectives.rank() == 0) {
    const auto made = make();
    mine = made ? kSuccess + *made : kFailure + made.error().message;
  }
  const std::string first = from_first_rank(collectives, mine, what);
  CARNOT_RETURN_IF_ERROR(status_of_bytes(first));
  return first.substr(1);
}

Status on_first_rank(Collectives& collectives, const std::string& what, const std::function<Status()>& body) {
  CARNOT_RETURN_IF_ERROR(bytes_of_first_rank(collectives, what, [&]() -> Result<std::string> {
    CARNOT_RETURN_IF_ERROR(body());
    return std::string();
  }));
  return Done{};
}

}  // namespace carnot
