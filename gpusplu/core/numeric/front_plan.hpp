// The part of a multifrontal factorization that does not depend on values: the target of each entry of A, the positions
// of the panels, and the tasks of the tree.
//
// Panels: front s has W pivot columns and H rows below, R = W + H. Its L panel (R x W, column-major) lies at
// panel_ptr[s] of one arena, and for LU its transposed U panel (H x W: column k is row k of U) follows.
//
// Entries of A are sorted by front, and inside a front by permuted column; a target is an offset from panel_ptr[s].
// Cholesky omits the entries above the diagonal of the permuted matrix.
//
// Tasks: a run of sibling subtrees of at most `grain` modelled work is one leaf task, which one thread runs in
// postorder; every front above is a task of its own. The cut depends on the matrix alone, never on the number of
// threads, so sums by task have the same order for any number of threads.
//
// Cost: O(nnz(A) + structure), two passes over A, in parallel where it is large.
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/symbolic.hpp"

namespace gs {

struct FrontTask {
  idx first, last;     // fronts, in postorder
  idx parent;          // task, -1 at roots
  idx n_dependencies;  // child tasks
  bool is_large;       // one front, whose loops several threads may share
  double work;         // modelled time on one thread [s]
};

struct FrontPlan {
  FrontPlan(const Symbolic& symbolic, PatternView A);
  explicit FrontPlan(const Symbolic& symbolic);  // without entries, for predictions
  off bytes() const;

  std::vector<off> panel_ptr;  // nsuper + 1 [entries]

  std::vector<off> entry_ptr;               // nsuper + 1
  std::vector<std::uint32_t> entry_source;  // canonical entry of A
  std::vector<std::uint32_t> entry_target;
  std::vector<double> entry_scale;  // powers of two; empty without scaling

  std::vector<idx> child_ptr, child;  // children of each front, ascending; of front nsuper: the roots

  std::vector<FrontTask> tasks;                 // by `last`: children before parents
  std::vector<idx> start_tasks;                 // tasks without dependencies, ascending
  std::vector<idx> task_child_ptr, task_child;  // child tasks
  std::vector<off> carry_ptr;  // of fronts with a parent above the cut: sum of H of such fronts before; else -1
  off carry_size = 0;
  double total_work = 0;  // modelled time on one thread [ns]

 private:
  void place_panels(const Symbolic&);
  void place_entries(const Symbolic&, PatternView);
  void cut_tree(const Symbolic&);
};

// Modelled time of front s on one thread [ns].
struct FrontWork {
  double assembly, elimination;
  double total() const { return assembly + elimination; }
};
FrontWork front_work(const Symbolic& symbolic, idx s);

// Shape of front s.
struct FrontShape {
  idx W, H, R;
  FrontShape(const Symbolic& symbolic, idx s)
      : W(symbolic.super_ptr[s + 1] - symbolic.super_ptr[s]),
        H((idx)(symbolic.row_ptr[s + 1] - symbolic.row_ptr[s])),
        R(W + H) {}
};

}  // namespace gs
