// Wall clock time since construction.
#pragma once
#include <chrono>
#include <vector>
#include "base/types.hpp"

namespace gs {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// ---- Which thread worked on which front, and when, if the calling thread requests it

struct FrontSpan {
  idx rank, front;    // rank of the thread in its team, number of the supernode
  double begin, end;  // since the factorization began [s]
};

// Destination of records for factorizations that this thread calls; null: none.
inline thread_local std::vector<FrontSpan>* recorded_fronts = nullptr;

}  // namespace gs
