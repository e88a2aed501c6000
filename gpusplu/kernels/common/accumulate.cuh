// The accumulated status of deferred calls.
#pragma once
#include "common/device.cuh"
#include "shared/values.hpp"

// Positive doubles are ordered like their bits, and NaN is above all of them.
DEVICE double larger(double a, double b) { return __double_as_longlong(a) > __double_as_longlong(b) ? a : b; }

DEVICE void keep_largest(Status* to, const Status& by) {
  to->n_perturbed = max(to->n_perturbed, by.n_perturbed);
  to->n_tiny = max(to->n_tiny, by.n_tiny);
  to->not_finite = max(to->not_finite, by.not_finite);
  to->largest = larger(to->largest, by.largest);
  to->asymmetry = larger(to->asymmetry, by.asymmetry);
  to->growth = larger(to->growth, by.growth);
}

// Whether values differ by more than rounding from those that they must equal.
DEVICE bool is_asymmetric(double asymmetry, double largest) {
  constexpr double precision = sizeof(Real) == 4 ? 1.1920928955078125e-7 : 2.220446049250313e-16;
  return asymmetry > SYMMETRY_UNITS * precision * largest;
}

// By one thread: adds a status to the accumulated status, and clears it for the next call.
//
// The call has factored, solved, or both, with this backward error, negative where none was measured. If the status
// also holds a factorization that was not accumulated, because a caller meant to wait for it, that part is merged into
// the last one.
DEVICE void add_up(Status* status, AccumulatedStatus* accumulated, bool factored, bool solved, double error) {
  Status* last = &accumulated->last;
  if (factored) *last = Status{};
  keep_largest(last, *status);
  keep_largest(&accumulated->worst, *status);
  accumulated->n_factored += factored;
  if (status->not_finite && !accumulated->not_finite) accumulated->not_finite = accumulated->n_factored;
  if (is_asymmetric(status->asymmetry, status->largest) && !accumulated->asymmetric)
    accumulated->asymmetric = accumulated->n_factored;
  accumulated->n_solved += solved;
  accumulated->n_held += solved && !accumulated->n_factored;
  if (solved && !(error < 0)) {
    last->residual = status->residual;
    last->x_norm = status->x_norm;
    last->b_norm = status->b_norm;
    last->a_norm = status->a_norm;
    if (!(error <= accumulated->error)) accumulated->worst_solve = accumulated->n_solved;
    accumulated->error = larger(accumulated->error, error);
  }
  *status = Status{};
}
