#include "power_cut.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <random>
#include <vector>

#include "carnot/core/base/check.h"

namespace carnot::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPage = 4096;

/// A write, or with `cut_to` a change of the length.
struct DataChange {
  std::size_t offset = 0;
  std::string data{};
  std::optional<std::size_t> cut_to{};
};

/// Names that appear (a thing's number) or disappear (empty), together or not at all.
using EntryChange = std::map<std::string, std::optional<std::size_t>>;

/// A file or a folder: what is certainly on the disk, and the changes since.
struct Thing {
  bool folder = false;
  std::string data{};
  std::vector<DataChange> new_data{};
  std::map<std::string, std::size_t> entries{};
  std::vector<EntryChange> new_entries{};
};

void apply(std::string& data, const DataChange& change) {
  if (change.cut_to) return data.resize(*change.cut_to);
  data.resize(std::max(data.size(), change.offset + change.data.size()));
  std::copy(change.data.begin(), change.data.end(), data.begin() + static_cast<std::ptrdiff_t>(change.offset));
}

void apply(std::map<std::string, std::size_t>& entries, const EntryChange& change) {
  for (const auto& [name, thing] : change) {
    if (thing) {
      entries[name] = *thing;
    } else {
      entries.erase(name);
    }
  }
}

class Disk {
 public:
  explicit Disk(const fs::path& root) : root_(root), things_{Thing{.folder = true}} {}

  void replay(const TracedCall& call) {
    if (call.result < 0) return;
    if (call.name == "open") return open(call);
    if (call.name == "write") return change(call, {.offset = at(call.offset), .data = call.data});
    if (call.name == "truncate") return change(call, {.cut_to = at(call.offset)});
    if (call.name == "fsync") return sync(call);
    if (call.name == "mkdir") return set(call.path, make(call.inode, true));
    if (call.name == "unlink" || call.name == "rmdir") return set(call.path, std::nullopt);
    if (call.name == "link") return set(call.second, numbers_.at(call.inode));
    if (call.name == "rename") return rename(call);
    CARNOT_CHECK(!changes_disk(call), call.name);
  }

  DiskContent content(const PowerCut& cut) const {
    DiskContent found;
    std::mt19937_64 coins(cut.seed);
    collect(found, "", things_[0], cut.unsynced, coins);
    return found;
  }

 private:
  static std::size_t at(long offset) { return static_cast<std::size_t>(offset); }

  std::size_t make(std::uint64_t inode, bool folder) {
    things_.push_back({.folder = folder});
    return numbers_[inode] = things_.size() - 1;  // a reused number is another thing
  }

  void open(const TracedCall& call) {
    const auto did = static_cast<Opened>(call.offset);
    if (did == Opened::Emptied) return change(call, {.cut_to = 0});
    if (did == Opened::Existing) return;
    const std::size_t made = make(call.inode, false);
    if (did == Opened::Made) set(call.path, made);
  }

  void change(const TracedCall& call, DataChange data) {
    things_[numbers_.at(call.inode)].new_data.push_back(std::move(data));
  }

  void sync(const TracedCall& call) {
    Thing& thing = call.path == root_ ? things_[0] : things_[numbers_.at(call.inode)];
    for (const DataChange& data : thing.new_data) apply(thing.data, data);
    for (const EntryChange& entry : thing.new_entries) apply(thing.entries, entry);
    thing.new_data.clear();
    thing.new_entries.clear();
  }

  void set(const fs::path& path, std::optional<std::size_t> thing) {
    folder_of(path).new_entries.push_back({{path.filename().string(), thing}});
  }

  void rename(const TracedCall& call) {
    const fs::path from = call.path, to = call.second;
    const std::size_t thing = find(from);
    if (from.parent_path() == to.parent_path()) {
      folder_of(to).new_entries.push_back({{from.filename().string(), {}}, {to.filename().string(), thing}});
    } else {
      set(from, {});
      set(to, thing);
    }
  }

  /// As a running program sees it: with everything that is not synced yet.
  std::size_t find(const fs::path& path) const {
    std::size_t number = 0;
    for (const fs::path& name : path.lexically_relative(root_)) {
      if (name == ".") continue;
      auto entries = things_[number].entries;
      for (const EntryChange& entry : things_[number].new_entries) apply(entries, entry);
      const auto found = entries.find(name.string());
      CARNOT_CHECK(found != entries.end(), path.string());
      number = found->second;
    }
    return number;
  }
  Thing& folder_of(const fs::path& path) { return things_[find(path.parent_path())]; }

  static std::string surviving_data(const Thing& thing, Unsynced unsynced, std::mt19937_64& coins) {
    std::string data = thing.data;
    if (unsynced != Unsynced::Mixed) return data;
    for (const DataChange& change : thing.new_data) {
      if (change.cut_to) {
        if (coins() % 2 == 0) apply(data, change);
        continue;
      }
      // The length may have been written without the bytes.
      if (coins() % 2 == 0) data.resize(std::max(data.size(), change.offset + change.data.size()));
      for (std::size_t done = 0; done < change.data.size();) {
        const std::size_t length = std::min(kPage - (change.offset + done) % kPage, change.data.size() - done);
        if (coins() % 2 == 0) apply(data, {.offset = change.offset + done, .data = change.data.substr(done, length)});
        done += length;
      }
    }
    return data;
  }

  void collect(DiskContent& found, const std::string& path, const Thing& thing, Unsynced unsynced,
               std::mt19937_64& coins) const {
    if (!thing.folder) {
      found[path] = surviving_data(thing, unsynced, coins);
      return;
    }
    auto entries = thing.entries;
    for (const EntryChange& entry : thing.new_entries)
      if (unsynced == Unsynced::NamesKept || (unsynced == Unsynced::Mixed && coins() % 2 == 0)) apply(entries, entry);
    if (!path.empty()) found[path + "/"] = "";
    for (const auto& [name, number] : entries)
      collect(found, path.empty() ? name : path + "/" + name, things_[number], unsynced, coins);
  }

  fs::path root_;
  std::vector<Thing> things_;
  std::map<std::uint64_t, std::size_t> numbers_{};
};

}  // namespace

DiskContent disk_after(std::span<const TracedCall> calls, const fs::path& folder, const PowerCut& cut) {
  Disk disk(folder);
  for (const TracedCall& call : calls.first(cut.calls)) disk.replay(call);
  return disk.content(cut);
}

void write_disk(const DiskContent& content, const fs::path& folder) {
  for (const auto& [name, data] : content) {
    if (name.ends_with('/')) {
      fs::create_directories(folder / name);
    } else {
      fs::create_directories((folder / name).parent_path());
      std::ofstream(folder / name, std::ios::binary) << data;
    }
  }
}

}  // namespace carnot::testing
