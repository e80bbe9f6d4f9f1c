// faults/interposed_calls.cpp -- a library to preload that counts a program's system calls on one folder, records them,
// and makes the N-th fail or kills the program there. It can also make threads and allocations fail.
//
// Environment variables control it (faults/fault.h sets them):
//   CARNOT_FAULT_FOLDER          calls on this folder and below count; an absolute path without links
//   CARNOT_FAULT_TRACE           the file to append the calls to (faults/trace.h reads it)
//   CARNOT_FAULT_CALL            N: the call at which something happens, from 1
//   CARNOT_FAULT_KIND            kill, kill_midway, short_write, error, disk_full
//   CARNOT_FAULT_ERRNO           what `error` and `disk_full` set
//   CARNOT_FAULT_THREAD          from the N-th pthread_create on each fails
//   CARNOT_FAULT_ALLOCATION      from the N-th large allocation of main() on each fails
//   CARNOT_FAULT_LARGE           what counts as large, in bytes
//   CARNOT_FAULT_ADDRESS_SPACE   the limit RLIMIT_AS, set when main() begins
//
// Nothing here may allocate or call what it replaces: calls are found by dlsym, and text is assembled on the stack.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

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

Orders orders;
pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
long calls = 0;  // guarded by one_at_a_time
std::atomic<long> threads{0}, allocations{0};
bool main_runs = false;

long number_of(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? atol(text) : 0;
}

Kind kind_of(const char* name) {
  if (name == nullptr) return Kind::None;
  if (strcmp(name, "kill") == 0) return Kind::Kill;
  if (strcmp(name, "kill_midway") == 0) return Kind::KillMidway;
  if (strcmp(name, "short_write") == 0) return Kind::ShortWrite;
  if (strcmp(name, "error") == 0) return Kind::Error;
  return strcmp(name, "disk_full") == 0 ? Kind::DiskFull : Kind::None;
}

/// A descriptor number that neither a closed standard stream nor the program would use.
int high_descriptor(const char* path) {
  const long opened = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (opened < 0) return -1;
  const long high = syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, 900);
  syscall(SYS_close, opened);
  return static_cast<int>(high);
}

__attribute__((constructor)) void read_orders() {
  if (const char* folder = getenv("CARNOT_FAULT_FOLDER"); folder != nullptr && strlen(folder) < kMostPath) {
    strcpy(orders.folder, folder);
    orders.folder_length = strlen(folder);
  }
  if (const char* trace = getenv("CARNOT_FAULT_TRACE"); trace != nullptr) orders.trace = high_descriptor(trace);
  orders.call = number_of("CARNOT_FAULT_CALL");
  orders.kind = kind_of(getenv("CARNOT_FAULT_KIND"));
  if (const long error = number_of("CARNOT_FAULT_ERRNO"); error > 0) orders.error = static_cast<int>(error);
  orders.thread = number_of("CARNOT_FAULT_THREAD");
  orders.allocation = number_of("CARNOT_FAULT_ALLOCATION");
  if (const long large = number_of("CARNOT_FAULT_LARGE"); large > 0) orders.large = static_cast<size_t>(large);
}

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

Path path_of(int descriptor) {
  Path path;
  if (orders.folder_length == 0) return path;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path.text, sizeof path.text - 1);
  path.text[length > 0 ? length : 0] = '\0';
  return path;
}

/// Without links and "..", as the tests name their files.
Path path_of(int folder, const char* name) {
  Path path;
  if (orders.folder_length == 0 || name == nullptr) return path;
  if (name[0] == '/') {
    snprintf(path.text, sizeof path.text, "%s", name);
  } else {
    Path above;
    if (folder != AT_FDCWD) {
      above = path_of(folder);
    } else if (syscall(SYS_getcwd, above.text, sizeof above.text) < 0) {
      return path;
    }
    snprintf(path.text, sizeof path.text, "%.2000s/%.2000s", above.text, name);
  }
  for (size_t end = strlen(path.text); end > 1 && path.text[end - 1] == '/'; --end) path.text[end - 1] = '\0';
  return path;
}

