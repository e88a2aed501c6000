#include "base/blas_threads.hpp"

#ifdef __linux__
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/processors.hpp"
#include "base/waiting.hpp"

namespace gs {

int least_processors_with_blas = 4;

#ifdef __linux__

namespace {

using Processors = cpu_set_t;

pid_t this_thread() { return (pid_t)syscall(SYS_gettid); }

Processors only(int processor) {
  Processors set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return set;
}

bool processors_of(pid_t thread, Processors& set) { return sched_getaffinity(thread, sizeof set, &set) == 0; }

// Threads of this process at this moment.
std::vector<pid_t> threads() {
  std::vector<pid_t> found;
  DIR* const tasks = opendir("/proc/self/task");
  if (!tasks) return found;
  while (const dirent* entry = readdir(tasks))
    if (const int thread = std::atoi(entry->d_name)) found.push_back(thread);
  closedir(tasks);
  return found;
}

// Whether /proc shows the thread as running; false for one that has ended.
bool is_running(pid_t thread) {
  const std::string text = beginning_of("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::size_t name_ends = text.rfind(')');  // a thread's name may contain any character
  return !text.empty() && (name_ends == text.npos || text.compare(name_ends + 1, 2, " R") == 0);
}

// Exported functions of one OpenBLAS. All but the first are documented.
struct Library {
  const int* started;  // 0 without workers, for example after a fork
  int (*count)();      // workers plus the calling thread
  int (*get_processors)(int worker, std::size_t, Processors*);
  int (*set_processors)(int worker, std::size_t, Processors*);  // the last worker number stands for the calling thread
};

std::vector<std::string> paths_of_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        if (std::strstr(info->dlpi_name, "openblas"))
          static_cast<std::vector<std::string>*>(to)->push_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

// Functions are null for another library and for an OpenBLAS older than 2024, which does not export them.
Library open_library(const std::string& path) {
  Library library{};
  void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return library;
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::decay_t<decltype(to)>>(dlsym(handle, name));
  };
  find(library.started, "blas_server_avail");
  find(library.get_processors, "openblas_getaffinity");
  find(library.set_processors, "openblas_setaffinity");
  for (const char* name : {"scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
                           "openblas_get_num_threads64_", "openblas_get_num_threads"})
    if (!library.count) find(library.count, name);
  dlclose(handle);  // the library stays loaded because others hold it
  return library;
}

// Known workers, shared by all calls. Never destroyed: threads may outlive static destructors.
struct WorkerTable {
  struct Worker {
    pid_t thread;
    Processors processors;  // before they were pinned
  };
  std::mutex mutex;
  std::vector<Worker> workers;
  std::vector<pid_t> own_threads;
  int holders = 0, n_forking = 0, n_libraries = 0;
  std::int64_t looked = 0;  // time of the last search for workers [ns]
};

WorkerTable* worker_table = new WorkerTable;

constexpr int kMostFirst = 4;
std::atomic<pid_t> firsts[kMostFirst];  // the first worker of each library

// An OpenBLAS ends its workers before a fork; no thread may query their processors then. The handlers registered last
// run first, so this is called again when a new library is found.
void wait_at_forks() {
  pthread_atfork(
      [] {
        if (worker_table->n_forking++ == 0) worker_table->mutex.lock();
      },
      [] {
        if (--worker_table->n_forking == 0) worker_table->mutex.unlock();
      },
      nullptr);
}

// The next processor of the set after `after`, cyclically: another one if there is one.
int next_processor(const Processors& set, int after) {
  for (int k = 1; k <= CPU_SETSIZE; k++)
    if (const int processor = (after + k) % CPU_SETSIZE; CPU_ISSET(processor, &set)) return processor;
  return after;
}

// OpenBLAS numbers its workers but does not give their thread ids. The thread of a worker is the one with a processor
// mask that changes when the library is asked to change it.
pid_t thread_of(const Library& library, int worker, const std::vector<WorkerTable::Worker>& before) {
  Processors own, one = only(sched_getcpu()), now;
  if (library.get_processors(worker, sizeof own, &own) != 0) return 0;
  if (CPU_EQUAL(&own, &one)) one = only(next_processor(before.front().processors, sched_getcpu()));
  if (CPU_EQUAL(&own, &one) || library.set_processors(worker, sizeof one, &one) != 0) return 0;
  const auto it = std::find_if(before.begin(), before.end(), [&](const WorkerTable::Worker& w) {
    return !CPU_EQUAL(&w.processors, &one) && processors_of(w.thread, now) && CPU_EQUAL(&now, &one);
  });
  library.set_processors(worker, sizeof own, &own);
  return it != before.end() ? it->thread : 0;
}

void find_workers(WorkerTable& all, const std::vector<std::string>& paths) {
  if ((int)paths.size() > all.n_libraries) wait_at_forks(), all.n_libraries = (int)paths.size();
  std::vector<WorkerTable::Worker> present;  // the first thread of the process comes first
  for (const pid_t thread : threads())
    if (Processors set; processors_of(thread, set)) present.push_back({thread, set});
  int n_first = 0;
  for (auto& first : firsts) first = 0;
  all.workers.clear();
  if (present.empty()) return;
  for (const std::string& path : paths) {
    const Library library = open_library(path);
    const bool able = library.started && library.count && library.get_processors && library.set_processors;
    if (!able || !*library.started) continue;
    for (int worker = 0; worker + 1 < library.count(); worker++) {
      const pid_t thread = thread_of(library, worker, present);
      if (thread == 0) continue;
      if (n_first < kMostFirst && worker == 0) firsts[n_first++] = thread;
      all.workers.push_back({thread, {}});
    }
  }
}

bool is_worker(const WorkerTable& all, pid_t thread) {
  return std::any_of(all.workers.begin(), all.workers.end(), [&](const auto& w) { return w.thread == thread; });
}

bool others_are_running(const WorkerTable& all) {
  const pid_t self = this_thread();
  const std::vector<pid_t> present = threads();
  return present.empty() || std::any_of(present.begin(), present.end(), [&](pid_t thread) {
           return thread != self && !is_worker(all, thread) &&
                  std::find(all.own_threads.begin(), all.own_threads.end(), thread) == all.own_threads.end() &&
                  is_running(thread);
         });
}

}  // namespace

std::int64_t time_of_blas() noexcept {
  std::int64_t sum = 0;
  for (const auto& first : firsts) {
    const pid_t thread = first.load(std::memory_order_relaxed);
    if (thread == 0) break;
    timespec time{};
    const clockid_t clock = clockid_t(~thread) * 8 + 6;  // the thread's CPU clock, as in pthread_getcpuclockid
    if (clock_gettime(clock, &time) == 0) sum += std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  }
  return sum;
}

void find_blas_threads(std::int64_t between) noexcept {
  WorkerTable& all = *worker_table;
  std::lock_guard lock(all.mutex);
  const std::int64_t now = wall_clock();
  Processors allowed;
  if (all.holders > 0 || (all.looked != 0 && now - all.looked < between)) return;
  all.looked = now;
  if (!processors_of(0, allowed) || CPU_COUNT(&allowed) < least_processors_with_blas) return;
  try {
    const std::vector<std::string> paths = paths_of_libraries();
    const bool all_present = std::all_of(all.workers.begin(), all.workers.end(),
                                         [](const auto& w) { return syscall(SYS_tgkill, getpid(), w.thread, 0) == 0; });
    if (all.workers.empty() || !all_present || (int)paths.size() > all.n_libraries) find_workers(all, paths);
  } catch (const std::bad_alloc&) {
    all.workers.clear();
  }
}

void register_own_thread(bool begin) noexcept {
  WorkerTable& all = *worker_table;
  std::lock_guard lock(all.mutex);
  const pid_t self = this_thread();
  try {
    if (begin) all.own_threads.push_back(self);
    else std::erase(all.own_threads, self);
  } catch (const std::bad_alloc&) {  // the thread then counts as one that may be in a product
  }
}

void forget_threads() noexcept {
  worker_table = new WorkerTable;  // the old one is leaked: other threads may have been changing it at the fork
  for (auto& first : firsts) first = 0;
}

void PinnedBlas::begin() noexcept {
  WorkerTable& all = *worker_table;
  std::lock_guard lock(all.mutex);
  Processors allowed;
  if (left_ > 0 || !processors_of(0, allowed) || CPU_COUNT(&allowed) < least_processors_with_blas) return;
  try {
    if (all.holders == 0 && (all.workers.empty() || others_are_running(all))) return;
  } catch (const std::bad_alloc&) {
    return;
  }
  const Processors one = only(next_processor(allowed, sched_getcpu()));
  if (all.holders++ == 0)
    for (auto& [thread, processors] : all.workers)
      if (!processors_of(thread, processors) || sched_setaffinity(thread, sizeof one, &one) != 0) CPU_ZERO(&processors);
  left_ = CPU_COUNT(&allowed) - 1;
}

void PinnedBlas::release() noexcept {
  WorkerTable& all = *worker_table;
  std::lock_guard lock(all.mutex);
  left_ = 0;
  if (all.holders == 0 || --all.holders > 0) return;  // 0: begin() ran in the parent process
  int processor = sched_getcpu();
  for (const auto& [thread, processors] : all.workers) {
    if (CPU_COUNT(&processors) == 0) continue;
    // The system does not migrate them for milliseconds, and a product that starts now would wait for all of them.
    processor = next_processor(processors, processor);
    const Processors its_own = only(processor);
    sched_setaffinity(thread, sizeof its_own, &its_own);
    sched_setaffinity(thread, sizeof processors, &processors);
  }
}

#else  // other systems do not let a process pin the threads of a library

std::int64_t time_of_blas() noexcept { return 0; }
void find_blas_threads(std::int64_t) noexcept {}
void register_own_thread(bool) noexcept {}
void forget_threads() noexcept {}
void PinnedBlas::begin() noexcept {}
void PinnedBlas::release() noexcept {}

#endif

}  // namespace gs
