// The inverse block of one front in parallel loops: from that of the rows below its pivots, and its factor.
//
// With the front's factor L11 U11 (rows of A11 interchanged), L21, U12 and the block Z22 of the inverse of the whole
// matrix,
//   Z21 = -Z22 X,  Z12 = -Y Z22,  Z11 = (L11 U11)^-1 - Z12 X,  with X = L21 L11^-1 and Y = U11^-1 U12
// (Lin, Yang, Meza, Lu, Ying and E, SelInv: an algorithm for selected inversion of a sparse symmetric matrix, ACM TOMS
// 37 (2011), for L D L^T; here also for L U). Of L L^H and L D L^H, Z is Hermitian and Y not needed: Z12 is Z21^H, and
// (L11 D L11^H)^-1 the first term. Wide fronts go by blocks of columns, last first: Z22 is then all that has been found
// so far.
//
// The leader calls. The result depends on the sizes only, not on the number of threads.
#pragma once
#include "base/loops.hpp"
#include "base/types.hpp"

namespace gs {

enum class FrontKind { lu, cholesky, ldlt };

// A factored front as simd/dense_kernels.hpp and numeric/ldlt_front.hpp lay it out.
template <class T> struct FactoredFront {
  FrontKind kind;
  idx W, H;
  const T* L;             // R x W
  const T* Ut;            // H x W, of LU
  const idx* pivots;      // of LU: interchanges; of LDL^T: the order of the columns
  const T *d, *e;         // D of LDL^T
  bool hermitian = true;  // of LDL^T
};

// Entries of `scratch` for a front of R rows and so many threads.
off inverse_scratch(idx R, int threads = 1);

// Z is R x R, with Z22 in it. On return it is the inverse at the front's rows and columns, those of A11 as they were
// before anything was interchanged.
template <class T> void inverse_front(Loops& loops, const FactoredFront<T>& front, T* Z, T* scratch);

}  // namespace gs
