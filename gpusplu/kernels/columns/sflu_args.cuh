// Arguments of the kernels of sflu and crisscross.
#pragma once
#include "columns/column_groups.cuh"

struct LongArrays {
  const int* of_ticket;  // which long column a ticket is, or -1; null: there is none
  const LongColumn* parts;
  const int *target, *term_ptr;
  const LongTerm* term;
  const int *level, *rest, *shallow;
};

struct TrailingArrays {
  const long long* term_ptr;  // by rank, from the first of the trailing columns on
  const int *place, *position;
  const int *order, *huge;
  const long long *step_ptr, *batch_ptr, *need_ptr;
  const int *step, *batch, *need;
  int capacity;  // of shared memory [bytes]
  int kept;      // columns of more entries stay in global memory
};

struct SfluArgs {
  ColumnArrays columns;
  ColumnTickets tickets;
  LongArrays longs;
  TrailingArrays trailing;
  const int* source;    // canonical value of a place of L + U, or -1: fill
  const double* scale;  // of canonical values; null: ones
  const Scalar* values;
  Scalar* factor;
  unsigned* done;  // of a column: the launch that finished it
  // Columns from here on are updated only by those before (columns/trailing_columns.cuh), and left unfactored: the
  // dense trailing block of crisscross LU. Their `diag` is where rows from here on begin. n: there is none.
  int division;
  int capacity;        // scalars of shared memory; larger groups stay in global memory
  int flags;           // most columns of a group
  const int* follows;  // without maps: L(:, j) is L(:, j - 1) except for its first row
  int places;          // without maps: places that a warp can keep
  Status* status;
  double tiny;  // pivots below are replaced, and may mean a singular matrix [scaled A]
};

// minus the sum of the terms q, q + stride, .. before `end`, the places and positions of which load(q) has.
template <class Index, class Load>
DEVICE Scalar sum_terms(Index q, Index end, int stride, const Scalar* factor, const Scalar* column, Load&& load) {
  constexpr int TOGETHER = 4;
  Scalar sum(0);
  for (; q < end; q += stride * TOGETHER) {
    int2 term[TOGETHER];
    Scalar value[TOGETHER];
    for_all<TOGETHER>([&](int r) { term[r] = load(min(q + stride * r, end - 1)); });
    for_all<TOGETHER>([&](int r) { value[r] = factor[term[r].x]; });
    for_all<TOGETHER>([&](int r) {
      if (q + stride * r < end) sum = mul_sub(value[r], column[term[r].y], sum);
    });
  }
  return sum;
}

// By a block: adds the sum of the warps' sums in their order to an entry; `partial`: a scalar a warp.
DEVICE void add_block_sum(Scalar* entry, Scalar sum, Scalar* partial) {
  sum = warp_sum(sum);
  if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    Scalar total = *entry;
    for (int w = 0; w < COLUMN_WARPS; w++) total += partial[w];
    *entry = total;
  }
  __syncthreads();
}