uint64_t inode_of(const char* path) {
  struct stat info{};
  return syscall(SYS_newfstatat, AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_ino : 0;
}
uint64_t inode_of(int descriptor) {
  struct stat info{};
  return syscall(SYS_newfstatat, descriptor, "", &info, AT_EMPTY_PATH) == 0 ? info.st_ino : 0;
}

void write_trace(const char* bytes, size_t length) {
  while (length > 0) {
    const long written = syscall(SYS_write, orders.trace, bytes, length);
    if (written <= 0) return;
    bytes += written;
    length -= static_cast<size_t>(written);
  }
}

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

void trace(const Record& record) {
  if (orders.trace < 0) return;
  char head[3 * kMostPath];
  const int length =
      snprintf(head, sizeof head, "%s\t%ld\t%llu\t%ld\t%zu\t%s\t%s\n", record.call, record.result,
               static_cast<unsigned long long>(record.inode), record.offset, record.length,
               record.path != nullptr ? record.path->text : "", record.second != nullptr ? record.second->text : "");
  write_trace(head, static_cast<size_t>(length));
  write_trace(static_cast<const char*>(record.data), record.length);
  if (record.length > 0) write_trace("\n", 1);
}

[[noreturn]] void die() {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  for (;;) pause();
}

/// Holds the trace's order for as long as one call takes.
class Turn {
 public:
  Turn() { pthread_mutex_lock(&one_at_a_time); }
  ~Turn() {
    const int kept = errno;
    pthread_mutex_unlock(&one_at_a_time);
    errno = kept;
  }
};

/// What happens to the current call: a negative error, a shortened length, or nothing.
enum class Fate { Goes, Fails, Cut, CutAndDies };

/// REQUIRES: a Turn. `grows`: the call takes space on the disk. `writes`: it can be cut.
Fate fate(bool grows, bool writes) {
  ++calls;
  if (orders.kind == Kind::DiskFull && calls >= orders.call && orders.call > 0 && grows) return Fate::Fails;
  if (calls != orders.call) return Fate::Goes;
  if (orders.kind == Kind::Kill) die();
  if (orders.kind == Kind::KillMidway) {
    if (!writes) die();
    return Fate::CutAndDies;
  }
  if (orders.kind == Kind::ShortWrite) return writes ? Fate::Cut : Fate::Goes;
  return orders.kind == Kind::Error ? Fate::Fails : Fate::Goes;
}

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

long open_traced(const Path& path, int flags, const auto& open) {
  if (!path.tracked()) return open();
  const bool makes = (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const bool writes = makes || (flags & O_ACCMODE) != O_RDONLY;
  return guarded({.call = writes ? "open" : "look", .path = &path}, makes, [&](Record& record) {
    const bool is_there = inode_of(path.text) != 0 && (flags & O_TMPFILE) != O_TMPFILE;
    const long descriptor = open();
    if (descriptor >= 0) record.inode = inode_of(static_cast<int>(descriptor));
    // The offset records what the opening did: 1 made the file, 2 emptied it, 3 made one without a name.
    if (writes && descriptor >= 0)
      record.offset = (flags & O_TMPFILE) == O_TMPFILE ? 3 : !is_there ? 1 : (flags & O_TRUNC) != 0 ? 2 : 0;
    return descriptor;
  });
}

/// REQUIRES: a Turn. Traces what `write` wrote of `data` and where.
long write_traced(int descriptor, const Path& path, const char* data, size_t length, long at, const auto& write) {
  const Turn turn;
  Record record{.call = "write", .inode = inode_of(descriptor), .path = &path};
  const Fate what = fate(true, length > 1);
  if (what == Fate::Fails) {
    errno = orders.error;
    record.result = -1;
  } else {
    record.result = write(what == Fate::Goes ? length : length / 2);
  }
  const int kept = errno;
  if (record.result > 0) {
    record.offset = at >= 0 ? at : syscall(SYS_lseek, descriptor, 0, SEEK_CUR) - record.result;
    record.data = data;
    record.length = static_cast<size_t>(record.result);
  }
  trace(record);
  if (what == Fate::CutAndDies) die();
  errno = kept;
  return record.result;
}

long remove_traced(const Path& path, bool folder, const auto& remove) {
  if (!path.tracked()) return remove();
  return guarded({.call = folder ? "rmdir" : "unlink", .path = &path}, false, [&](Record& record) {
    record.inode = inode_of(path.text);
    return remove();
  });
}

long name_traced(const char* call, const Path& from, const Path& to, const auto& name) {
  if (!from.tracked() && !to.tracked()) return name();
  return guarded({.call = call, .path = &from, .second = &to}, false, [&](Record& record) {
    const long result = name();
    record.inode = inode_of(to.text);
    return result;
  });
}

long make_folder_traced(const Path& path, const auto& make) {
  if (!path.tracked()) return make();
  return guarded({.call = "mkdir", .path = &path}, true, [&](Record& record) {
    const long result = make();
    record.inode = inode_of(path.text);
    return result;
  });
}

long on_descriptor(const char* call, int descriptor, const auto& act) {
  const Path path = path_of(descriptor);
  if (!path.tracked()) return act();
  return guarded({.call = call, .inode = inode_of(descriptor), .path = &path}, false, [&](Record&) { return act(); });
}

bool too_large(size_t bytes) {
  return main_runs && orders.allocation > 0 && bytes >= orders.large && ++allocations >= orders.allocation;
}

mode_t mode_of(int flags, va_list list) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

}  // namespace

// Before main(), a lack of memory concerns the loader and the libraries.
namespace {

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

int observed_main(int count, char** words, char** environment) {
  if (const long bytes = number_of("CARNOT_FAULT_ADDRESS_SPACE"); bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
    setrlimit(RLIMIT_AS, &limit);
  }
  main_runs = true;
  return program_main(count, words, environment);
}

}  // namespace

EXPORT int __libc_start_main(Main main, int count, char** words, void (*begin)(), void (*end)(), void (*unload)(),
                             void* stack_end) {
  REAL(__libc_start_main);
  program_main = main;
  return real___libc_start_main(observed_main, count, words, begin, end, unload, stack_end);
}

// Opening. Each variant with and without 64 is a separate function in the C library.
using Open = int (*)(const char*, int, ...);
using OpenAt = int (*)(int, const char*, int, ...);

#define DEFINE_OPEN(name)                                                                                          \
  EXPORT int name(const char* path, int flags, ...) {                                                              \
    va_list list;                                                                                                  \
    va_start(list, flags);                                                                                         \
    const mode_t mode = mode_of(flags, list);                                                                      \
    va_end(list);                                                                                                  \
    static const auto next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, #name));                                      \
    return static_cast<int>(open_traced(path_of(AT_FDCWD, path), flags, [&] { return next(path, flags, mode); })); \
  }
#define DEFINE_OPENAT(name)                                                                          \
  EXPORT int name(int folder, const char* path, int flags, ...) {                                    \
    va_list list;                                                                                    \
    va_start(list, flags);                                                                           \
    const mode_t mode = mode_of(flags, list);                                                        \
    va_end(list);                                                                                    \
    static const auto next = reinterpret_cast<OpenAt>(dlsym(RTLD_NEXT, #name));                      \
    return static_cast<int>(                                                                         \
        open_traced(path_of(folder, path), flags, [&] { return next(folder, path, flags, mode); })); \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

namespace {

FILE* open_stream(const char* path, const char* mode, const auto& open) {
  const Path absolute = path_of(AT_FDCWD, path);
  const int flags = mode[0] == 'r' ? O_RDONLY : mode[0] == 'a' ? O_WRONLY | O_CREAT : O_WRONLY | O_CREAT | O_TRUNC;
  FILE* stream = nullptr;
  open_traced(absolute, flags, [&]() -> long {
    stream = open();
    return stream != nullptr ? fileno(stream) : -1;
  });
  return stream;
}

}  // namespace

EXPORT FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  return open_stream(path, mode, [&] { return real_fopen(path, mode); });
}
EXPORT FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  return open_stream(path, mode, [&] { return real_fopen64(path, mode); });
}

EXPORT ssize_t write(int descriptor, const void* data, size_t length) {
  REAL(write);
  const Path path = path_of(descriptor);
  if (!path.tracked()) return real_write(descriptor, data, length);
  return write_traced(descriptor, path, static_cast<const char*>(data), length, -1,
                      [&](size_t most) { return real_write(descriptor, data, most); });
}
EXPORT ssize_t pwrite(int descriptor, const void* data, size_t length, off_t offset) {
  REAL(pwrite);
  const Path path = path_of(descriptor);
  if (!path.tracked()) return real_pwrite(descriptor, data, length, offset);
  return write_traced(descriptor, path, static_cast<const char*>(data), length, offset,
                      [&](size_t most) { return real_pwrite(descriptor, data, most, offset); });
}
EXPORT ssize_t pwrite64(int descriptor, const void* data, size_t length, off_t offset) {
  return pwrite(descriptor, data, length, offset);
}
// As if only the first piece had been written, which a system may do at any time.
EXPORT ssize_t writev(int descriptor, const iovec* pieces, int count) {
  REAL(writev);
  if (!path_of(descriptor).tracked()) return real_writev(descriptor, pieces, count);
  const iovec* first = std::find_if(pieces, pieces + count, [](const iovec& piece) { return piece.iov_len > 0; });
  return first == pieces + count ? 0 : write(descriptor, first->iov_base, first->iov_len);
}
// A caller falls back to writing: copies in the kernel would leave no data in the trace.
EXPORT ssize_t sendfile(int out, int in, off_t* offset, size_t length) {
  REAL(sendfile);
  if (!path_of(out).tracked()) return real_sendfile(out, in, offset, length);
  errno = EINVAL;
  return -1;
}
EXPORT ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t length, unsigned flags) {
  REAL(copy_file_range);
  if (!path_of(out).tracked()) return real_copy_file_range(in, from, out, to, length, flags);
  errno = EINVAL;
  return -1;
}

EXPORT ssize_t read(int descriptor, void* data, size_t length) {
  REAL(read);
  return on_descriptor("read", descriptor, [&] { return real_read(descriptor, data, length); });
}
EXPORT int fsync(int descriptor) {
  REAL(fsync);
  return static_cast<int>(on_descriptor("fsync", descriptor, [&] { return real_fsync(descriptor); }));
}
EXPORT int fdatasync(int descriptor) {
  REAL(fdatasync);
  return static_cast<int>(on_descriptor("fsync", descriptor, [&] { return real_fdatasync(descriptor); }));
}
EXPORT int close(int descriptor) {
  REAL(close);
  const Path path = path_of(descriptor);
  if (!path.tracked()) return real_close(descriptor);
  // A close that reports an error has closed the descriptor nevertheless.
  const Turn turn;
  const bool fails = fate(false, false) == Fate::Fails;
  const int result = real_close(descriptor);
  trace({.call = "close", .result = fails ? -1 : result, .path = &path});
  if (!fails) return result;
  errno = orders.error;
  return -1;
}
EXPORT int ftruncate(int descriptor, off_t length) {
  REAL(ftruncate);
  const Path path = path_of(descriptor);
  if (!path.tracked()) return real_ftruncate(descriptor, length);
  return static_cast<int>(guarded({.call = "truncate", .inode = inode_of(descriptor), .offset = length, .path = &path},
                                  false, [&](Record&) { return real_ftruncate(descriptor, length); }));
}
EXPORT int ftruncate64(int descriptor, off64_t length) { return ftruncate(descriptor, length); }
EXPORT int truncate(const char* name, off_t length) {
  REAL(truncate);
  const Path path = path_of(AT_FDCWD, name);
  if (!path.tracked()) return real_truncate(name, length);
  return static_cast<int>(guarded({.call = "truncate", .inode = inode_of(name), .offset = length, .path = &path}, false,
                                  [&](Record&) { return real_truncate(name, length); }));
}

EXPORT int rename(const char* from, const char* to) {
  REAL(rename);
  return static_cast<int>(
      name_traced("rename", path_of(AT_FDCWD, from), path_of(AT_FDCWD, to), [&] { return real_rename(from, to); }));
}
EXPORT int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  REAL(renameat);
  return static_cast<int>(name_traced("rename", path_of(from_folder, from), path_of(to_folder, to),
                                      [&] { return real_renameat(from_folder, from, to_folder, to); }));
}
EXPORT int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  REAL(renameat2);
  const char* call = (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename";
  return static_cast<int>(name_traced(call, path_of(from_folder, from), path_of(to_folder, to),
                                      [&] { return real_renameat2(from_folder, from, to_folder, to, flags); }));
}
EXPORT int link(const char* from, const char* to) {
  REAL(link);
  return static_cast<int>(
      name_traced("link", path_of(AT_FDCWD, from), path_of(AT_FDCWD, to), [&] { return real_link(from, to); }));
}
EXPORT int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  REAL(linkat);
  return static_cast<int>(name_traced("link", path_of(from_folder, from), path_of(to_folder, to),
                                      [&] { return real_linkat(from_folder, from, to_folder, to, flags); }));
}
EXPORT int symlink(const char* target, const char* name) {
  REAL(symlink);
  const Path path = path_of(AT_FDCWD, name);
  if (!path.tracked()) return real_symlink(target, name);
  return static_cast<int>(guarded({.call = "symlink", .path = &path, .data = target, .length = strlen(target)}, true,
                                  [&](Record&) { return real_symlink(target, name); }));
}

