// Arguments of the kernels of fronts of phases 0 to 2.
#pragma once
#include "common/device.cuh"
#include "shared/fronts.hpp"
#include "shared/values.hpp"

constexpr int RECORD_VECTORS = sizeof(Front) / sizeof(int4);  // a record is loaded so
static_assert(sizeof(Front) % sizeof(int4) == 0 && sizeof(Item) == sizeof(int4));

// LDL^T: an entry of an inverse to its place and to the opposite one, if it is of the lower triangle; an inverse stored
// so is symmetric to the last bit, so that its inertia is defined.
DEVICE void store_mirrored(Scalar* to, long long ld, int row, int column, Scalar v) {
  if (row < column) return;
  if (row == column) {
    store_l2(to + row + row * ld, KIND == 2 ? Scalar(real(v)) : v);
    return;
  }
  store_l2(to + row + column * ld, v);
  store_l2(to + column + row * ld, mirrored(v));
}

struct FactorArgs {
  const Front* fronts;
  const int* start;  // fronts without children in this phase
  int count;
  const int* owner_ptr;
  const Item* items;
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
