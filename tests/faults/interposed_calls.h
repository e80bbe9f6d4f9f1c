// faults/interposed_calls.h -- what the interposed functions share: orders, paths, the trace, and each call's fate.
//
// Nothing here may allocate or call what it replaces: calls are found by dlsym, and text is assembled on the stack.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace interposed {

constexpr size_t kMostPath = 4096;

enum class Kind { None, Kill, KillMidway, ShortWrite, Error, DiskFull };

struct Orders {
  char folder[kMostPath] = "";
  size_t folder_length = 0;
  int trace = -1;
  long call = 0;
  Kind kind = Kind::None;
  int error = EIO;
  long thread = 0;
  long allocation = 0;
  size_t large = SIZE_MAX;
};

/// As the environment says.
extern Orders orders;

/// 0 where the variable is not set.
long number_of(const char* name);

template <class Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define REAL(name) static const auto real_##name = real(&name, #name)

/// A path as the trace shows it.
struct Path {
  char text[kMostPath] = "";

  bool tracked() const {
    return orders.folder_length > 0 && strncmp(text, orders.folder, orders.folder_length) == 0 &&
           (text[orders.folder_length] == '/' || text[orders.folder_length] == '\0');
  }
};

Path path_of(int descriptor);
/// Without links and "..", as the tests name their files.
Path path_of(int folder, const char* name);

/// 0 where there is none.
uint64_t inode_of(const char* path);
uint64_t inode_of(int descriptor);

struct Record {
  const char* call;
  long result = 0;
  uint64_t inode = 0;
  long offset = 0;
  const Path* path = nullptr;
  const Path* second = nullptr;
  const void* data = nullptr;
  size_t length = 0;
};

/// Appends it to the trace.
void trace(const Record& record);

[[noreturn]] void die();

/// Holds the trace's order for as long as one call takes.
class Turn {
 public:
  Turn() { pthread_mutex_lock(&one_at_a_time_); }
  ~Turn() {
    const int kept = errno;
    pthread_mutex_unlock(&one_at_a_time_);
    errno = kept;
  }

 private:
  static inline pthread_mutex_t one_at_a_time_ = PTHREAD_MUTEX_INITIALIZER;
};

/// What happens to the current call: a negative error, a shortened length, or nothing.
enum class Fate { Goes, Fails, Cut, CutAndDies };

/// REQUIRES: a Turn. `grows`: the call takes space on the disk. `writes`: it can be cut.
Fate fate(bool grows, bool writes);

/// Makes the call unless it is to fail; a result below 0 is a failure.
template <class Call>
long guarded(Record record, bool grows, Call call) {
  const Turn turn;
  if (fate(grows, false) == Fate::Fails) {
    errno = orders.error;
    record.result = -1;
  } else {
    record.result = call(record);
  }
  const int kept = errno;
  trace(record);
  errno = kept;
  return record.result;
}

}  // namespace interposed
