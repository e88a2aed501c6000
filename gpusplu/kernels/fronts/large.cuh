// Large fronts: the data of a front for the tasks of fronts/large_fronts.cu, and where its tiles lie.
//
// A front's rows (and columns) are cut into tiles at 0, NB, .., W, W + NB, .., R: `pivot_tiles` of pivots, then those
// of the contribution block. Storage: core/plan/fronts/plan.hpp.
#pragma once
#include "fronts/front.cuh"

#ifndef LARGE_SHARED_KB
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 100 == 9 || __CUDA_ARCH__ / 100 == 10
#define LARGE_SHARED_KB 227
#elif __CUDA_ARCH__ >= 800
#define LARGE_SHARED_KB 99
#else
#define LARGE_SHARED_KB 64
#endif
#endif

constexpr LargeShape shape = large_shape((int)sizeof(Scalar), LARGE_SHARED_KB);
constexpr int NB = shape.tile, THREADS = shape.threads, WARPS = THREADS / 32, DEPTH = shape.depth,
              STRIDE = shape.stride;

using LocalRow = unsigned short;

struct LargeArgs {
  const Front* fronts;
  const LargeFront* large;
  const LargeTask* tasks;
  int task_count;
  const int* chunk_ptr;  // of every tile of every large front; chunks in order of children
  const LargeChunk* chunks;
  const LocalRow* place;  // as Front::below: local row in the parent's front
  const int* entry_source;
  const unsigned* entry_place;
  const double* entry_scale;  // null: ones
  const Scalar* values;
  Scalar* factor;
  Scalar* blocks;
  const unsigned* arrivals;  // of small children, by front, in all launches; null: all are done before this launch
  unsigned* counters;        // zeroed once: LARGE_CONTROL words, then progress
  Status* status;
  double tiny;      // pivots below are replaced [scaled A]
  double singular;  // pivots below are counted in n_tiny too [scaled A]
};

// Two neighbours in a column.
struct __align__(sizeof(Scalar) < 8 ? 8 : 16) Pair {
  Scalar x, y;
};
DEVICE void store_pair(Scalar* to, Pair v) { store_record((Pair*)to, v); }
// Copies a pair of which the first `count` entries exist; the others become zero.
DEVICE void copy_pair(Scalar* to, const Scalar* from, int count) {
  constexpr int bytes = (int)sizeof(Scalar);
  if constexpr (bytes == 4) {
    copy_async<8>(to, from, count * bytes);
  } else if constexpr (bytes == 8) {
    copy_async<16>(to, from, count * bytes);
  } else {
    copy_async<16>(to, from, count > 0 ? bytes : 0);
    copy_async<16>(to + 1, count > 1 ? from + 1 : from, count > 1 ? bytes : 0);
  }
}

// A tall panel of `width` columns in two parts: rows of the pivots, and rows below.
struct TallPanel {
  Scalar *pivots, *below;
  DEVICE Scalar* tile(int t, int pivot_tiles) const {
    return t < pivot_tiles ? pivots + t * NB : below + (t - pivot_tiles) * NB;
  }
};

struct FrontTiles {
  int width, height;  // pivots, rows below
  long long width_ld, height_ld;
  int pivot_tiles, tiles;
  TallPanel lower, upper;
  Scalar* inverse;
  Scalar* block;

  DEVICE FrontTiles(const Front& f, Scalar* factor, Scalar* blocks) : width(f.width), height(f.rows - f.width) {
    width_ld = large_ld(width);
    height_ld = large_ld(height);
    pivot_tiles = (width + NB - 1) / NB;
    tiles = pivot_tiles + (height + NB - 1) / NB;
    lower.pivots = factor + f.factor;
    lower.below = lower.pivots + width_ld * width;
    upper = lower;
    inverse = lower.below + height_ld * width;
    if constexpr (!CHOLESKY) {  // LDL^T has U = D^-1 L^H too, as LU stores it: solves are those of LU
      upper.pivots = inverse;
      upper.below = upper.pivots + width_ld * width;
      inverse = upper.below + height_ld * width;
    }
    block = blocks + f.block;
  }
  DEVICE int first_row(int t) const { return t < pivot_tiles ? t * NB : width + (t - pivot_tiles) * NB; }
  DEVICE int size(int t) const { return min(NB, t < pivot_tiles ? width - t * NB : height - (t - pivot_tiles) * NB); }
  DEVICE long long ld(int t) const { return t < pivot_tiles ? width_ld : height_ld; }
};
