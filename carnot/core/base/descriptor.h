// base/descriptor.h -- a file descriptor that is closed on every exit path.
#pragma once

#include <unistd.h>

#include <utility>

namespace carnot {

class Descriptor {
 public:
  /// Owns `fd`; a negative value means no file.
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { (void)close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// False if the system could not write everything; errno has the reason.
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

}  // namespace carnot
