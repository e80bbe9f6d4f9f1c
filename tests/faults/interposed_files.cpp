// faults/interposed_files.cpp -- the functions of the C library that open, write, name and remove files.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "interposed_calls.h"

using namespace interposed;  // NOLINT: what this library shares

namespace {

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

mode_t mode_of(int flags, va_list list) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

}  // namespace

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
