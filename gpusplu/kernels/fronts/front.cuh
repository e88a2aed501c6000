// What the kernels of fronts of phases 0 to 2 are launched with.
#pragma once
#include "common/device.cuh"
#include "shared/fronts.hpp"
#include "shared/values.hpp"

constexpr int RECORD_PIECES = sizeof(Front) / sizeof(int4);  // a record is loaded so
static_assert(sizeof(Front) % sizeof(int4) == 0 && sizeof(Item) == sizeof(int4));

struct FactorArgs {
  const Front* fronts;
  const int* start;  // fronts without children in this phase
  int count;
  int walk;  // continue with a parent whose children are done
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
