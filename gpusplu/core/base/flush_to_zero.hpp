// Results that are too small for a normal number as zeros: processors take some hundred cycles for each of the others.
#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gs {

// Of this thread, while it lives; elsewhere than on x86-64 nothing.
class FlushToZero {
 public:
#if defined(__x86_64__)
  explicit FlushToZero(bool wanted) : before_(_mm_getcsr()) {
    if (wanted) _mm_setcsr((before_ & ~_MM_EXCEPT_UNDERFLOW) | _MM_FLUSH_ZERO_ON);
  }
  ~FlushToZero() { _mm_setcsr(before_ | (_mm_getcsr() & _MM_EXCEPT_MASK)); }
  bool flushed() const { return _mm_getcsr() & _MM_EXCEPT_UNDERFLOW; }  // where it was wanted

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
