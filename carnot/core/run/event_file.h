// run/event_file.h -- TensorBoard's event file: TFRecord framing around hand-written protobuf, scalars only.
//
// A record is: length as u64, masked CRC-32C of those 8 bytes as u32, the data, masked CRC-32C of the data; all
// little-endian. The data is an Event {1: wall_time double, 2: step int64, 3: file_version, 5: Summary, 7: SessionLog};
// a Summary repeats Value {1: tag, 2: simple_value float}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace carnot {

/// CRC-32C (Castagnoli), RFC 3720 appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

/// TFRecord's mask: rotated right by 15, plus a constant, so that a CRC of bytes with CRCs inside stays good.
std::uint32_t masked_crc32c(std::string_view bytes);

/// `data` with its frame.
std::string tfrecord(std::string_view data);

/// The first record of every event file.
std::string version_event(double wall_time);

/// Tells TensorBoard to forget what earlier files say about this step and later ones.
std::string restart_event(double wall_time, std::int64_t step);

/// One point on the curve of every tag.
std::string scalars_event(double wall_time, std::int64_t step, const std::map<std::string, double>& scalars);

}  // namespace carnot
