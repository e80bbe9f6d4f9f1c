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
#include "interposed_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace interposed {

Orders orders;

long number_of(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? atol(text) : 0;
}

namespace {

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

}  // namespace

Path path_of(int descriptor) {
  Path path;
  if (orders.folder_length == 0) return path;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path.text, sizeof path.text - 1);
  path.text[length > 0 ? length : 0] = '\0';
  return path;
}

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

namespace {

void write_trace(const char* bytes, size_t length) {
  while (length > 0) {
    const long written = syscall(SYS_write, orders.trace, bytes, length);
    if (written <= 0) return;
    bytes += written;
    length -= static_cast<size_t>(written);
  }
}

}  // namespace

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

namespace {

long calls = 0;  // guarded by a Turn

}  // namespace

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

}  // namespace interposed
