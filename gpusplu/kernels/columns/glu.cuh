// Tasks of the glu engine (core/plan/columns/glu_schedule.hpp) and the code that all its kernels share for them.
//
// While levels are processed, L is not divided by its pivots: column j updates column k by L(i, j) (U(j, k) / U(j, j)),
// so that a level needs one step instead of two, and `finish_glu` divides in the end. Every read replaces pivots that
// are too small, and so does `finish_glu`.
#pragma once
#include "columns/columns.cuh"

struct GluArgs {
  const GluTask* tasks;
  const GluChunk* chunks;
  int begin, end;  // chunks of this launch
  const int* row;
  const unsigned short* map;  // null: positions have to be searched
  Scalar* factor;
  unsigned* ticket;  // batch: zero
  unsigned* done;    // batch: chunks of a level that are done; zero before its run
  double tiny;       // pivots below are replaced [scaled A]
};

struct GluPipeline {
  const GluChain* chains;
  const GluStep* steps;
  const GluUpdate* updates;
  const int* places;
  int begin;  // chain of the first block
  Scalar* factor;
  double tiny;  // pivots below are replaced [scaled A]
};

// Where entry e of L(:, j) lands. Without maps: rows of L(:, j) are rows of column k below row j, in the same order, so
// entry e is no earlier than e places after U(j, k), and as many places before the end as entries follow it.
DEVICE long long place_of(const GluArgs& args, const GluTask& task, int e) {
  const long long begin = task.upper - task.offset;
  if (args.map) return begin + __ldg(args.map + task.map + e);
  const int row = __ldg(args.row + task.pivot + 1 + e), last = (int)(task.map - begin) - (task.count - e);
  return begin + find_row(args.row + begin, row, task.offset + 1 + e, last);
}

DEVICE void add_atomically(float* to, float v) { atomicAdd(to, v); }
DEVICE void add_atomically(double* to, double v) { atomicAdd(to, v); }
template <class R> DEVICE void add_atomically(Complex<R>* to, Complex<R> v) {
  atomicAdd(&to->re, v.re), atomicAdd(&to->im, v.im);
}
