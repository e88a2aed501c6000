// Which thread was at which front, and when: kept of factorizations whose calling thread asks for it, at no cost to
// others but a test of a pointer for each front.
#pragma once
#include <vector>

#include "base/types.hpp"

namespace gs {

struct FrontSpan {
  idx rank, front;    // of the thread in its team, of the supernode
  double begin, end;  // since the factorization began [s]
};

// Where factorizations that this thread calls leave them; null: nowhere.
inline thread_local std::vector<FrontSpan>* recorded_fronts = nullptr;

}  // namespace gs
