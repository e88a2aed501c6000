// Every decision of the core about orderings and methods, by the predictions of the cost model
// (docs/internals/decisions/0019-one-cost-model.md).
#pragma once
#include <string_view>
#include <vector>

#include "analysis/analyze.hpp"
#include "analysis/block_triangular.hpp"
#include "analysis/column_counts.hpp"

namespace gs {

// The size of graphs from which on both orderings are made at the same time.
constexpr idx both_orderings_from = 100000;
// Entries a row of finite elements in space, at least.
constexpr idx neighbours_in_space = 24;

struct Ordered {
  OrderedTree tree;  // of orderings by blocks only the permutation and the cost
  const char* name = "amd";
};

// "auto", and the orderings that can be requested.
const std::vector<std::string_view>& ordering_names();

// The requested ordering, or the best one for the fronts of the CPU engine; the compared candidates go to s.considered.
Ordered choose_ordering(PatternView graph, const AnalyzeOptions& options, Symbolic& s);

// The requested ordering, or those among which an engine on a device may choose by its own predictions.
std::vector<Ordered> orderings_for_fronts(PatternView graph, const AnalyzeOptions& options, Symbolic& s);
std::vector<Ordered> orderings_for_columns(PatternView graph, const AnalyzeOptions& options, Symbolic& s);

// Minimum degree inside every diagonal block of the block triangular form.
Ordered order_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks);
// The order of the whole graph, block after block. A block's fill is at most its fill in the whole.
std::vector<idx> sorted_by_block(const std::vector<idx>& perm, const BlockTriangular& blocks);

// Whether LDL^T by an ordering is faster than LU by fronts would be by the same one, and than LU by columns.
bool ldlt_is_faster(const Ordered& order, const AnalyzeOptions& options, Symbolic& s);
// Scales over many orders of magnitude mark matrices on which fixed pivots are often inaccurate.
bool is_badly_scaled(const Symbolic& s);
// Whether column LU with the first ordering is faster than fronts with the second.
bool column_is_faster(const Ordered& by_columns, const Ordered& by_fronts, const AnalyzeOptions& options, Symbolic& s);
// The probable answer, before any ordering.
bool is_column_likely(const Symbolic& s, const AnalyzeOptions& options);

// Whether the diagonal may stay in place: only where column LU is almost certain, since fronts would have to begin
// again.
bool may_keep_diagonal(PatternView A, const AnalyzeOptions& options);

// Whether to test if A is symmetric, for LDL^T in place of LU.
bool may_be_ldlt(PatternView A, const AnalyzeOptions& options);

// Whether to search for blocks: column LU profits from the block triangular form; fronts take the matrix as one block,
// because few matrices with enough fill for fronts have several blocks.
bool may_use_blocks(const AnalyzeOptions& options);
// Whether most entries off the diagonal have no transposed partner: then several blocks are no accident.
bool is_unsymmetric(PatternView graph, PatternView A);
// Whether to order block by block: where no block is nearly all, and column LU is likely, or so many of the entries lie
// between blocks that fronts of the whole may have much more fill than the blocks.
bool orders_by_blocks(PatternView A, const idx* row_of_col, const BlockTriangular& blocks, bool column_likely);
// Whether fronts of the whole can take over the order of the blocks: the coupling, which they do not leave out, adds
// little.
bool is_coupling_acceptable(const OrderingCost& whole, const OrderingCost& by_blocks);

// Whether A is of a size that may be left in its own order (own_order.hpp): larger ones have work for several threads,
// which a chain of columns does not have.
bool may_be_staircase(PatternView A, const AnalyzeOptions& options);

// Whether A has so few zeros that it is one front for any matching and ordering.
bool is_one_front(PatternView A, const AnalyzeOptions& options);

}  // namespace gs
