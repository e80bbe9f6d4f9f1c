#include "carnot/ranks/meeting.h"

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/host_name.h"
#include "carnot/core/base/strings.h"
#include "carnot/ranks/backend.h"
#include "carnot/ranks/first_line.h"

namespace carnot {

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

/// Longer than any wait: the watch decides what waits too long.
constexpr std::chrono::milliseconds kNoLimit = std::chrono::hours(24 * 365);

/// The address at which this machine is seen from `host`: where what is sent there starts. Sends nothing.
Result<std::string> address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int problem = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); problem != 0)
    return Error{host + ": " + gai_strerror(problem) + "; expected the host of rank 0"};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    const Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (!socket.is_open() || ::connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
      continue;
    char text[NI_MAXHOST] = "";
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      return std::string(text);
  }
  return Error{host + ": no way leads there from " + host_name() + "; expected the host of rank 0"};
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::vector<std::uint8_t> as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

/// What each rank announces before they meet.
struct Member {
  std::string host{};
  std::string process{};
  std::string address{};
};

std::string bytes_of_member(const Member& member) {
  return member.host + "\n" + member.process + "\n" + member.address;
}

Member member_of_bytes(const std::string& bytes) {
  const std::size_t first = bytes.find('\n'), second = bytes.find('\n', first + 1);
  return {.host = bytes.substr(0, first),
          .process = bytes.substr(first + 1, second - first - 1),
          .address = bytes.substr(second + 1)};
}

/// What each rank has written at this stage of the meeting, by rank, once all have.
Result<std::vector<std::string>> written_by_all(c10d::Store& store, const RankSetting& setting,
                                                const std::string& stage, const std::string& mine,
                                                const ProcessGroupOptions& options) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < setting.size; ++rank) keys.push_back(stage + "/" + std::to_string(rank));
  store.set(keys[setting.rank], as_bytes(mine));
  try {
    store.wait(keys, in_milliseconds(options.join_seconds));
  } catch (const std::exception&) {
    std::vector<std::string> missing;
    for (int rank = 0; rank < setting.size; ++rank)
      if (!store.check({keys[rank]})) missing.push_back(std::to_string(rank));
    return Error{"ranks " + join(missing) + " of " + std::to_string(setting.size) + " did not come to " +
                 setting.address + ":" + std::to_string(setting.port) + " within " +
                 std::to_string(static_cast<std::int64_t>(options.join_seconds)) + " s"};
  }
  std::vector<std::string> texts;
  // In one request: one for each key would be as many as the square of the number of ranks, all to one server.
  for (const auto& bytes : store.multiGet(keys)) texts.emplace_back(bytes.begin(), bytes.end());
  return texts;
}

/// Who has joined as this rank.
std::string holder_of(c10d::Store& store, const std::string& rank) {
  if (!store.check({"member/" + rank})) return "another process";
  const auto bytes = store.get("member/" + rank);
  const Member member = member_of_bytes({bytes.begin(), bytes.end()});
  return "process " + member.process + " on host " + member.host;
}

/// All ranks' members, by rank.
Result<std::vector<Member>> meet(c10d::Store& store, const RankSetting& setting, const Member& mine,
                                 const ProcessGroupOptions& options) {
  const std::string own = std::to_string(setting.rank);
  if (store.add("taken/" + own, 1) > 1)
    return Error{"rank " + own + " of " + std::to_string(setting.size) + " is taken by " + holder_of(store, own) +
                 "; expected a RANK that no other process has"};
  CARNOT_ASSIGN_OR_RETURN(const auto texts, written_by_all(store, setting, "member", bytes_of_member(mine), options));
  std::vector<Member> members;
  for (const std::string& text : texts) members.push_back(member_of_bytes(text));
  return members;
}

std::string name_of(int rank, const Member& member) {
  return "rank " + std::to_string(rank) + " on host " + member.host + " (process " + member.process + ")";
}

/// A rank that can be reached from its own machine only, in a group that has others.
Status check_addresses(const std::vector<Member>& members, const RankSetting& setting) {
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    if (is_loopback(members[rank].address) != is_loopback(members[0].address)) {
      const std::size_t local = is_loopback(members[0].address) ? 0 : rank;
      return Error{name_of(static_cast<int>(local), members[local]) + " is at " + members[local].address +
                   ", where other machines cannot reach it; expected a MASTER_ADDR (it is " + setting.address +
                   " here) that is the same address on all machines"};
    }
  return Done{};
}

