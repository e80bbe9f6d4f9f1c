#include "carnot/core/run/event_file.h"

#include <array>
#include <bit>

namespace carnot {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

template <class Unsigned>
void append_little_endian(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

// Protobuf: a key is (field number << 3) | wire type.
enum class Wire : std::uint64_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void append_key(std::string& out, std::uint64_t number, Wire wire) {
  append_varint(out, (number << 3) | static_cast<std::uint64_t>(wire));
}

void append_bytes(std::string& out, std::uint64_t number, std::string_view bytes) {
  append_key(out, number, Wire::Bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

std::string event(double wall_time, std::int64_t step) {
  std::string out;
  append_key(out, 1, Wire::Fixed64);
  append_little_endian(out, std::bit_cast<std::uint64_t>(wall_time));
  append_key(out, 2, Wire::Varint);
  append_varint(out, static_cast<std::uint64_t>(step));
  return out;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t kMaskDelta = 0xa282ead8;
  return std::rotr(crc32c(bytes), 15) + kMaskDelta;
}

std::string tfrecord(std::string_view data) {
  std::string out;
  append_little_endian(out, static_cast<std::uint64_t>(data.size()));
  append_little_endian(out, masked_crc32c(out));
  out += data;
  append_little_endian(out, masked_crc32c(data));
  return out;
}

std::string version_event(double wall_time) {
  std::string data = event(wall_time, 0);
  append_bytes(data, 3, "brain.Event:2");
  return tfrecord(data);
}

std::string restart_event(double wall_time, std::int64_t step) {
  constexpr std::uint64_t kStart = 1;
  std::string session;
  append_key(session, 1, Wire::Varint);
  append_varint(session, kStart);
  std::string data = event(wall_time, step);
  append_bytes(data, 7, session);
  return tfrecord(data);
}

std::string scalars_event(double wall_time, std::int64_t step, const std::map<std::string, double>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string entry;
    append_bytes(entry, 1, tag);
    append_key(entry, 2, Wire::Fixed32);
    append_little_endian(entry, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    append_bytes(summary, 1, entry);
  }
  std::string data = event(wall_time, step);
  append_bytes(data, 5, summary);
  return tfrecord(data);
}

}  // namespace carnot
