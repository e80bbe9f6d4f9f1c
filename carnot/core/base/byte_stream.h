// base/byte_stream.h -- plain values as bytes and back, exactly, for messages between processes.
//
// Only for running processes of one program on machines of one kind, never for files. Numbers keep their bits,
// including NaNs and the sign of zero. Reads are checked: if the bytes end too early or announce more than they
// contain, the reader fails permanently and returns empty values.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace carnot {

template <class T>
concept PlainNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// A struct whose members are listed once, for both directions: visit_members(value, visit) calls visit(all of them).
template <class T>
concept ListedMembers = std::is_class_v<T> && requires(T& value) { visit_members(value, [](auto&...) {}); };

class ByteWriter {
 public:
  template <PlainNumber T>
  void add(T value) {
    append(&value, sizeof value);
  }
  void add(std::string_view text) {
    add_size(text.size());
    append(text.data(), text.size());
  }
  template <class T>
  void add(const std::vector<T>& items) {
    add_size(items.size());
    if constexpr (PlainNumber<T>)
      append(items.data(), items.size() * sizeof(T));
    else
      for (const T& item : items) add(item);
  }
  template <class T, std::size_t kSize>
  void add(const std::array<T, kSize>& items) {
    for (const T& item : items) add(item);
  }
  template <ListedMembers T>
  void add(const T& value) {
    visit_members(value, [this](const auto&... member) { (add(member), ...); });
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class Key, class T>
  void add(const std::map<Key, T>& items) {
    add_size(items.size());
    for (const auto& [key, value] : items) {
      add(key);
      add(value);
    }
  }

  std::string take() { return std::move(bytes_); }

 private:
  void add_size(std::size_t size) { add(static_cast<std::uint64_t>(size)); }
  void append(const void* data, std::size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }

  std::string bytes_{};
};

class ByteReader {
 public:
  /// `bytes` must outlive the reader.
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  /// True while no read has failed.
  bool ok() const { return !failed_; }
  /// True if no read has failed and no bytes are left.
  bool complete() const { return ok() && rest_.empty(); }
  /// Marks the input as bad, for values that are present but invalid.
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  void get(bool& value) {
    std::uint8_t byte = 0;
    get(byte);
    if (byte > 1) fail();
    value = ok() && byte == 1;
  }
  template <PlainNumber T>
  void get(T& value) {
    value = T{};
    if (rest_.size() < sizeof value) return fail();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    if constexpr (requires { last_of(value); })
      if (value > last_of(value)) fail();
  }
  void get(std::string& text) {
    text.assign(rest_.substr(0, get_size(1)));
    rest_.remove_prefix(text.size());
  }
  template <class T>
  void get(std::vector<T>& items) {
    items.clear();
    if constexpr (PlainNumber<T>) {
      items.resize(get_size(sizeof(T)));
      if (items.empty()) return;
      std::memcpy(items.data(), rest_.data(), items.size() * sizeof(T));
      rest_.remove_prefix(items.size() * sizeof(T));
    } else {
      for (std::size_t left = get_size(1); left > 0 && ok(); --left) get(items.emplace_back());
    }
  }
  template <class T, std::size_t kSize>
  void get(std::array<T, kSize>& items) {
    for (T& item : items) get(item);
  }
  template <ListedMembers T>
  void get(T& value) {
    visit_members(value, [this](auto&... member) { (get(member), ...); });
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (!there) return;
    T item{};
    get(item);
    value = std::move(item);
  }
  template <class Key, class T>
  void get(std::map<Key, T>& items) {
    items.clear();
    for (std::size_t left = get_size(1); left > 0 && ok(); --left) {
      Key key{};
      get(key);
      get(items[std::move(key)]);
    }
  }

  /// The number of elements that follow. Fails if the rest is too short for that many elements of at least `bytes_each`
  /// bytes, so that damaged bytes cannot cause a huge allocation.
  std::size_t get_size(std::size_t bytes_each) {
    std::uint64_t size = 0;
    get(size);
    if (size > rest_.size() / bytes_each) fail();
    return ok() ? static_cast<std::size_t>(size) : 0;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace carnot
