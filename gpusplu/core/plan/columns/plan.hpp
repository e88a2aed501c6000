// The plan of the column engines (glu, sflu, crisscross), independent of values: the static pattern of L + U for pivots
// that a factorization on the CPU has chosen, an order in which its columns can be processed, and the targets of
// updates. Flat arrays, copied to the device as they are.
//
// B = (Dr A Dc)[row_perm][:, col_perm] = L U, all pivots on the diagonal. Entries of L + U in compressed columns with
// ascending rows, the unit diagonal of L not stored: column k is row[col_ptr[k] .. col_ptr[k+1]); U's part comes first
// and ends with the diagonal at diag[k]; L's follows. By rows: row i has columns col[row_ptr[i] .. row_ptr[i+1]), and
// place gives the position of each of these entries in the columns.
//
// Entry e of A is canonical entry entry_source[e], times entry_scale[e] (empty: ones), at entry_place[e]. All others
// are fill and start as zero. In canonical order.
//
// Levels. Right-looking, column j updates the columns k of its row of U: L(i, j) U(j, k) goes to (i, k), and in doing
// so it reads (j, k), which every column i < j with L(j, i) and U(i, k) writes. So column k waits for every j with U(j,
// k), which updates it, and for every j with L(k, j), which updates entries that column k then reads (GLU 2.0's
// correction, which Lee, Achar and Nakhla, IEEE TVLSI 26 (2018), explain in section II-C; GLU 1.0 (He, Tan, Wang and
// Shi, TVLSI 24 (2016), section III-B) has only the first).
// Left-looking, only the first kind counts: level_left. Columns of a level: longest column first, then by number.
//
// Maps. U entries above the diagonal are numbered in the order of the columns: column k has u_ptr[k] .. u_ptr[k+1].
// The update by U(j, k), number u, sends the t-th entry of L(:, j) to place col_ptr[k] + map[map_ptr[u] + t]. There are
// none where multiply-adds exceed `most_mapped`, or where a column has 65536 entries or more.
//
// Deterministic: nothing depends on the number of threads.
#pragma once
#include <cstdint>
#include <vector>

#include "base/raw_vector.hpp"
#include "base/types.hpp"

namespace gs::gpu {

struct ColumnPattern {  // the first n columns of L + U, sorted, and all their rows; diag[k]: place of column k's
                        // diagonal
  idx n = 0;
  const off *col_ptr = nullptr, *diag = nullptr;
  const idx* row = nullptr;
};

struct ColumnParameters {
  const double *row_scale = nullptr, *col_scale = nullptr;  // by A's rows and columns; both null: ones
  double most_mapped = 1e8;                                 // multiply-adds up to which there are maps
  ColumnPattern pattern;                                    // of L + U, where it is known
};

struct ColumnPlan {
  idx n = 0;
  std::vector<idx> row_perm, col_perm;       // gather
  std::vector<double> row_scale, col_scale;  // by A's rows and columns; empty: ones

  std::vector<off> col_ptr, diag;
  RawVector<idx> row;
  std::vector<off> row_ptr;
  RawVector<idx> col;
  RawVector<off> place;

  RawVector<off> entry_source, entry_place;
  RawVector<double> entry_scale;

  std::vector<idx> level, level_left;  // by column, from 0
  std::vector<idx> level_ptr, level_column;

  std::vector<off> u_ptr;
  bool has_maps = false;
  RawVector<off> map_ptr;  // one more than there are numbers u
  RawVector<std::uint16_t> map;

  double flops = 0;    // multiply-adds of the updates
  double seconds = 0;  // duration of making the plan

  off nnz() const { return (off)row.size(); }
  idx n_levels() const { return (idx)level_ptr.size() - 1; }
  ColumnPattern first_columns(idx count) const { return {count, col_ptr.data(), diag.data(), row.data()}; }
};

// Pivots of `A` are where the permutations (gather) put them. Throws where a pattern that is given has no place for an
// entry of A. Time: that of a symbolic factorization and, for maps, a
// visit of every multiply-add.
ColumnPlan make_column_plan(PatternView A, const idx* row_perm, const idx* col_perm,
                            const ColumnParameters& parameters);

}  // namespace gs::gpu
