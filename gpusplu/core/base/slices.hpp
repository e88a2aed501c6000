// Equal slices of a range for the members of a team.
#pragma once
#include <algorithm>

#include "base/threads.hpp"
#include "base/types.hpp"

namespace gs {

// Number of threads worth waking for `entries` matrix entries of a memory-bound pass, within the limit: below a few
// hundred microseconds of work a second thread costs more than it gains. Passes with random access take several times
// as long per entry.
inline int threads_for(off entries) { return (int)std::min<off>({num_threads(), 1 + entries / 200000, 64}); }

template <class Int> struct Slice { Int begin, end; };
template <class Int> Slice<Int> slice(Int n, const Team& team) {
  return {(Int)((off)n * team.rank / team.size), (Int)((off)n * (team.rank + 1) / team.size)};
}

}  // namespace gs
