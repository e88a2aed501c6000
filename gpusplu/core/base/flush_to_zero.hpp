// Flushes subnormal results to zero: processors take some hundred cycles for each subnormal number.
#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gs {

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
