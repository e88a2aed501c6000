// Whether numbers left the range of their type, from the processor's status flags of this thread, at no cost.
#pragma once
#include <atomic>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace gs {

// Counts from construction on. A flag may come from an operation with an unused result.
class RangeFlags {
 public:
#if defined(__x86_64__)  // <cfenv> has the old registers saved and loaded too, which takes longer than a small solve
                         // may
  RangeFlags() { _mm_setcsr(_mm_getcsr() & ~_MM_EXCEPT_MASK); }
  bool underflow() const { return _mm_getcsr() & _MM_EXCEPT_UNDERFLOW; }
  bool overflow() const { return _mm_getcsr() & (_MM_EXCEPT_OVERFLOW | _MM_EXCEPT_INVALID | _MM_EXCEPT_DIV_ZERO); }
  // Sets flags that another thread found for this one.
  static void set(bool overflow, bool underflow) {
    _mm_setcsr(_mm_getcsr() | (overflow ? _MM_EXCEPT_OVERFLOW : 0) | (underflow ? _MM_EXCEPT_UNDERFLOW : 0));
  }
#else
  RangeFlags() { std::feclearexcept(FE_ALL_EXCEPT); }
  bool underflow() const { return std::fetestexcept(FE_UNDERFLOW); }
  bool overflow() const { return std::fetestexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO); }
  static void set(bool overflow, bool underflow) {
    std::feraiseexcept((overflow ? FE_OVERFLOW : 0) | (underflow ? FE_UNDERFLOW : 0));
  }
#endif
};

// The flags of all threads of a job, for the thread that runs it.
class RangeFlagsOfTeam {
 public:
  // Runs body(); rank 0 is the thread that calls set() in the end.
  template <class Body> void run(int rank, Body&& body) {
    if (rank == 0) return body();
    const RangeFlags flags;
    body();
    if (flags.overflow()) overflow_.store(true, std::memory_order_relaxed);
    if (flags.underflow()) underflow_.store(true, std::memory_order_relaxed);
  }
  void set() const {
    RangeFlags::set(overflow_.load(std::memory_order_relaxed), underflow_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<bool> overflow_{false}, underflow_{false};
};

// Flushes subnormal results to zero: processors take some hundred cycles for each subnormal number.
// In the calling thread, for the lifetime of the object; no effect except on x86-64.
class FlushToZero {
 public:
#if defined(__x86_64__)
  explicit FlushToZero(bool wanted) : before_(_mm_getcsr()) {
    if (wanted) _mm_setcsr((before_ & ~_MM_EXCEPT_UNDERFLOW) | _MM_FLUSH_ZERO_ON);
  }
  ~FlushToZero() { _mm_setcsr(before_ | (_mm_getcsr() & _MM_EXCEPT_MASK)); }
  bool flushed() const { return _mm_getcsr() & _MM_EXCEPT_UNDERFLOW; }  // whether a result has underflowed

 private:
  unsigned before_;
#else
  explicit FlushToZero(bool) {}
  bool flushed() const { return false; }
#endif
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;
};

}  // namespace gs
