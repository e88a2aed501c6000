// The analysis pipeline: matching -> block form -> ordering -> choice of method -> structure.
#pragma once
#include <string_view>
#include <vector>

#include "analysis/symbolic.hpp"

namespace gs {

// The size of graphs from which on both orderings are made at the same time.
constexpr idx both_orderings_from = 100000;
// Entries a row of finite elements in space, at least.
constexpr idx neighbours_in_space = 24;

// "auto", and the orderings that can be requested.
const std::vector<std::string_view>& ordering_names();

enum class MethodChoice { automatic, column, front };

struct AnalyzeOptions {
  explicit AnalyzeOptions(const CpuCosts& costs_) : costs(costs_) {}

  CpuCosts costs;          // costs by which orderings and methods are chosen
  bool cholesky = false;   // A is Hermitian and stored in full; the values are not read
  bool ldlt = false;       // A is Hermitian or symmetric and stored in full
  bool symmetric = false;  // LU by any method that is fast for these values: LDL^T where they are symmetric, or
                           // A's own order; other values need another analysis if it does not suit them
  std::string_view ordering = "auto";  // one of ordering_names(), or "user"
  const idx* user_perm = nullptr;      // gather column order for "user"
  MethodChoice method = MethodChoice::automatic;
  double refactorizations = 5;  // that are expected, a solve with each
  bool matching = true;         // large entries onto the diagonal, with scaling; without it rows keep their order
  bool keep_diagonal = true;    // no matching for the column method where the diagonal is good as it is
};

// A canonical CSC. A structurally singular A gives a Symbolic with structural_rank < n and no structure. With
// `symmetric` the result may be one for LDL^T: the caller must then check that the values are symmetric before it
// factors them.
// Natural order means SciPy's permc_spec="NATURAL": columns stay where they are, rows are chosen by pivoting.
template <class T> Symbolic analyze(PatternView A, const T* values, const AnalyzeOptions& options);

// The same for an engine that has only fronts and chooses the ordering by a model of its own: one Symbolic for every
// ordering worth considering (dissection and, unless A is large, minimum degree, found at the same time; one of them
// where fill, flops and levels decide clearly), or the one that `options` names. Natural order keeps the columns, and
// the rows that matching put there.
template <class T> std::vector<Symbolic> analyze_fronts(PatternView A, const T* values, const AnalyzeOptions& options);

// The same by the matching and the scales that an LU analysis of A by columns has found.
Symbolic fronts_like(const Symbolic& columns, PatternView A, const AnalyzeOptions& options);

// The same for the column engines of a GPU, method column without blocks: one Symbolic for dissection and one for
// minimum degree, or the one that `options` names.
template <class T> std::vector<Symbolic> analyze_columns(PatternView A, const T* values, const AnalyzeOptions& options);

// ---- Whether an analysis made for other values is valid for these

// Its matching or its scales fit; and if it is of LDL^T although the caller wants LU (`symmetric`), the values are
// symmetric. Cost: a pass over the values, or two.
template <class T>
bool analysis_is_compatible(PatternView A, const T* values, const Symbolic& symbolic, bool symmetric);

}  // namespace gs
