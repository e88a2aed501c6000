// The result of analysis: permutations, scaling, block structure and the supernodal structure, as flat arrays.
#pragma once
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/stopwatch.hpp"
#include "base/types.hpp"
#include "shared/costs.hpp"

namespace gs {

enum class Method { column, front };  // column LU (Gilbert-Peierls), or fronts (multifrontal LU and Cholesky)

// An ordering and a method that were compared with others [s].
struct Considered {
  const char* ordering;
  Method method;
  bool ldlt;       // by fronts
  double seconds;  // predicted of a factorization and of as many refactorizations and solves as are expected
};

// Scales are powers of two up to this exponent and down to minus it, so that they and their reciprocals are in the
// range of the type. The product of two need not be: where it overflows there is no entry, or a subnormal one.
template <class T> constexpr int largest_scale_exponent = std::numeric_limits<real_t<T>>::max_exponent - 2;

// Everything is 0-based. B = (Dr A Dc)[row_perm][:, col_perm] is factored: permutations are gather.
struct Symbolic {
  idx n = 0;
  off nnz = 0;            // of A (canonical)
  bool cholesky = false;  // then row_perm == col_perm, without scaling
  bool ldlt = false;      // then row_perm == col_perm and row_scale == col_scale
  Method method = Method::front;

  std::vector<idx> row_perm, col_perm;
  // Powers of two by A's rows and columns, with exponents of at most largest_scale_exponent; empty: all ones.
  std::vector<double> row_scale, col_scale;
  // LDL^T, in A's numbering, for engines that pivot only inside parts of a front: the columns in the order of the
  // pivots of some values, those of each front together, and the partner of each column in a pivot of order 2, itself
  // for none. Empty: columns as numbered, no such pivots.
  std::vector<idx> pivot_order, partner;
  bool keeps_diagonal = false;  // of A, unmatched: pivots off it are taken only where necessary
  std::vector<idx> block_ptr;   // block upper triangular form of B (column method): nblocks + 1 boundaries
                                // (fronts: always {0, n})
  // Symmetrized structure B + B^T. Columns follow the postordered supernode tree: a column's parent comes after it, and
  // every subtree of supernodes is contiguous (a subtree of columns need not be, where siblings merged into a parent).
  std::vector<idx> parent;     // n, -1 at roots
  std::vector<idx> col_count;  // n, entries of L's column, diagonal included

  // Relaxed supernodes: supernode s owns columns super_ptr[s] .. super_ptr[s+1]-1 (W of them) and has H rows below:
  // row_ind[row_ptr[s]] .. row_ind[row_ptr[s+1]-1], ascending, all >= super_ptr[s+1]. Supernodes are postordered.
  std::vector<idx> super_ptr;     // nsuper + 1
  std::vector<idx> super_parent;  // nsuper, -1 at roots
  std::vector<off> row_ptr;       // nsuper + 1
  std::vector<idx> row_ind;
  std::vector<idx> rel_ind;  // as row_ind: place of that row in the parent's front (0 .. W-1 its columns, then W + k)
  idx n_interface = 0;       // columns of the last front, if that is assembled and not eliminated

  // The choice, and its size
  std::string ordering;  // "amd", "nd", "natural", "user"
  CpuCosts costs{};      // used for the choice, and again where newer values need another analysis
  off lnz = 0;           // entries of L, diagonal included, relaxed supernodes not counted
  double flops = 0;      // multiply-adds counted as 2, of the method's factorization without relaxation [flop]
  idx structural_rank = 0;
  idx column_levels = 0;                               // height of the elimination tree
  idx super_levels = 0;                                // height of the supernode tree
  double critical_path = 0;                            // largest sum of front flops from a leaf to a root [flop]
  double seconds = 0;                                  // duration of the analysis [s]
  std::vector<std::pair<const char*, double>> stages;  // and its stages [s]
  std::vector<Considered> considered;                  // the predictions; empty where there was no choice

  idx nsuper() const { return (idx)super_parent.size(); }
  bool is_interface(idx s) const { return n_interface > 0 && s + 1 == nsuper(); }
  bool one_triangle() const { return cholesky || ldlt; }  // is factored, and stands for both
  // Whether supernode s has row and column `last`, which is not before its own.
  bool has_row(idx s, idx last) const {
    return last < super_ptr[s + 1] ||
           std::binary_search(row_ind.begin() + row_ptr[s], row_ind.begin() + row_ptr[s + 1], last);
  }
};

// Cuts scales off at this exponent, and at minus it. Returns whether any scale was cut.
bool cut_scales(Symbolic& symbolic, int largest_exponent);

// The same with scales in the range of T, which an analysis of another type may exceed; returns its argument where they
// are in range.
template <class T> std::shared_ptr<const Symbolic> with_scales_of(std::shared_ptr<const Symbolic> symbolic);

// Adds to a stage of the analysis, or begins it.
inline void add_to_stage(Symbolic& symbolic, const char* stage, double seconds) {
  for (auto& [name, sum] : symbolic.stages)
    if (name == stage) {
      sum += seconds;
      return;
    }
  symbolic.stages.emplace_back(stage, seconds);
}

// Runs work() as a stage of the analysis, or as another part of one.
template <class Work> auto timed(Symbolic& symbolic, const char* stage, Work&& work) {
  const Stopwatch watch;
  auto result = work();
  add_to_stage(symbolic, stage, watch.seconds());
  return result;
}

// ---- Checks of a pickled analysis: all properties on which engines and plans rely. They throw std::invalid_argument

// Checks the analysis by itself. Cost: O(structure).
void validate(const Symbolic& symbolic);

// Checks it for a matrix with the pattern `A`: every entry has a place in the structure. Cost: O(entries log rows of a
// front).
void validate(const Symbolic& symbolic, PatternView A);

// ---- Partial factorization: the unknowns of an interface are not eliminated; their Schur complement is left

// The whole A, by an analysis for fronts of its interior: all unknowns but the `count` of `interface`, in ascending
// order, and count > 0. Fronts keep their columns, and get as further rows the rows of the interface that entries of
// their subtrees have, which comes last as one front, the parent of all roots; it is assembled and not eliminated.
// Where the interior is scaled, scales of the interface bring the entries between both to about 1.
// Cost: O(nnz(A) + rows of the interface in all fronts).
template <class T>
Symbolic with_interface(const Symbolic& interior, PatternView A, const T* values, const idx* interface, idx count);

}  // namespace gs
