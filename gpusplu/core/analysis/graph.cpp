#include "analysis/graph.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "matrix/symmetry.hpp"

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

// A permuted matrix, or a part of one, seen through its permutations; entries on its diagonal and outside of its blocks
// are skipped.
struct Permuted {
  PatternView A;
  idx n;                        // rows and columns
  const idx* inverse_row_perm;  // null: identity; negative where a row is left out
  const idx* col_perm;          // null: identity
  const idx* block;             // of each row and column; null: all are of one, and none is left out

  idx size() const { return n; }
  template <class F> void for_column(idx j, F&& visit) const {
    const idx col = col_perm ? col_perm[j] : j;
    for (off p = A.ptr[col]; p < A.ptr[col + 1]; p++) {
      const idx row = inverse_row_perm ? inverse_row_perm[A.ind[p]] : A.ind[p];
      if (row != j && (!block || (row >= 0 && block[row] == block[j]))) visit(row);
    }
  }
  off length(idx j) const {
    const idx col = col_perm ? col_perm[j] : j;
    return A.ptr[col + 1] - A.ptr[col];
  }
  // Of columns from..to-1, entries outside of the blocks included.
  off entries(idx from, idx to) const {
    if (!col_perm) return A.ptr[to] - A.ptr[from];
    off sum = 0;
    for (idx j = from; j < to; j++) sum += length(j);
    return sum;
  }
};

Pattern without_diagonal(PatternView A) {
  Pattern out{A.n, std::vector<off>((std::size_t)A.n + 1), {}};
  const auto over_columns = [&](auto&& visit) {
    over_range(A.n, A.nnz(), [&](idx begin, idx end) {
      for (idx j = begin; j < end; j++) visit(j, A.ind + A.ptr[j], A.ind + A.ptr[j + 1]);
    });
  };
  over_columns(
      [&](idx j, const idx* begin, const idx* end) { out.ptr[j] = end - begin - std::binary_search(begin, end, j); });
  prefix_sum(out.ptr);
  out.ind.resize(out.ptr[A.n]);
  over_columns(
      [&](idx j, const idx* begin, const idx* end) { std::remove_copy(begin, end, out.ind.data() + out.ptr[j], j); });
  return out;
}

// counter++, atomic where other threads increment it at the same time.
off raise(off& counter, const Team& team) {
  return team.size > 1 ? std::atomic_ref<off>(counter).fetch_add(1, std::memory_order_relaxed) : counter++;
}

// By one thread: nothing is sorted, and the permutations are read once. The rows come from scattering the columns, the
// union of both in any order, and its transpose, which is the same pattern, is ascending.
Pattern symmetrize_alone(const Permuted& permuted) {
  const idx n = permuted.size();
  const off most = permuted.entries(0, n);
  Pattern out{n, std::vector<off>((std::size_t)n + 1), {}};
  RawVector<off> col_ptr((std::size_t)n + 1), row_end(n);
  RawVector<idx> col_ind(most), row_ind(most);
  std::fill(row_end.begin(), row_end.end(), 0);
  idx* next = col_ind.data();
  Pace pace;
  for (idx j = 0; j < n; j++) {
    pace.go_on(4 * permuted.length(j));
    col_ptr[j] = next - col_ind.data();
    permuted.for_column(j, [&](idx row) { *next++ = row, row_end[row]++; });
  }
  const off nnz = col_ptr[n] = next - col_ind.data();
  off sum = 0;
  for (idx i = 0; i < n; i++) sum += std::exchange(row_end[i], sum);
  for (idx j = 0; j < n; j++)
    for (off p = col_ptr[j]; p < col_ptr[j + 1]; p++) row_ind[row_end[col_ind[p]]++] = j;
  RawVector<idx> both(2 * nnz + 1);  // the last is written to and not counted
  RawVector<idx> seen(n);            // last column that a row was met in
  std::fill(seen.begin(), seen.end(), -1);
  next = both.data();
  off row = 0;
  for (idx j = 0; j < n; j++) {
    pace.go_on(1 + col_ptr[j + 1] - col_ptr[j]);
    for (; row < row_end[j]; row++) *next++ = row_ind[row], seen[row_ind[row]] = j;
    for (off p = col_ptr[j]; p < col_ptr[j + 1]; p++) *next = col_ind[p], next += seen[col_ind[p]] != j;
    out.ptr[j + 1] = next - both.data();
  }
  out.ind.resize(out.ptr[n]);
  RawVector<off>& place = row_end;
  std::copy(out.ptr.begin(), out.ptr.end() - 1, place.begin());
  for (idx j = 0; j < n; j++) {
    pace.go_on(out.ptr[j + 1] - out.ptr[j]);
    for (off p = out.ptr[j]; p < out.ptr[j + 1]; p++) out.ind[place[both[p]]++] = j;
  }
  return out;
}

