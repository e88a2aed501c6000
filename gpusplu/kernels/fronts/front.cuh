// What the plan lays out in device memory. The Python side has the same structs as structured dtypes
// (cuda/layout.py).
#pragma once
#include "common/device.cuh"
#include "common/status.cuh"

constexpr int PANEL = 16;  // columns of a panel in fronts that a warp or a block factors

// A front of R = rows and W = width: its first W rows and columns are pivots, the H = R - W others its contribution
// block.
struct Front {
  int width, rows;
  int first;        // plan position of the first pivot
  int parent;       // -1: root
  int climb;        // the parent if it is of the same phase, -2 - parent if of a later one before phase 3, else -1
  int pending;      // children of the same phase
  int entry_count;  // entries of A that are assembled here
  int children;
  int owner_begin;  // into owner_ptr: assembly items of each group of 8 lanes
  int partial_begin,
      partial_count;      // columns behind the front that take partial sums of crowded columns, and their homes
  int level;              // inside the phase
  long long entry_begin;  // into entry_source, entry_place, entry_scale
  long long factor;       // into the factor arena [scalars]
  long long block;        // into the arena of contribution blocks [scalars]
  long long block_base;   // what the items' offsets count from
  long long below;        // into the rows below the pivots and into the vector arena
  long long row_begin;    // into gather_ptr
};

struct FactorArgs {
  const Front* fronts;
  const int* start;  // fronts without children in this phase
  int count;
  int walk;  // continue with a parent whose children are done
  const int* owner_ptr;
  const int4* items;
  const int* partial;
  const int* entry_source;
  const unsigned* entry_place;
  const double* entry_scale;  // null: ones
  const Scalar* values;
  Scalar* factor;
  Scalar* blocks;
  unsigned* counters;  // one a front, zero between launches
  unsigned* arrivals;  // the same, of children of earlier phases
  Status* status;
  double tiny;      // pivots below are replaced [scaled A]
  double singular;  // pivots below are counted in n_tiny too [scaled A]
};
