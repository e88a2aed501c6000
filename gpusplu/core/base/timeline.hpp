// Records which thread worked on which front, and when, for factorizations with a calling thread that requests it;
// other factorizations only test a pointer per front.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

struct FrontSpan {
  idx rank, front;    // rank of the thread in its team, number of the supernode
  double begin, end;  // since the factorization began [s]
};

// Destination of records for factorizations that this thread calls; null: none.
inline thread_local std::vector<FrontSpan>* recorded_fronts = nullptr;

}  // namespace gs
