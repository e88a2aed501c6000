#include "base/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::atomic<int> limit{0};
thread_local bool inside_team = false;

constexpr int kSpins = 20000;  // about 0.3 ms

// Returns when word != value; sleeps after a while.
int wait_while(const std::atomic<int>& word, int value) {
  int now = word.load(std::memory_order_acquire);
  for (int spin = 0; now == value && spin < kSpins; spin++) {
    relax();
    now = word.load(std::memory_order_acquire);
  }
  for (; now == value; now = word.load(std::memory_order_acquire)) word.wait(value, std::memory_order_acquire);
  return now;
}

// Workers sleep on `epoch`. A job is published by writing its fields, then its seats, then raising the epoch; a worker
// that gets a seat is the member with the seat's number. No seat is left when the next job is published, and whoever
// had one has finished. Idle workers spin for a moment first: refactor and solve of a simulator follow each other
// within microseconds, and waking a sleeping thread costs tens of them.
struct Pool {
  std::mutex busy;
  std::vector<std::thread> workers;
  std::atomic<int> epoch{0};
  std::atomic<int> seats{0};
  std::atomic<int> finished{0};
  void (*body)(void*, const Team&) = nullptr;
  void* context = nullptr;
  int size = 1;
  Barrier* barrier = nullptr;

  void work(int seen) {
    inside_team = true;
    for (;;) {
      seen = wait_while(epoch, seen);
      int seat = seats.load(std::memory_order_relaxed);
      while (seat > 0 && !seats.compare_exchange_weak(seat, seat - 1, std::memory_order_acq_rel)) {
      }
      if (seat <= 0) continue;
      body(context, Team{seat, size, barrier});
      finished.fetch_add(1, std::memory_order_release);
      finished.notify_one();
    }
  }

  void run(int team_size, void (*f)(void*, const Team&), void* c, bool all) {
    while ((int)workers.size() < team_size - 1) {
      const int seen = epoch.load();  // jobs published before are not for this worker
      workers.emplace_back([this, seen] { work(seen); });
      workers.back().detach();
    }
    Barrier b(team_size);
    body = f, context = c, size = team_size, barrier = &b;
    finished.store(0, std::memory_order_relaxed);
    seats.store(team_size - 1, std::memory_order_release);
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
    inside_team = true;
    f(c, Team{0, team_size, &b});
    inside_team = false;
    const int started = team_size - 1 - (all ? 0 : seats.exchange(0, std::memory_order_acq_rel));
    for (int done = finished.load(std::memory_order_acquire); done != started;) done = wait_while(finished, done);
  }
};

// Never destroyed: workers may outlive static destructors. A forked child starts with a pool of its own.
Pool* pool = nullptr;
std::once_flag pool_once;

Pool& the_pool() {
  std::call_once(pool_once, [] {
    pool = new Pool;
    pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
  });
  return *pool;
}

}  // namespace

int num_threads() {
  const int n = limit.load(std::memory_order_relaxed);
  if (n >= 1) return n;
  static const int fallback = default_threads();
  return fallback;
}

void set_num_threads(int n) { limit.store(n, std::memory_order_relaxed); }

void Barrier::wait() {
  const int phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  wait_while(phase_, phase);
}

void detail::run_team(int want, void (*body)(void*, const Team&), void* context, bool all) {
  const int size = std::min(want, num_threads());
  if (size > 1 && !inside_team) {
    Pool& p = the_pool();
    std::unique_lock<std::mutex> lock(p.busy, std::try_to_lock);
    if (lock.owns_lock()) return p.run(size, body, context, all);
  }
  body(context, Team{});
}

}  // namespace gs
