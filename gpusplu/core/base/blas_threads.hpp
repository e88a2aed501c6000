// Threads of OpenBLAS that look for work where a team of ours wants to do some.
//
// NumPy and SciPy bring an OpenBLAS each. After a product its workers look for the next one for some 30 ms before they
// sleep (driver/others/blas_server.c of OpenBLAS: THREAD_TIMEOUT), every one on a processor of its own. A system that
// shares processors fairly leaves half of each to a team, whose members then wait for each other at every barrier: on
// 16 processors it is slower than one thread, and six times as slow as alone. So where a team was in their way, they
// look for work on one processor, all of them, while the next one of that kind works on the others.
#pragma once
#include <cstdint>

namespace gs {

// That the first worker of each OpenBLAS has had a processor [ns]: grows while they work or look for work. 0 where no
// workers have been found.
std::int64_t time_of_blas() noexcept;
// Look for them where there are processors enough, unless they are known or somebody has within so many nanoseconds.
void find_blas_threads(std::int64_t between = 1'000'000'000) noexcept;
// Processors that are enough: with fewer, one thread does as much as those beside the one that workers are kept to.
extern int least_processors_with_blas;

// This thread works for us alone from now on, or until the end: when it runs, it is in no product.
void register_own_thread(bool begin) noexcept;
// In a forked child, which has one thread.
void forget_threads() noexcept;

// Keeps them to one processor from begin() to end(). Processors that others have given them are restored.
class PinnedBlas {
 public:
  PinnedBlas() = default;
  PinnedBlas(const PinnedBlas&) = delete;
  PinnedBlas& operator=(const PinnedBlas&) = delete;
  ~PinnedBlas() { end(); }

  // Not where another thread of this process is running, which may be waiting for a product; nor where there are so few
  // processors that one thread does as much as those that are left.
  void begin() noexcept;
  void end() noexcept {
    if (left_ > 0) release();
  }
  int left() const { return left_; }  // processors without them; 0 while they are left alone

 private:
  void release() noexcept;
  int left_ = 0;
};

}  // namespace gs
