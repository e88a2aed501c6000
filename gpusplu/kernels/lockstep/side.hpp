// The arithmetic of fronts in lockstep is written once, for a device and for a processor; only the type of the values
// that one thread processes differs. A file of either side includes its own definitions first:
//
//   Entries<V>      entries of an array, V each, as this thread sees them: [i] is entry i, + k begins k entries later.
//                   On a device V is a scalar, of the lane, and entries are WARP_SIZE scalars apart; on a processor V
//                   is a vector, or two of them for complex numbers.
//   V               has +, -, * and +=, V{} is zero; conj(a); mul_sub(a, b, c): c - a b.
//   TILE_ROWS<V>, TILE_COLUMNS<V>   of a tile that is kept in registers: 1, 2 or 4.
//   a team          rank, size, sync(): the members that process a front, each with all lanes.
//   a watch         records for each system:
//                   entry(V)        an entry of the scaled matrix
//                   multiplier(V)   an entry of L below the diagonal
//                   upper(V)        an entry of U
//                   pivot(V, int position, bool last)      the reciprocal of a pivot of LU, replaced where it is too
//                                   small; last: the front has no rows but its own
//                   root(V, int position)                  the reciprocal of the root of a pivot of Cholesky, or of
//                                   anything above zero where it is not positive
#pragma once
#include "shared/lockstep.hpp"

#ifdef GS_SIMD  // a processor, once for every instruction set
#define LOCKSTEP GS_INLINE
#define LOCKSTEP_MEMBER
#define LOCKSTEP_BEGIN namespace gs::GS_SIMD {
#define LOCKSTEP_END }
#define LOCKSTEP_UNROLL _Pragma("GCC unroll 8")
#else
#define LOCKSTEP DEVICE
#define LOCKSTEP_MEMBER __device__
#define LOCKSTEP_BEGIN
#define LOCKSTEP_END
#define LOCKSTEP_UNROLL _Pragma("unroll")
#endif

LOCKSTEP_BEGIN

// A front of W pivots and H rows below them. Where its parts lie: core/plan/lockstep/plan.hpp.
template <class V> struct LockstepParts {
  int W, H, R;
  Entries<V> lower, upper, block;
};

// A team of one.
struct Single {
  static constexpr int rank = 0, size = 1;
  LOCKSTEP_MEMBER void sync() const {}
};

template <int n> struct Count { static constexpr int value = n; };

// Calls work(Count<n>()) with n = count, from 1 to `most`.
template <int most, class Work> LOCKSTEP void with_count(int count, Work&& work) {
  if constexpr (most > 1) {
    if (count < most) return with_count<most - 1>(count, work);
  }
  work(Count<most>());
}

template <bool conjugate, class V> LOCKSTEP V conj_where(V v) {
  if constexpr (conjugate) return conj(v);
  else return v;
}

LOCKSTEP_END