/// c10d warns of a lost connection with a stack trace, on every rank. What it means is said once, in a sentence.
void silence_library() {
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

bool is_of_ipv4(const std::string& address) { return address.find(':') == std::string::npos; }

/// Where all interfaces of IPv4 are listened at. c10d listens at those of IPv6, which take connections of IPv4 as well,
/// but with peers' addresses that no hosts file has: and it asks for the name of each that connects, one after the
/// other, of a name server that may not answer for seconds.
Result<Descriptor> listen_at(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_ANY);
  if (!socket.is_open() || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return Error{"cannot listen at port " + std::to_string(port) + ": " + std::strerror(errno)};
  return socket;
}

/// `own_address`: of the rank that serves the store; none of one that does not.
Result<c10::intrusive_ptr<c10d::TCPStore>> open_store(const RankSetting& setting,
                                                      const std::optional<std::string>& own_address, double seconds) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(setting.port);
  options.isServer = own_address.has_value();
  options.waitWorkers = false;
  options.timeout = in_milliseconds(seconds);
  Descriptor socket;
  if (own_address && is_of_ipv4(*own_address)) {
    CARNOT_ASSIGN_OR_RETURN(auto listening, listen_at(setting.port));
    socket = std::move(listening);
    options.masterListenFd = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);  // the store's own, which it closes
  }
  return c10::make_intrusive<c10d::TCPStore>(setting.address, options);
}

StorePointer with_prefix(const std::string& prefix, StorePointer store) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, std::move(store));
}

using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

/// Connects this rank with all others. Done only when all are: a rank that has its connections may end at once, and
/// one that is still at it would take that for a fault of the network's.
Result<BackendPointer> connect(const StorePointer& store, const RankSetting& setting,
                               const std::vector<std::string>& names, const std::string& address,
                               const ProcessGroupOptions& options) {
  auto backend = make_backend(store, {.address = address,
                                      .rank = setting.rank,
                                      .size = setting.size,
                                      .connect_within = in_milliseconds(options.join_seconds)});
  if (backend) (*backend)->setTimeout(kNoLimit);
  CARNOT_ASSIGN_OR_RETURN(const auto problems, written_by_all(*store, setting, "connected",
                                                              backend ? "" : backend.error().message, options));
  for (int rank = 0; rank < setting.size; ++rank)
    if (!problems[rank].empty()) return Error{names[rank] + " could not connect: " + problems[rank]};
  return backend;
}

/// On each machine the lowest rank but rank 0, whose store it is that is lost.
bool tells_of_lost_store(const std::vector<Member>& members, int rank) {
  for (int lower = 1; lower < rank; ++lower)
    if (members[lower].host == members[rank].host) return false;
  return true;
}

Error could_not_meet(const RankSetting& setting, const std::string& why) {
  return {"rank " + std::to_string(setting.rank) + " of " + std::to_string(setting.size) +
          " could not meet the others at " + setting.address + ":" + std::to_string(setting.port) + ": " + why};
}

}  // namespace

Result<MetRanks> meet_ranks(const RankSetting& setting, const ProcessGroupOptions& options) {
  silence_library();
  const std::string place = setting.address + ":" + std::to_string(setting.port);
  CARNOT_ASSIGN_OR_RETURN(const auto address, address_towards(setting.address, setting.port));
  try {
    const std::string prefix = "carnot/" + setting.group_name;
    const bool serves = setting.rank == 0 && !setting.launcher_has_store;
    auto opened = open_store(setting, serves ? std::optional(address) : std::nullopt, options.join_seconds);
    if (!opened) return could_not_meet(setting, opened.error().message);
    const StorePointer store = with_prefix(prefix, *opened);
    const Member mine{.host = host_name(), .process = std::to_string(getpid()), .address = address};
    CARNOT_ASSIGN_OR_RETURN(const auto members, meet(*store, setting, mine, options));
    CARNOT_RETURN_IF_ERROR(check_addresses(members, setting));
    std::vector<std::string> names;
    for (int rank = 0; rank < setting.size; ++rank) names.push_back(name_of(rank, members[rank]));

    auto backend = connect(store, setting, names, address, options);
    if (!backend) return backend.error();
    auto watched = open_store(setting, std::nullopt, options.join_seconds);
    if (!watched) return could_not_meet(setting, watched.error().message);
    auto watch = std::make_unique<GroupWatch>(
        with_prefix(prefix + "/watch", *watched),
        GroupWatchOptions{.rank = setting.rank,
                          .names = names,
                          .store_name = setting.launcher_has_store ? "the launcher's store at " + place
                                                                   : names[0] + ", which serves the store at " + place,
                          .tells_of_store = tells_of_lost_store(members, setting.rank),
                          .beat = in_milliseconds(options.beat_seconds),
                          .lost_after = in_milliseconds(options.lost_after_seconds)});
    return MetRanks{
        .names = std::move(names), .store = store, .backend = *std::move(backend), .watch = std::move(watch)};
  } catch (const std::exception& error) {
    return could_not_meet(setting, first_line(error.what()));
  }
}

}  // namespace carnot
