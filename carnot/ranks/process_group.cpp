#include "carnot/ranks/process_group.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/collectives/join.h"
#include "carnot/ranks/first_line.h"
#include "carnot/ranks/meeting.h"

namespace carnot {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// Between looks at the watch while a collective runs.
constexpr Milliseconds kLook{500};

/// For the same `what` after the same number of collectives: the same number.
std::int64_t mark_of(std::int64_t number, const std::string& what) {
  std::uint64_t mark = 14695981039346656037u + static_cast<std::uint64_t>(number);  // FNV-1a
  for (const char c : what) mark = (mark ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<std::int64_t>(mark);
}

}  // namespace

class ProcessGroup::Connection {
 public:
  Connection(const RankSetting& setting, const ProcessGroupOptions& options, MetRanks met)
      : setting_(setting),
        hung_after_(in_milliseconds(options.hung_after_seconds)),
        names_(std::move(met.names)),
        store_(std::move(met.store)),
        backend_(std::move(met.backend)),
        watch_(std::move(met.watch)) {}

  ~Connection() {
    if (!left_ && !lost_) fail(names_[setting_.rank] + " ended before the others");
    if (!watch_->stop()) (void)watch_.release();
    if (left_) return;
    // Their threads may wait for ranks that do not answer any more; their destructors would wait with them.
    (void)backend_.release();
    (void)store_.release();
  }

  const RankSetting& setting() const { return setting_; }
  const std::string& name(int rank) const { return names_.at(rank); }
  GroupWatch& watch() { return *watch_; }
  c10d::Backend& backend() { return *backend_; }

  void check() {
    if (const auto verdict = watch_->verdict()) lose(*verdict);
  }

  void fail(const std::string& verdict) {
    watch_->fail(verdict);
    let_others_read();
    lost_ = true;
  }

  using WorkPointer = c10::intrusive_ptr<c10d::Work>;

  /// Starts a collective.
  WorkPointer begin(const std::string& what, const std::function<WorkPointer()>& start) {
    CARNOT_CHECK(!left_, what + " after the group was left");
    check();
    watch_->enter(what);
    return or_lose(what, start);
  }

  /// Waits until a collective has ended.
  void finish(const std::string& what, c10d::Work& work) {
    or_lose(what, [&] { wait(work); });
  }

  void run(const std::string& what, const std::function<WorkPointer()>& start) { finish(what, *begin(what, start)); }

  std::int64_t next_mark(const std::string& what) { return mark_of(++number_, what); }

  void leave() {
    barrier();  // no rank is missed from here on
    if (!watch_->stop()) lose("the group's store has not answered at the end");
    barrier();  // no rank looks into the store any more, which rank 0 may serve
    left_ = true;
  }

 private:
  void barrier() {
    run("the end", [this] { return backend_->barrier(); });
  }

  /// What `body` returns. What the library throws means that the group is lost.
  template <class Body>
  auto or_lose(const std::string& what, const Body& body) -> decltype(body()) {
    try {
      return body();
    } catch (const GroupLost&) {
      throw;
    } catch (const std::exception& error) {
      lose(watch_->verdict_after(what, first_line(error.what())));
    }
  }

  void wait(c10d::Work& work) {
    auto began = std::chrono::steady_clock::now();
    while (!work.isCompleted()) {
      try {
        work.wait(kLook);
      } catch (const std::exception&) {
        if (work.isCompleted()) break;  // ended with that, or in this moment
        check();
      }
      const auto now = std::chrono::steady_clock::now();
      if (hung_after_.count() == 0 || now - began < hung_after_) continue;
      if (const auto verdict = watch_->verdict_on_absent(std::chrono::duration_cast<Milliseconds>(now - began)))
        lose(*verdict);
      began = now;
    }
    work.wait();  // throws what ended it
  }

  /// The others read the verdict from the store. Where this rank serves it, it must not end at once.
  void let_others_read() const {
    if (setting_.rank == 0 && !setting_.launcher_has_store) std::this_thread::sleep_for(4 * watch_->beat_time());
  }

  [[noreturn]] void lose(const std::string& verdict) {
    if (!lost_) let_others_read();
    lost_ = true;
    // What the watch does not know, no other rank reports.
    throw GroupLost(verdict, watch_->verdict() != verdict || watch_->is_to_tell());
  }

  RankSetting setting_;
  Milliseconds hung_after_;
  std::vector<std::string> names_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::unique_ptr<GroupWatch> watch_;
  std::int64_t number_ = 0;
  bool left_ = false, lost_ = false;
};

class ProcessGroup::BegunWork : public BegunCollective {
 public:
  BegunWork(Connection& connection, const std::string& what, const std::function<Connection::WorkPointer()>& start,
            at::Tensor result)
      : connection_(connection), what_(what), work_(connection.begin(what, start)), result_(std::move(result)) {}

  bool has_ended() override {
    if (!work_->isCompleted()) {
      connection_.check();  // the library may wait for a rank that is gone
      return false;
    }
    connection_.finish(what_, *work_);
    return true;
  }

  at::Tensor result() override {
    connection_.finish(what_, *work_);
    return result_;
  }

