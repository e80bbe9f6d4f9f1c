#include "carnot/core/subprocess/line_splitter.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace carnot {
namespace {

/// Who writes without end does not keep the reader from everything else.
constexpr int kMostBuffers = 16;

}  // namespace

bool LineSplitter::read(int descriptor, const OnLine& on_line) {
  std::array<char, 1 << 16> bytes;
  for (int buffers = 0; buffers < kMostBuffers;) {
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count <= 0) {
      if (!line_.empty()) end_line(on_line);
      return false;
    }
    add({bytes.data(), static_cast<std::size_t>(count)}, on_line);
    if (static_cast<std::size_t>(count) < bytes.size()) return true;
    ++buffers;
  }
  return true;
}

void LineSplitter::add(std::string_view bytes, const OnLine& on_line) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    if (!dropping_) line_.append(bytes.substr(0, std::min(end, longest_ - line_.size())));
    if (line_.size() == longest_) {
      end_line(on_line);
      dropping_ = true;
    }
    if (end == bytes.size()) return;
    bytes.remove_prefix(end + 1);
    if (!dropping_) end_line(on_line);
    dropping_ = false;
  }
}

void LineSplitter::end_line(const OnLine& on_line) {
  on_line(line_, line_.size() < longest_);
  line_.clear();
}

}  // namespace carnot
