#include "base/threads.hpp"

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "base/blas_threads.hpp"
#include "base/job_kind.hpp"
#include "base/processors.hpp"

namespace gs {
namespace {

int default_threads() {
  if (const char* s = std::getenv("GPUSPLU_NUM_THREADS")) {
    int n = 0;
    const char* end = s + std::strlen(s);
    const auto [stop, error] = std::from_chars(s, end, n);
    if (stop == end && error == std::errc() && n >= 1) return n;
    throw std::invalid_argument("GPUSPLU_NUM_THREADS must be a whole number from 1 on, such as 4, got '" +
                                std::string(s) + "'");
  }
  return usable_processors();
}

std::atomic<int> limit{0};
// In the static TLS block of the thread: dynamic TLS is allocated at the first use, and if that fails glibc ends the
// process.
__attribute__((tls_model("initial-exec"))) thread_local bool inside_team = false, apart = false;

std::atomic<int> n_apart{0};  // threads in work_apart

// How many of n threads this thread may use: each side has half of them, otherwise barriers wait for suspended threads.
int fair_share(int n) {
  if (apart) return n / 2;
  return n_apart.load(std::memory_order_relaxed) > 0 ? n - n / 2 : n;
}

// Returns when word != value; sleeps after a while.
int wait_while(const std::atomic<int>& word, int value, WaitRecord& waits) {
  int now;
  wait_until([&] { return (now = word.load(std::memory_order_acquire)) != value; },
             [&](std::int64_t) { word.wait(value, std::memory_order_acquire); }, waits);
  return now;
}

// The caller publishes a job by writing its fields, then offering a seat to each worker that it wants; a worker that
// takes its seat is the member with the worker's number as rank. So a rank has the same thread in each job, whose
// caches may hold its data. When the caller has finished, it takes back the seats that are left, and waits for the
// workers that had one. Idle workers spin for a moment before they sleep: refactor and solve of a simulator follow each
// other within microseconds, and waking a sleeping thread takes tens of them.
struct Pool {
  static constexpr int kMostThreads = 512;
  struct Seat {
    alignas(64) std::atomic<int> offered{0};
  };

  std::mutex busy;
  int n_workers = 0;
  std::atomic<int> handshake{0};  // set by a starting worker: 1, or -1 if it cannot run
  std::atomic<int> finished{0};
  void (*body)(void*, const Team&) = nullptr;
  void* context = nullptr;
  int size = 1;
  WaitRecord* waits = nullptr;
  Operation* operation = nullptr;
  Seat seats[kMostThreads] = {};  // by rank

  void work(int rank) {
    inside_team = true;
    register_own_thread(true);
    WaitRecord idle;
    for (;;) {
      wait_while(seats[rank].offered, 0, idle);
      if (seats[rank].offered.exchange(0, std::memory_order_acq_rel) == 0) continue;
      wake_two_after(rank);
      const Helping helping(operation);
      body(context, Team{rank, size, waits});
      finished.fetch_add(1, std::memory_order_release);
      finished.notify_one();
    }
  }

  // Each member wakes two: to wake a thread takes some 3 us, so 16 would take the caller as long as a short job.
  void wake_two_after(int rank) {
    for (int r = 2 * rank + 1; r <= std::min(2 * rank + 2, size - 1); r++) seats[r].offered.notify_one();
  }

