// faults/interposed_memory.cpp -- the functions of the C library that make threads and allocate memory.
#include <stdlib.h>
#include <sys/resource.h>

#include <atomic>

#include "interposed_calls.h"

using namespace interposed;  // NOLINT: what this library shares

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

// Before main(), a lack of memory concerns the loader and the libraries.
namespace {

std::atomic<long> threads{0}, allocations{0};
bool main_runs = false;

bool too_large(size_t bytes) {
  return main_runs && orders.allocation > 0 && bytes >= orders.large && ++allocations >= orders.allocation;
}

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
