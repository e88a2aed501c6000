// Updates of the columns of the dense trailing block by the columns before it (kernels/columns/trailing_columns.cuh),
// as sums by target. The crisscross paper (section 6.2, eq. 15) has the Schur complement as a product of its own and
// U12 by rows before it; the listed sums are gpusplu's.
//
// Columns p .. n - 1 of a column plan (plan.hpp) begin with U12, rows before p, and go on with rows of the block. An
// entry at position t of its column is its value in B minus the sum over columns j < p with U(j, k) and L(i, j) of
// L(i, j) U(j, k): a term is the place of L(i, j) and the position of U(j, k) in the column, j ascending.
//
// U12's entries depend on each other. They come by depth, 0 for entries without terms, then by falling number of terms;
// the trailing block's entries follow, by falling number too. That order gives an entry its rank, and the terms lie by
// rank. A step is a run of entries of one depth, which all have many terms or few. A batch is a run of steps of a
// column with terms that fit into shared memory together, or one entry that does not fit. Batches are also short,
// because a block waits for the columns that a batch needs and no earlier batch needed.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"
#include "plan/columns/groups.hpp"
#include "shared/columns.hpp"
#include "shared/costs.hpp"

namespace gs::gpu {

struct TrailingTerms {
  std::vector<off> term_ptr;           // by rank, from the first of column p on, + 1
  std::vector<std::int32_t> place;     // of L(i, j), of all terms
  std::vector<std::int32_t> position;  // of U(j, k) in the column
  std::vector<std::int32_t> order;     // positions by rank
  std::vector<std::int32_t> huge;      // of every column: entries of the trailing block of very many terms
  std::vector<off> step_ptr;           // columns + 1
  std::vector<std::int32_t> step;      // ends of a column's steps by rank; that of depth 0 is always there
  std::vector<off> batch_ptr;          // columns + 1
  std::vector<std::int32_t> batch;     // ends of a column's batches by step; the first begins with step 1
  std::vector<off> need_ptr;  // batches + columns + 1: of each batch, and of a column's entries in the trailing block
  std::vector<std::int32_t> need;  // columns j that are waited for
};

// Shared memory of a block [bytes]. Columns of up to `kept` entries are stored there too; their batches have the rest.
// Only the first `overlapped` columns are begun before all columns before the trailing block are finished.
struct TrailingMemory {
  off capacity = 0, kept = 0, overlapped = 0;
  int scalar_bytes = 8;

  off available(off length) const { return capacity - (length <= kept ? length * scalar_bytes : 0); }
};

// Number of terms of the columns from p on, to decide whether listing them pays.
off count_trailing_terms(const ColumnPattern& pattern, idx p);

TrailingTerms make_trailing_terms(const ColumnPattern& pattern, idx p, const TrailingMemory& memory);

// When the columns of a plan are finished by warps that wait for each other (kernels/columns/sflu.cuh), predicted.
//
// A warp takes the updates of its column k by ascending j with U(j, k), each when column j is finished; that by column
// j takes update + slice ceil(|L(:, j)| / 32) seconds, and the pivot with the division and all else `column`.

struct ColumnCosts {
  double column = 0, update = 0, slice = 0, long_column = 0, long_depth = 0;  // [s]
};

struct ColumnTimes {
  std::vector<double> finish;  // of every column [s], if there are warps enough
  std::vector<double> last;    // the latest of these among the column and all that L or U orders before it
  std::vector<idx> depth;      // the most columns i < .. < j that end with it, each in the row of L of the next
};

// `level`: of every column, to determine which are long; null: none is.
ColumnTimes column_times(const ColumnPattern& pattern, const idx* level, const ColumnCosts& costs,
                         const LongColumnCosts& longest);

// The most that a column of the trailing block takes, `entry` seconds for each of its entries and `term` for each
// multiply-add of updates by columns before the block, which has the columns of positions p .. n - 1.
double longest_trailing_column(const ColumnPattern& pattern, const off* position, idx p, double entry, double term);

}  // namespace gs::gpu
