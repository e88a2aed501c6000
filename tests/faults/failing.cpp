// To be preloaded: allocations of one library that fail when a countdown says so, threads that cannot be started, and
// threads that are late.
//
// Only calls are counted that come from inside the library watched, on threads that do not hold Python's lock: what
// Python allocates goes on as ever, and so does what the bindings need for a new object, where nanobind cannot fail.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <new>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

std::atomic<std::uintptr_t> low{1}, high{0};  // addresses of the library's code
std::atomic<long> seen{0}, first{-1}, last{-1};
std::atomic<int (*)()> holds_lock{nullptr};
std::atomic<long> threads_left{-1};      // -1: any number
std::atomic<unsigned> longest_delay{0};  // [us]
std::atomic<std::uint64_t> unlocks{0};

bool is_watched(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= low && address < high;
}

bool fails(const void* caller) {
  if (!is_watched(caller) || holds_lock.load()()) return false;
  const long number = seen.fetch_add(1);
  return first >= 0 && number >= first && number <= last;
}

int find_library(dl_phdr_info* info, std::size_t, void* name) {
  if (!std::strstr(info->dlpi_name, static_cast<const char*>(name))) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    low = info->dlpi_addr + segment.p_vaddr, high = low + segment.p_memsz;
  }
  return 1;
}

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  if (!fails(caller))
    if (void* p = __libc_memalign(alignment, size ? size : 1)) return p;
  throw std::bad_alloc();
}

}  // namespace

extern "C" {

// Counts the allocations of the library whose path contains `name`; those numbered from .. to fail, none if from < 0.
int failing_watch(const char* name, long from, long to) {
  first = -1, seen = 0, last = to, first = from;
  holds_lock = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return dl_iterate_phdr(find_library, const_cast<char*>(name));
}

// Ends the count, and returns it.
long failing_count() {
  low = 1, high = 0, first = -1;
  return seen;
}

void failing_threads(long left) { threads_left = left; }

// From now on threads other than the first one may sleep for up to so many microseconds where the library watched
// unlocks a mutex.
void failing_delays(unsigned longest) { longest_delay = longest; }

void* malloc(std::size_t size) {
  if (!fails(__builtin_return_address(0))) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

void* calloc(std::size_t count, std::size_t size) {
  if (!fails(__builtin_return_address(0))) return __libc_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}

void* realloc(void* p, std::size_t size) {
  if (!fails(__builtin_return_address(0))) return __libc_realloc(p, size);
  errno = ENOMEM;
  return nullptr;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (!fails(__builtin_return_address(0))) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}

int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
  *p = fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}

void* mmap(void* where, std::size_t size, int protection, int flags, int file, off_t offset) {
  if (fails(__builtin_return_address(0))) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, where, size, protection, flags, file, offset));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left >= 0 && threads_left.fetch_sub(1) <= 0) {
    threads_left = 0;
    return EAGAIN;
  }
  return create(thread, attributes, start, argument);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  using Unlock = int (*)(pthread_mutex_t*);
  static const auto unlock = reinterpret_cast<Unlock>(dlsym(RTLD_NEXT, "pthread_mutex_unlock"));
  const int error = unlock(mutex);
  if (longest_delay > 0 && gettid() != getpid() && is_watched(__builtin_return_address(0))) {
    const std::uint64_t random = (unlocks.fetch_add(1) + 1) * 0x9e3779b97f4a7c15ull >> 32;
    if (random % 4 == 0) usleep((unsigned)(random / 4 % longest_delay));
  }
  return error;
}
}

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t), __builtin_return_address(0)); }
void* operator new[](std::size_t size) {
  return allocate(size, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, (std::size_t)alignment, __builtin_return_address(0));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size ? size : 1);
}
