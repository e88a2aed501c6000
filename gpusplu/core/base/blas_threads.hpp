// OpenBLAS threads that spin while a team of gpusplu runs.
//
// NumPy and SciPy bring an OpenBLAS each. After a product its workers spin for some 30 ms, waiting for the next one,
// before they sleep (driver/others/blas_server.c of OpenBLAS: THREAD_TIMEOUT), each on its own processor. A system that
// shares processors fairly leaves half of each to a team, and the team's members wait for each other at every barrier:
// on 16 processors the team is slower than one thread, and six times as slow as without the spinning workers. So after
// such interference with a job, gpusplu pins all workers to one processor while the next job of that kind runs on the
// others.
#pragma once
#include <cstdint>

namespace gs {

// CPU time of the first worker of each OpenBLAS [ns]: grows while the workers compute or spin. 0 if no workers were
// found.
std::int64_t time_of_blas() noexcept;
// Searches for workers if there are enough processors, unless they are known or a search ran within the last `between`
// nanoseconds.
void find_blas_threads(std::int64_t between = 1'000'000'000) noexcept;
// Fewest processors for pinning: with fewer, one thread is as fast as the threads on the processors that remain.
extern int least_processors_with_blas;

// Registers (or, with false, unregisters) the calling thread as one that only gpusplu uses: it never runs BLAS
// products.
void register_own_thread(bool begin) noexcept;
// Called in a forked child, which has one thread.
void forget_threads() noexcept;

// Pins the workers to one processor from begin() to end(), which restores the processors that they had before.
class PinnedBlas {
 public:
  PinnedBlas() = default;
  PinnedBlas(const PinnedBlas&) = delete;
  PinnedBlas& operator=(const PinnedBlas&) = delete;
  ~PinnedBlas() { end(); }

  // Does nothing while another thread of this process runs, since that may be waiting for a product, or if so few
  // processors remain that one thread is as fast.
  void begin() noexcept;
  void end() noexcept {
    if (left_ > 0) release();
  }
  int left() const { return left_; }  // processors without the workers; 0 if they are not pinned

 private:
  void release() noexcept;
  int left_ = 0;
};

}  // namespace gs
