// The inverse block of one front in parallel loops, from the inverse block of the rows below its pivots and its factor.
//
// With the front's factor L11 U11 (rows of A11 interchanged), L21, U12 and the block Z22 of the inverse of the whole
// matrix,
//   Z21 = -Z22 X,  Z12 = -Y Z22,  Z11 = (L11 U11)^-1 - Z12 X,  with X = L21 L11^-1 and Y = U11^-1 U12
// (Lin, Yang, Meza, Lu, Ying and E, SelInv: an algorithm for selected inversion of a sparse symmetric matrix, ACM TOMS
// 37 (2011), for L D L^T; here also for L U). For L L^H and L D L^H, Z is Hermitian and Y is not needed: Z12 is Z21^H,
// and the first term is (L11 D L11^H)^-1. Wide fronts are processed by blocks of columns, last first: Z22 is then
// everything computed so far.
//
// The leader calls. The result depends on the sizes only, not on the number of threads.
#pragma once
#include "base/loops.hpp"
#include "base/types.hpp"

namespace gs {

enum class FrontKind { lu, cholesky, ldlt };

// A factored front in the layout of simd/dense_kernels.hpp and numeric/ldlt_front.hpp.
template <class T> struct FactoredFront {
  FrontKind kind;
  idx W, H;
  const T* L;             // R x W
  const T* Ut;            // H x W, LU only
  const idx* pivots;      // LU: interchanges; LDL^T: the order of the columns
  const T *d, *e;         // LDL^T: D
  bool hermitian = true;  // LDL^T
};

// Entries of `scratch` for a front of R rows and this number of threads.
off inverse_scratch(idx R, int threads = 1);

// Z is R x R and contains Z22 on entry. On return it is the inverse at the front's rows and columns; those of A11 are
// in the order before interchanges.
template <class T> void inverse_front(Loops& loops, const FactoredFront<T>& front, T* Z, T* scratch);

}  // namespace gs
