// Inverses of 16 x 16 blocks with row pivoting, each by one warp in registers.
//
// Gauss-Jordan exchange in place: after the pivots of all w columns the block [A11 A12; A21 A22] (A11 is w x w) has
// become [D, D A12; -A21 D, A22 - A21 D A12] with D = A11^-1 (block LU with inverted blocks: Demmel, Higham and
// Schreiber, Stability of block LU factorization, 1995). Lane (r, c) = (lane / 4, lane % 4) holds rows r and r + 8 of
// columns c, c + 4, c + 8 and c + 12: this takes the fewest shuffles (7 scalars a pivot), and shuffles bound it; it is
// also the layout of an accumulator of the tensor cores (fronts/panels.cuh).
//
// LU and LDL^T: pivots are chosen by rows among the w rows. Nothing is swapped: an exchange at (p, k) leaves row k of D
// in row p and the entries of equation p in column k, so the permutation is only where results are written (Places).
// The search is one maximum over the warp of the 26 leading bits of the modulus above the row; meanwhile every
// candidate inverts itself, so that neither waits for the other. Cholesky: pivots on the diagonal in natural order;
// those that are not positive are counted, and replaced like small ones. Cost: 16 w^2 multiply-adds; about w x 150
// cycles of latency.
#pragma once
#include "common/pivots.cuh"

struct PivotRules {
  Real largest_reciprocal;  // of pivots; those of smaller pivots are replaced by it, with the pivot's sign
  unsigned tiny_bits, singular_bits;
  Status* const& status;  // where the kernel has it: no register for a pointer that is hardly ever needed
  // Pivots below `tiny` are replaced, those below `singular` counted in n_tiny too.
  DEVICE PivotRules(double tiny_, double singular, Status* const& status_) : status(status_) {
    const Real tiny = (Real)fmax(tiny_, LEAST_NORMAL);
    largest_reciprocal = reciprocal(tiny), tiny_bits = magnitude_bits(tiny);
    singular_bits = magnitude_bits((Real)singular);
  }
};

// The code of a row of the block in the search: its lane, which half of the block, and that it can be chosen.
DEVICE unsigned row_code(int row) { return (row & 7) << 2 | row >> 3 << 1 | 1; }

// Where the results of a lane belong: its value (i, q) is that of row row[i], column column(q) of the block. Rows and
// columns below w are permuted among each other, the others stay.
struct Places {
  int row[2];
  unsigned codes;  // row codes of the columns, a byte each
  DEVICE int column(int q) const {
    const unsigned code = codes >> (8 * q);
    return (int)(code >> 2 & 7 | (code & 2) << 2);
  }
};

// Rows and columns from w on may hold any finite values; where they are not used, any values.
DEVICE Places gauss_jordan(Scalar (&a)[2][4], int w, const PivotRules& rules) {
  constexpr unsigned KEY_BITS = 0x7fffffe0u;  // of a modulus; below them the row code
  const int lane = threadIdx.x & 31, row = lane >> 2, column = lane & 3;
  int n_small = 0;  // replaced pivots, and 2^16 times those of them that are below `singular`
  Places places = {{row, row + 8}, 0};
  for_all<4>([&](int q) { places.codes |= row_code(column + 4 * q) << (8 * q); });
  Scalar scale[2] = {Scalar(1), Scalar(1)};  // of the pivot rows, applied at the end
  unsigned mask[2] = {row < w ? KEY_BITS : 0u, row + 8 < w ? KEY_BITS : 0u};
  unsigned tag[2] = {row < w ? row_code(row) : 0u, row + 8 < w ? row_code(row + 8) : 0u};
#pragma unroll 1
  for (int k = 0; k < w; k += 4) {  // four columns, then the registers rotate: the pivot column is always a[.][0]
    unsigned taken = places.codes & 255;
#pragma unroll
    for (int s = 0; s < 4; s++) {
      if (k + s >= w) break;
      Scalar c0 = shuffle(a[0][0], (lane & 28) | s), c1 = shuffle(a[1][0], (lane & 28) | s);
      Scalar candidate, r;
      unsigned pivot;  // its code
      if constexpr (CHOLESKY) {
        pivot = row_code(k + s);
        candidate = Scalar(real(k + s < 8 ? a[0][0] : a[1][0]));
        r = Scalar(reciprocal(real(candidate)));
      } else {
        const unsigned key0 = (leading_bits(a[0][0]) & mask[0]) | tag[0];
        const unsigned key1 = (leading_bits(a[1][0]) & mask[1]) | tag[1];
        pivot = warp_max(column == s ? max(key0, key1) : 0u);
        candidate = key1 > key0 ? a[1][0] : a[0][0];
        r = reciprocal(candidate);
      }
      const unsigned bits = magnitude_bits(candidate), from = pivot & 28;
      if constexpr (CHOLESKY) {
        const bool small = real(candidate) < (Real)LEAST_NORMAL;
        if (small) r = replaced_reciprocal(candidate, rules.largest_reciprocal);
        if (small && lane == (int)(from | s)) n_small += bits < rules.singular_bits ? 0x10001 : 1;
      } else if (pivot < rules.tiny_bits) {  // the same in all lanes, and rare
        r = replaced_reciprocal(candidate, rules.largest_reciprocal);
        if (lane == 0) n_small += pivot < rules.singular_bits ? 0x10001 : 1;
      }
      r = shuffle(r, from | s);
      const bool upper = (pivot & 2) == 0, mine = from == (unsigned)(lane & 28), mine0 = mine && upper,
                 mine1 = mine && !upper;
      Scalar u[4];
      for_all<4>([&](int q) { u[q] = shuffle(upper ? a[0][q] : a[1][q], from | column); });
      if (column == s) taken = pivot;
      if (mine0) c0 = Scalar(0), scale[0] = r, places.row[0] = k + s, mask[0] = tag[0] = 0;
      if (mine1) c1 = Scalar(0), scale[1] = r, places.row[1] = k + s, mask[1] = tag[1] = 0;
      const Scalar l0 = -c0 * r, l1 = -c1 * r;
      for_all<4>([&](int t) {
        // the next pivot column first
        const int q = (t + (s == 3)) & 3;
        a[0][q] = mul_add(l0, u[q], a[0][q]);
        a[1][q] = mul_add(l1, u[q], a[1][q]);
      });
      if (column == s) a[0][0] = mine0 ? Scalar(1) : l0, a[1][0] = mine1 ? Scalar(1) : l1;
    }
    for_all<2>([&](int i) {
      const Scalar first = a[i][0];
      a[i][0] = a[i][1], a[i][1] = a[i][2], a[i][2] = a[i][3], a[i][3] = first;
    });
    places.codes = places.codes >> 8 | taken << 24;
  }
  for_all<2>([&](int i) {
    const unsigned bits = magnitude_bits(scale[i]);
    if (bits == 0 || bits >= NAN_BITS) atomicAdd(&rules.status->not_finite, 1);  // the pivot was Inf or NaN
    for_all<4>([&](int q) { a[i][q] = a[i][q] * scale[i]; });
  });
  if (n_small) {
    atomicAdd(&rules.status->n_perturbed, n_small & 0xffff);
    if (n_small >> 16) atomicAdd(&rules.status->n_tiny, n_small >> 16);
  }
  return places;
}