  // A worker counts once its resources are allocated.
  bool start_worker() {
    handshake.store(0, std::memory_order_relaxed);
    try {
      std::thread([this, rank = n_workers + 1] {
        const bool ready = can_throw();
        handshake.store(ready ? 1 : -1, std::memory_order_release);
        handshake.notify_one();
        if (ready) work(rank);
      }).detach();
    } catch (const std::system_error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
    WaitRecord start;
    return wait_while(handshake, 0, start) > 0;
  }

  // Returns the number of threads that the job had.
  int run(int want, void (*f)(void*, const Team&), void* c, WaitRecord& of_job) {
    while (n_workers < std::min(want, kMostThreads) - 1 && start_worker()) n_workers++;
    const int team_size = std::min(want, n_workers + 1);
    body = f, context = c, size = team_size, waits = &of_job;
    operation = detail::progress_point.operation;
    finished.store(0, std::memory_order_relaxed);
    for (int rank = 1; rank < team_size; rank++) seats[rank].offered.store(1, std::memory_order_release);
    wake_two_after(0);
    inside_team = true;
    f(c, Team{0, team_size, &of_job});
    int started = 0;
    for (int rank = 1; rank < team_size; rank++)
      started += seats[rank].offered.exchange(0, std::memory_order_acq_rel) == 0;
    for (int done = finished.load(std::memory_order_acquire); done != started;)
      done = wait_while(finished, done, of_job);
    inside_team = false;
    return team_size;
  }

  // The same for a job of some kind, with the number of threads that is currently fastest.
  void run(int want, void (*f)(void*, const Team&), void* c, JobKind& kind, double work) {
    // From here on, because pinning BLAS workers takes up to 30 us per processor.
    const std::int64_t begin = wall_clock(), blas_before = time_of_blas();
    ThreadChoice& choice = kind.of_size(work, apart);
    want = choice.choose(want, begin, processors_are_taken);
    PinnedBlas for_this;
    PinnedBlas& blas = detail::progress_point.caller ? detail::progress_point.operation->blas() : for_this;
    const bool may_pin = want > 1 && blas.left() == 0 && 2 * want > fair_share(num_threads());
    const bool known = kind.blas.is_known(begin), with_blas = may_pin && kind.blas.interferes();
    if (with_blas) blas.begin();
    if (blas.left() > 0) want = std::min(want, blas.left());
    WaitRecord of_job;
    if (work > 0) of_job.time_of_job = std::int64_t(1e9 * work);
    if (want == 1) f(c, Team{});
    else run(want, f, c, of_job);
    for_this.end();
    const std::int64_t end = wall_clock(), elapsed = end - begin;
    if (may_pin && !known && of_job.long_wait.load(std::memory_order_relaxed) && elapsed >= kWorthLooking) {
      find_blas_threads();
      if (time_of_blas() - blas_before > std::min(elapsed / 4, kWorthLooking)) return kind.blas.found_interference();
    }
    choice.record(work, elapsed, end, processors_are_taken);
  }

  static constexpr std::int64_t kWorthLooking = 3'000'000;  // of a job with waits: check for interference [ns]
};

// One pool for callers and one for threads in work_apart. Constant-initialized and never destroyed: workers may outlive
// static destructors. A forked child starts with its own pools.
constinit Pool pools[2];

[[maybe_unused]] const int registered_threads = pthread_atfork(nullptr, nullptr, [] {
  for (Pool& pool : pools) new (&pool) Pool;
  n_apart = 0;
  forget_threads();
});

}  // namespace

int num_threads() {
  const int n = limit.load(std::memory_order_relaxed);
  if (n >= 1) return n;
  static std::atomic<int> fallback{0};  // not a constant of this function: a fork may find the lock of its guard held
  int found = fallback.load(std::memory_order_relaxed);
  if (found == 0) fallback.store(found = default_threads(), std::memory_order_relaxed);
  return found;
}

void work_apart(bool begin) {
  apart = begin;
  register_own_thread(begin);
  n_apart.fetch_add(begin ? 1 : -1, std::memory_order_relaxed);
}

void set_num_threads(int n) { limit.store(n, std::memory_order_relaxed); }

bool can_throw() {
  void* volatile probe = std::malloc(4096);
  std::free(probe);
  if (!probe) return false;
  [[maybe_unused]] const volatile int touched = std::uncaught_exceptions();
  return true;
}

void detail::run_helpers(int want, void (*body)(void*, const Team&), void* context, JobKind* kind, double work) {
  const int size = std::min(want, fair_share(num_threads()));
  if (size > 1 && !inside_team) {
    Pool& pool = pools[apart];
    std::unique_lock<std::mutex> lock(pool.busy, std::try_to_lock);
    if (lock.owns_lock() && kind) return pool.run(size, body, context, *kind, work);
    WaitRecord waits;
    if (lock.owns_lock()) return (void)pool.run(size, body, context, waits);
  }
  body(context, Team{});
}

}  // namespace gs
