#include "analysis/graph.hpp"

#include <algorithm>
#include <atomic>

#include "base/slices.hpp"

namespace gs {
namespace {

void prefix_sum(std::vector<off>& ptr) {
  off sum = 0;
  for (off& p : ptr) {
    const off count = p;
    p = sum;
    sum += count;
  }
}

// A block of a permuted matrix, seen through its permutations; entries outside of it or on its diagonal are skipped.
struct Block {
  PatternView A;
  const idx* inverse_row_perm;  // null: identity
  const idx* col_perm;          // null: identity
  idx begin, end;

  idx size() const { return end - begin; }
  template <class F> void for_column(idx j, F&& visit) const {
    const idx col = col_perm ? col_perm[begin + j] : begin + j;
    for (off p = A.ptr[col]; p < A.ptr[col + 1]; p++) {
      const idx row = (inverse_row_perm ? inverse_row_perm[A.ind[p]] : A.ind[p]) - begin;
      if (row >= 0 && row < size() && row != j) visit(row);
    }
  }
  off nnz() const {
    if (!col_perm) return A.ptr[end] - A.ptr[begin];
    off sum = 0;
    for (idx j = begin; j < end; j++) sum += A.ptr[col_perm[j] + 1] - A.ptr[col_perm[j]];
    return sum;
  }
};

// The transpose of a pattern given column by column; its columns are ascending whatever the order of the source's.
// Every thread reads the whole source and keeps the rows of its slice: one pass of streaming reads buys private
// counters and a result that does not depend on the number of threads.
template <class Source> Pattern transpose(const Source& source, off nnz) {
  const idx n = source.size();
  Pattern out{n, std::vector<off>((std::size_t)n + 1), {}};
  std::vector<off> next(n);
  const auto for_own_rows = [&](const Team& team, auto&& visit) {
    const auto [begin, end] = slice(n, team);
    for (idx j = 0; j < n; j++)
      source.for_column(j, [&, begin = begin, end = end](idx row) {
        if (row >= begin && row < end) visit(row, j);
      });
  };
  run_team(team_size_for(nnz), [&](const Team& team) { for_own_rows(team, [&](idx row, idx) { out.ptr[row]++; }); });
  prefix_sum(out.ptr);
  out.ind.resize(out.ptr[n]);
  std::copy(out.ptr.begin(), out.ptr.end() - 1, next.begin());
  run_team(team_size_for(nnz),
           [&](const Team& team) { for_own_rows(team, [&](idx row, idx j) { out.ind[next[row]++] = j; }); });
  return out;
}

struct Columns {
  PatternView A;
  idx size() const { return A.n; }
  template <class F> void for_column(idx j, F&& visit) const {
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) visit(A.ind[p]);
  }
};

// Calls visit once for every row of column j of A or of B except j; both have ascending columns.
template <class F> void merge_columns(PatternView A, PatternView B, idx j, F&& visit) {
  off p = A.ptr[j], q = B.ptr[j];
  const off p_end = A.ptr[j + 1], q_end = B.ptr[j + 1];
  while (p < p_end || q < q_end) {
    const idx row_a = p < p_end ? A.ind[p] : B.n, row_b = q < q_end ? B.ind[q] : A.n;
    const idx row = std::min(row_a, row_b);
    p += row_a == row;
    q += row_b == row;
    if (row != j) visit(row);
  }
}

// columns(j, visit) runs twice: to count and to fill.
template <class F> Pattern build(idx n, off work, F&& columns) {
  Pattern out{n, std::vector<off>((std::size_t)n + 1), {}};
  run_team(team_size_for(work), [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    for (idx j = begin; j < end; j++) {
      off count = 0;
      columns(j, [&](idx) { count++; });
      out.ptr[j] = count;
    }
  });
  prefix_sum(out.ptr);
  out.ind.resize(out.ptr[n]);
  run_team(team_size_for(work), [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    for (idx j = begin; j < end; j++) {
      idx* next = out.ind.data() + out.ptr[j];
      columns(j, [&](idx row) { *next++ = row; });
    }
  });
  return out;
}

Pattern without_diagonal(PatternView A) {
  return build(A.n, A.nnz(), [&](idx j, auto&& visit) {
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++)
      if (A.ind[p] != j) visit(A.ind[p]);
  });
}

Pattern symmetrize(const Block& block) {
  const off nnz = block.nnz();
  const Pattern transposed = transpose(block, nnz);
  const bool sorted_already = !block.inverse_row_perm && !block.col_perm && block.begin == 0;
  const Pattern sorted = sorted_already ? Pattern{} : transpose(Columns{transposed.view()}, nnz);
  const PatternView columns = sorted_already ? block.A : sorted.view();
  return build(block.size(), 2 * nnz,
               [&](idx j, auto&& visit) { merge_columns(columns, transposed.view(), j, visit); });
}

}  // namespace

// Walks the columns in order: the entries (i, j) below the diagonal must meet, row by row, exactly the entries (j, i)
// that column i stores above its diagonal. next[i] is the first of those not met yet.
bool is_structurally_symmetric(PatternView A) {
  std::vector<off> next(A.n);
  std::atomic<bool> symmetric{true};
  run_team(team_size_for(A.nnz()), [&](const Team& team) {
    const auto [begin, end] = slice(A.n, team);
    for (idx i = begin; i < end; i++) next[i] = A.ptr[i];
    for (idx j = 0; j < end; j++) {
      for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
        const idx i = A.ind[p];
        if (i <= j || i < begin || i >= end) continue;
        if (next[i] == A.ptr[i + 1] || A.ind[next[i]] != j) return symmetric.store(false, std::memory_order_relaxed);
        next[i]++;
      }
      if (j % 1024 == 0 && !symmetric.load(std::memory_order_relaxed)) return;
    }
    for (idx i = begin; i < end; i++)
      if (next[i] < A.ptr[i + 1] && A.ind[next[i]] < i) return symmetric.store(false, std::memory_order_relaxed);
  });
  return symmetric.load();
}

Pattern symmetrize(PatternView A, const idx* row_of_col) {
  if (!row_of_col) {
    if (is_structurally_symmetric(A)) return without_diagonal(A);
    return symmetrize(Block{A, nullptr, nullptr, 0, A.n});
  }
  const std::vector<idx> col_of_row = inverse_permutation(row_of_col, A.n);
  return symmetrize(Block{A, col_of_row.data(), nullptr, 0, A.n});
}

Pattern symmetrize_block(PatternView A, const idx* inverse_row_perm, const idx* col_perm, idx begin, idx end) {
  return symmetrize(Block{A, inverse_row_perm, col_perm, begin, end});
}

// A symmetric pattern is its own transpose, so transposing it once sorts it.
Pattern permute_graph(PatternView graph, const idx* perm) {
  const std::vector<idx> inverse = inverse_permutation(perm, graph.n);
  return transpose(Block{graph, inverse.data(), perm, 0, graph.n}, graph.nnz());
}

std::vector<idx> inverse_permutation(const idx* perm, idx n) {
  std::vector<idx> inverse(n);
  run_team(team_size_for(n), [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    for (idx k = begin; k < end; k++) inverse[perm[k]] = k;
  });
  return inverse;
}

std::vector<idx> gather(const std::vector<idx>& values, const std::vector<idx>& order) {
  std::vector<idx> out(order.size());
  run_team(team_size_for((off)order.size()), [&](const Team& team) {
    const auto [begin, end] = slice((off)order.size(), team);
    for (off k = begin; k < end; k++) out[k] = values[order[k]];
  });
  return out;
}

}  // namespace gs
