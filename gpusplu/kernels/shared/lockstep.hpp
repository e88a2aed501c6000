// Fronts and tasks of batches in lockstep: many systems of one pattern, a lane each. Documented in
// core/plan/lockstep/plan.hpp.
#pragma once
#include "shared/host_device.hpp"

namespace gs::gpu {

constexpr int MOST_LOCKSTEP_ROWS = 4096;  // of a front: places in it are int

// A front of R = rows and W = width: its first W rows and columns are pivots, the H = R - W others its contribution
// block.
struct LockstepFront {
  int width, rows;
  int first;                   // plan position of the first pivot
  int parent;                  // -1: root
  int below;                   // into `below` and `place`: where its H rows begin
  int above_pivots;            // of these, the first that are pivots of the parent
  int child_begin, child_end;  // into `child`
  int entry_begin, entry_end;  // entries of A
  int block_shared;            // 1: its block lies in the arena that tasks share, 0: in the memory of its task
  int reserved;
  long long factor;  // where its factor begins [entries]
  long long block;   // where its contribution block begins [entries]
};

// Fronts first .. last, a subtree or one front above all of these, processed in this order.
struct LockstepTask {
  int first, last;
  int parent;    // task, -1: none
  int children;  // tasks
  int level;     // 0, or one more than the largest of its children
  int reserved;
  double work;  // multiply-adds and assembled entries
};

// Status of a system after a factorization.
struct LockstepReport {
  double multiplier;  // largest |L| (Cholesky: 0)
  double growth;      // as PivotReport has it (Cholesky: 0)
  int n_perturbed;    // pivots that were replaced
  int n_tiny;         // of these, small enough to indicate a singular matrix
  int failed;         // column of A of the first tiny pivot (Cholesky: that is not positive), or -1
  int not_finite;     // 1: there is a NaN or Inf
  int not_symmetric;  // 1: the values of a system for Cholesky are not Hermitian, or nearly so
  int reserved;
};

}  // namespace gs::gpu
