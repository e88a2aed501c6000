// Shared between the host and all engines' kernels of values, residuals and solves.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

// Status of a factorization and of a measured solve. The kernel that measures a solve moves it to the host and clears
// it; after a factorization without a solve the engine does.
struct Status {
  int n_perturbed;   // LU: pivots that were too small and replaced; Cholesky: pivots that are not positive
  int n_tiny;        // of these, below `singular`: A may be singular
  int not_finite;    // values that are NaN or Inf, and pivots that overflowed
  double largest;    // entry of A in modulus
  double asymmetry;  // Cholesky, LDL^T of both triangles: the largest difference of entries that have to be conjugates
                     // or equal, in modulus
  double growth;  // largest entry of a multiplier, of L or of A21 A11^-1 of fronts but large ones, if it is 64 or more
  double residual, x_norm, b_norm, a_norm;  // infinity norms of the last measured solve
};

// Status accumulated over deferred calls, since the host last read and cleared it.
struct AccumulatedStatus {
  Status last;            // of the last factorization; the norms of the last measured solve
  Status worst;           // the largest of each count, and of growth
  double error;           // the largest backward error, Inf for one that is no number
  long long n_factored;   // factorizations
  long long n_solved;     // solves
  long long n_held;       // of these, before the first of the factorizations
  long long not_finite;   // the first factorization that met NaN or Inf, from 1; 0: none
  long long asymmetric;   // the first of values that were not symmetric, from 1; 0: none
  long long worst_solve;  // the solve with the largest backward error, from 1; 0: all are zero
};

// The largest difference of entries (i, j) and (j, i), relative to the largest entry, of a matrix that counts as
// symmetric, in units of the precision: assembled matrices differ by rounding.
constexpr double SYMMETRY_UNITS = 1e3;
constexpr int NOT_COMPARED = -1;  // in the list of values that others have to equal
constexpr int COMPARED_WITH_ZERO = -2;

constexpr int VALUE_THREADS = 256;  // of a block
constexpr int VALUE_WARPS = VALUE_THREADS / WARP_SIZE;
constexpr int VALUE_SHARED_BYTES = 8 * VALUE_WARPS;  // a double a warp
constexpr int FLAG_BYTES = 16;                       // of a flag ahead of these
constexpr int RESIDUAL_SHARED_BYTES = FLAG_BYTES + VALUE_SHARED_BYTES;
constexpr int MOST_RHS = WARP_SIZE;  // that are measured together, a lane each
constexpr int RHS_GROUP =
    4;  // right-hand sides that residuals and solves of columns take together, if there are several

}  // namespace gs::gpu
