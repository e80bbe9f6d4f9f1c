// collectives/collectives.h -- what the ranks of a group do together: each call is made by all of them, in one order.
//
// A process alone is a group of one, so that its users need no second path. `what` says in a few words what is done
// ("rollouts of step 12"): it is what a message names when a rank does not come.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// Another rank ended, hangs or cannot be reached, so nothing that takes all of them can be done any more. The message
/// names it and its host, and is the same on every rank. What is held has to be given up; the launcher may start the
/// group again.
class GroupLost : public std::runtime_error {
 public:
  GroupLost(const std::string& message, bool is_to_tell) : std::runtime_error(message), is_to_tell_(is_to_tell) {}

  /// Whether this rank reports the loss to the user: the one that found out does. If the group's store was lost the
  /// ranks cannot agree on one, and one reports on each machine.
  bool is_to_tell() const { return is_to_tell_; }

 private:
  bool is_to_tell_ = true;
};

/// A collective that was begun and continues by itself. What was given to it must not be changed until it has ended.
class BegunCollective {
 public:
  virtual ~BegunCollective() = default;
  /// Whether result() returns at once. Throws GroupLost where it ended with that, or where that is known already.
  virtual bool has_ended() = 0;
  /// Waits until it has ended. May throw GroupLost.
  virtual at::Tensor result() = 0;
};

/// All functions but the first three may throw GroupLost.
class Collectives {
 public:
  using Begun = std::unique_ptr<BegunCollective>;

  virtual ~Collectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "rank 2 on host b (process 4711)"
  virtual std::string name_of_rank(int rank) const = 0;

  /// Every rank's bytes, by rank.
  virtual std::vector<std::string> gather(const std::string& mine, const std::string& what) = 0;

  // These begin, and others may be begun before they end. `sizes` are numbers of elements, by rank, the same on all
  // ranks. REQUIRES: tensors are contiguous, on the CPU, and of one number type on all ranks.

  /// Gives part r of `row` to rank r, whose length is sizes[r]. The result is what the ranks gave to this one: [size,
  /// length of the own part]; it may share memory with `row`.
  virtual Begun begin_exchange(const at::Tensor& row, std::span<const std::int64_t> sizes, const std::string& what) = 0;

  /// Every rank's part: [size, longest part], of whose row r the first sizes[r] elements are rank r's `part`.
  virtual Begun begin_gather(const at::Tensor& part, std::span<const std::int64_t> sizes, const std::string& what) = 0;

  /// Replaces `row` by the sum of all ranks' rows, added in an order of the library's. The result is `row`.
  virtual Begun begin_sum(const at::Tensor& row, const std::string& what) = 0;

  /// Throws GroupLost if that is known already. Costs next to nothing; for long work between the others.
  virtual void check() = 0;

  /// Tells the other ranks that this one was asked to stop, and whether any other was, as far as this rank knows by
  /// now: what all have to do alike needs is_true_anywhere().
  virtual void ask_to_stop() = 0;
  virtual bool was_asked_to_stop() = 0;

  /// Ends the group in good order, when all ranks are there. Nothing but rank(), size() and names may follow.
  virtual void leave() = 0;

  /// Tells the other ranks why this one ends before them: what follows is GroupLost on all of them.
  virtual void fail(const std::string& why) = 0;
};

/// A group of one process.
class OneProcess : public Collectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string name_of_rank(int rank) const override;
  std::vector<std::string> gather(const std::string& mine, const std::string& what) override;
  Begun begin_exchange(const at::Tensor& row, std::span<const std::int64_t> sizes, const std::string& what) override;
  Begun begin_gather(const at::Tensor& part, std::span<const std::int64_t> sizes, const std::string& what) override;
  Begun begin_sum(const at::Tensor& row, const std::string& what) override;
  void check() override {}
  void ask_to_stop() override {}
  bool was_asked_to_stop() override { return false; }
  void leave() override {}
  void fail(const std::string&) override {}
};

/// Returns when all ranks are there.
void wait_for_all(Collectives& collectives, const std::string& what);

/// What rank 0 gives; the others' bytes are not looked at.
std::string from_first_rank(Collectives& collectives, const std::string& bytes, const std::string& what);

/// What `body` gives on rank 0, the only one that calls it, on all ranks. It may take any time: `body` asks the
/// function that it gets several times a second, which shows the others that there is still something to wait for, and
/// says no once `go_on` does on any rank.
std::string await_first_rank(Collectives& collectives,
                             const std::function<std::string(const std::function<bool()>& go_on)>& body,
                             const std::function<bool()>& go_on, const std::string& what);

/// True on all ranks if it is on any.
bool is_true_anywhere(Collectives& collectives, bool mine, const std::string& what);

/// The first rank's error, with its name in front, on all ranks; success if no rank has one.
Status agree(Collectives& collectives, const Status& mine, const std::string& what);

/// What this rank has, if all have one; else the first rank's error.
template <class T>
Result<T> agreed(Collectives& collectives, Result<T> mine, const std::string& what) {
  CARNOT_RETURN_IF_ERROR(agree(collectives, mine ? Status(Done{}) : Status(mine.error()), what));
  return mine;
}

/// What `make` gives on rank 0, the only one that calls it, on all ranks: bytes, or why it has none.
Result<std::string> bytes_of_first_rank(Collectives& collectives, const std::string& what,
                                        const std::function<Result<std::string>()>& make);

/// Rank 0 does it, as with files that all share; all ranks learn how it ended.
Status on_first_rank(Collectives& collectives, const std::string& what, const std::function<Status()>& body);

/// Rank 0 makes a thing and keeps it, the others have none; all ranks learn why it could not.
template <class Make>
auto made_on_first_rank(Collectives& collectives, const std::string& what, const Make& make) {
  using Thing = std::remove_cvref_t<decltype(make().value())>;
  std::optional<Thing> thing;
  const Status made = on_first_rank(collectives, what, [&]() -> Status {
    CARNOT_ASSIGN_OR_RETURN(auto own, make());
    thing.emplace(std::move(own));
    return Done{};
  });
  return made ? Result<std::optional<Thing>>(std::move(thing)) : Result<std::optional<Thing>>(made.error());
}

}  // namespace carnot