 private:
  Connection& connection_;
  std::string what_;
  Connection::WorkPointer work_;
  at::Tensor result_;
};

ProcessGroup::ProcessGroup(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
ProcessGroup::~ProcessGroup() = default;

Result<std::unique_ptr<Collectives>> ProcessGroup::join(const RankSetting& setting,
                                                        const ProcessGroupOptions& options) {
  if (setting.size == 1) return std::unique_ptr<Collectives>(std::make_unique<OneProcess>());
  CARNOT_ASSIGN_OR_RETURN(auto met, meet_ranks(setting, options));
  return std::unique_ptr<Collectives>(new ProcessGroup(std::make_unique<Connection>(setting, options, std::move(met))));
}

int ProcessGroup::rank() const { return connection_->setting().rank; }
int ProcessGroup::size() const { return connection_->setting().size; }
std::string ProcessGroup::name_of_rank(int rank) const { return connection_->name(rank); }
void ProcessGroup::check() { connection_->check(); }
void ProcessGroup::ask_to_stop() { connection_->watch().ask_to_stop(); }
bool ProcessGroup::was_asked_to_stop() { return connection_->watch().was_asked_to_stop(); }
void ProcessGroup::leave() { connection_->leave(); }
void ProcessGroup::fail(const std::string& why) { connection_->fail(name_of_rank(rank()) + ": " + why); }

std::vector<std::string> ProcessGroup::gather(const std::string& mine, const std::string& what) {
  const auto bytes = at::TensorOptions().dtype(at::kByte);
  // First how many bytes each has, and that all are here for the same thing.
  at::Tensor own = at::empty({1, 2}, at::TensorOptions().dtype(at::kLong));
  own.mutable_data_ptr<std::int64_t>()[0] = static_cast<std::int64_t>(mine.size());
  own.mutable_data_ptr<std::int64_t>()[1] = connection_->next_mark(what);
  at::Tensor all = at::empty({size(), 2}, own.options());
  connection_->run(what, [&] { return connection_->backend()._allgather_base(all, own); });
  const std::int64_t* entries = all.const_data_ptr<std::int64_t>();
  std::int64_t longest = 0;
  for (int r = 0; r < size(); ++r) {
    CARNOT_CHECK(entries[2 * r + 1] == own.const_data_ptr<std::int64_t>()[1],
                 name_of_rank(r) + " is not at \"" + what + "\"");
    longest = std::max(longest, entries[2 * r]);
  }
  if (longest == 0) return std::vector<std::string>(size());

  at::Tensor padded = at::zeros({longest}, bytes);
  std::memcpy(padded.mutable_data_ptr<std::uint8_t>(), mine.data(), mine.size());
  at::Tensor received = at::empty({size() * longest}, bytes);
  connection_->run(what, [&] { return connection_->backend()._allgather_base(received, padded); });
  std::vector<std::string> gathered;
  for (int r = 0; r < size(); ++r)
    gathered.emplace_back(reinterpret_cast<const char*>(received.const_data_ptr<std::uint8_t>()) + r * longest,
                          static_cast<std::size_t>(entries[2 * r]));
  return gathered;
}

Collectives::Begun ProcessGroup::begin_exchange(const at::Tensor& row, std::span<const std::int64_t> sizes,
                                                const std::string& what) {
  CARNOT_CHECK_EQ(sizes.size(), static_cast<std::size_t>(size()));
  const std::int64_t own = sizes[static_cast<std::size_t>(rank())];
  std::vector<std::int64_t> sent(sizes.begin(), sizes.end()), received(sizes.size(), own);
  at::Tensor in = row, out = at::empty({size() * own}, row.options());
  return std::make_unique<BegunWork>(
      *connection_, what, [&] { return connection_->backend().alltoall_base(out, in, received, sent); },
      out.view({size(), own}));
}

Collectives::Begun ProcessGroup::begin_gather(const at::Tensor& part, std::span<const std::int64_t> sizes,
                                              const std::string& what) {
  CARNOT_CHECK_EQ(sizes.size(), static_cast<std::size_t>(size()));
  CARNOT_CHECK_EQ(part.numel(), sizes[static_cast<std::size_t>(rank())]);
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  at::Tensor padded = part;
  if (part.numel() < longest) {
    padded = at::zeros({longest}, part.options());
    padded.slice(0, 0, part.numel()).copy_(part);
  }
  const at::Tensor all = at::empty({size() * longest}, part.options());
  // As bytes: not every number type is one of Gloo's.
  at::Tensor all_bytes = all.view(at::kByte), padded_bytes = padded.view(at::kByte);
  return std::make_unique<BegunWork>(
      *connection_, what, [&] { return connection_->backend()._allgather_base(all_bytes, padded_bytes); },
      all.view({size(), longest}));
}

Collectives::Begun ProcessGroup::begin_sum(const at::Tensor& row, const std::string& what) {
  std::vector<at::Tensor> rows{row};
  return std::make_unique<BegunWork>(*connection_, what, [&] { return connection_->backend().allreduce(rows); }, row);
}

void offer_process_groups() { offer_ranks(&ProcessGroup::join); }

}  // namespace carnot