EXPORT int unlink(const char* name) {
  REAL(unlink);
  return static_cast<int>(remove_traced(path_of(AT_FDCWD, name), false, [&] { return real_unlink(name); }));
}
EXPORT int unlinkat(int folder, const char* name, int flags) {
  REAL(unlinkat);
  return static_cast<int>(remove_traced(path_of(folder, name), (flags & AT_REMOVEDIR) != 0,
                                        [&] { return real_unlinkat(folder, name, flags); }));
}
EXPORT int rmdir(const char* name) {
  REAL(rmdir);
  return static_cast<int>(remove_traced(path_of(AT_FDCWD, name), true, [&] { return real_rmdir(name); }));
}
EXPORT int remove(const char* name) {
  struct stat info{};
  const bool folder = syscall(SYS_newfstatat, AT_FDCWD, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
  return folder ? rmdir(name) : unlink(name);
}
EXPORT int mkdir(const char* name, mode_t mode) {
  REAL(mkdir);
  return static_cast<int>(make_folder_traced(path_of(AT_FDCWD, name), [&] { return real_mkdir(name, mode); }));
}
EXPORT int mkdirat(int folder, const char* name, mode_t mode) {
  REAL(mkdirat);
  return static_cast<int>(make_folder_traced(path_of(folder, name), [&] { return real_mkdirat(folder, name, mode); }));
}

EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  REAL(pthread_create);
  if (orders.thread > 0 && ++threads >= orders.thread) return EAGAIN;
  return real_pthread_create(thread, attributes, start, argument);
}

EXPORT void* malloc(size_t bytes) {
  if (!too_large(bytes)) return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}
EXPORT void* calloc(size_t count, size_t bytes) {
  if (!too_large(count * bytes)) return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return nullptr;
}
EXPORT void* realloc(void* old, size_t bytes) {
  if (!too_large(bytes)) return __libc_realloc(old, bytes);
  errno = ENOMEM;
  return nullptr;
}
EXPORT void* memalign(size_t alignment, size_t bytes) {
  if (!too_large(bytes)) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return nullptr;
}
EXPORT void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
EXPORT int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  void* found = memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}