// The rows come from scattering the columns. Several threads do that in no order and sort the rows afterwards; columns
// are sorted where their rows are permuted.
Pattern symmetrize(const Permuted& permuted) {
  const idx n = permuted.size();
  const off nnz = permuted.entries(0, n);
  const int n_parts = threads_for_random(nnz);
  if (n_parts == 1) return symmetrize_alone(permuted);
  std::vector<off> row_ptr((std::size_t)n + 1);
  run_pass(n_parts, [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    Pace pace;
    for (idx j = begin; j < end && !pace.must_stop(permuted.length(j)); j++)
      permuted.for_column(j, [&](idx row) { raise(row_ptr[row], team); });
  });
  prefix_sum(row_ptr);
  RawVector<off> next(row_ptr.begin(), row_ptr.end() - 1);
  RawVector<idx> row_ind(row_ptr[n]);
  run_pass(n_parts, [&](const Team& team) {
    const auto [begin, end] = slice(n, team);
    Pace pace;
    for (idx j = begin; j < end && !pace.must_stop(permuted.length(j)); j++)
      permuted.for_column(j, [&](idx row) { row_ind[raise(next[row], team)] = j; });
  });
  Pattern out{n, std::vector<off>((std::size_t)n + 1), {}};
  std::vector<RawVector<idx>> parts(n_parts);
  const auto part = [&](std::size_t k) { return slice(n, Team{(int)k, n_parts}); };
  share_out(n_parts, n_parts, [&](std::size_t k, int) {
    const auto [begin, end] = part(k);
    std::vector<idx> column;
    parts[k].resize(row_ptr[end] - row_ptr[begin] + permuted.entries(begin, end));
    idx* next_out = parts[k].data();
    Pace pace;
    for (idx j = begin; j < end; j++) {
      pace.go_on(4 * permuted.length(j));
      column.clear();
      permuted.for_column(j, [&](idx row) { column.push_back(row); });
      if (permuted.inverse_row_perm) std::sort(column.begin(), column.end());
      idx *row = row_ind.data() + row_ptr[j], *row_end = row_ind.data() + row_ptr[j + 1];
      std::sort(row, row_end);
      idx* const before = next_out;
      next_out = std::set_union(row, row_end, column.begin(), column.end(), next_out);
      out.ptr[j] = next_out - before;
    }
    parts[k].resize(next_out - parts[k].data());
  });
  prefix_sum(out.ptr);
  out.ind.resize(out.ptr[n]);
  share_out(n_parts, n_parts, [&](std::size_t k, int) {
    std::copy(parts[k].begin(), parts[k].end(), out.ind.begin() + out.ptr[part(k).begin]);
  });
  return out;
}

}  // namespace

bool is_structurally_symmetric(PatternView A) {
  std::atomic<bool> symmetric{true};
  run_pass(threads_for(A.nnz()), [&](const Team& team) {
    // ends early for most unsymmetric matrices
    if (!visit_pairs(A, slice(A.n, team), [](off, off q) { return q >= 0; })) symmetric = false;
  });
  return symmetric;
}

Pattern symmetrize(PatternView A, const idx* row_of_col) {
  if (!row_of_col) return symmetrize_known(A, is_structurally_symmetric(A));
  const std::vector<idx> col_of_row = inverse_permutation(row_of_col, A.n);
  return symmetrize(Permuted{A, A.n, col_of_row.data(), nullptr, nullptr});
}

Pattern symmetrize_known(PatternView A, bool symmetric) {
  return symmetric ? without_diagonal(A) : symmetrize(Permuted{A, A.n, nullptr, nullptr, nullptr});
}

Pattern symmetrize_blocks(PatternView A, idx n, const idx* inverse_row_perm, const idx* col_perm, const idx* block) {
  return symmetrize(Permuted{A, n, inverse_row_perm, col_perm, block});
}

double dimension(PatternView graph) {
  constexpr int n_balls = 9, least_radius = 3;
  const std::size_t most = std::min<idx>(1500, graph.n / 8);
  std::vector<char> met(graph.n, 0);
  double found[n_balls];
  for (int ball = 0; ball < n_balls; ball++) {
    const idx centre = (idx)((off)graph.n * (2 * ball + 1) / (2 * n_balls));
    std::vector<idx> queue{centre};
    std::vector<std::size_t> within{1};  // vertices, by radius
    met[centre] = 1;
    for (std::size_t head = 0; queue.size() <= most && within.back() > head; within.push_back(queue.size()))
      for (; head < within.back() && queue.size() <= most; head++)
        for (off p = graph.ptr[queue[head]]; p < graph.ptr[queue[head] + 1]; p++)
          if (!std::exchange(met[graph.ind[p]], 1)) queue.push_back(graph.ind[p]);
    for (const idx v : queue) met[v] = 0;
    const int radius = (int)within.size() - 2;  // of the largest ball that is not too large
    const bool grew = radius >= least_radius && queue.size() > most;
    found[ball] = grew ? std::log((double)within[radius] / (double)within[radius / 2]) /
                             std::log((radius + 0.5) / (radius / 2 + 0.5))
                       : 0;
  }
  std::nth_element(found, found + n_balls / 2, found + n_balls);
  return found[n_balls / 2];
}

std::vector<idx> inverse_permutation(const idx* perm, idx n) {
  std::vector<idx> inverse(n);
  over_range(n, n, [&](idx begin, idx end) {
    for (idx k = begin; k < end; k++) inverse[perm[k]] = k;
  });
  return inverse;
}

int parity(const std::vector<idx>& perm) {
  std::vector<bool> seen(perm.size());
  int sign = 1;
  for (std::size_t i = 0; i < perm.size(); i++)
    for (std::size_t j = perm[i]; !seen[i] && j != i; j = perm[j]) seen[j] = true, sign = -sign;
  return sign;
}

std::vector<idx> part_of_each(const std::vector<idx>& begin, idx n) {
  std::vector<idx> part(n);
  for (std::size_t k = 0; k + 1 < begin.size(); k++)
    std::fill(part.begin() + begin[k], part.begin() + begin[k + 1], (idx)k);
  return part;
}

std::vector<idx> gather(const std::vector<idx>& values, const std::vector<idx>& order) {
  std::vector<idx> out(order.size());
  over_range((off)order.size(), (off)order.size(), [&](off begin, off end) {
    for (off k = begin; k < end; k++) out[k] = values[order[k]];
  });
  return out;
}

}  // namespace gs
