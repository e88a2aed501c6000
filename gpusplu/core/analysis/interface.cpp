#include "analysis/interface.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/structure.hpp"
#include "base/parts.hpp"
#include "base/scalars.hpp"
#include "matrix/modulus.hpp"

namespace gs {
namespace {

// Unknowns of A in the order of the fronts, by rows and by columns.
struct Places {
  std::vector<idx> inner;        // unknowns of the interior
  std::vector<idx> row, column;  // of the unknowns of A

  Places(const Symbolic& interior, idx n, const idx* interface, idx count) : row(n, 0), column(n) {
    for (idx t = 0; t < count; t++) row[interface[t]] = -1;
    for (idx i = 0; i < n; i++)
      if (row[i] == 0) inner.push_back(i);
    for (idx k = 0; k < interior.n; k++) {
      row[inner[interior.row_perm[k]]] = k;
      column[inner[interior.col_perm[k]]] = k;
    }
    for (idx t = 0; t < count; t++) row[interface[t]] = column[interface[t]] = interior.n + t;
  }
};

// Rows of the interface, counted from 0, in each front: those of its own entries and of its children's.
struct InterfaceRows {
  std::vector<off> ptr;
  std::vector<idx> row;

  InterfaceRows(const Symbolic& interior, PatternView A, const Places& places, idx count)
      : ptr(interior.nsuper() + 1, 0) {
    const auto [begin, fronts] = fronts_with_entries(interior, A, places, count);
    std::vector<idx> last(interior.nsuper(), -1);
    const auto climb = [&](auto&& visit) {
      std::fill(last.begin(), last.end(), -1);
      for (idx t = 0; t < count; t++)
        for (off k = begin[t]; k < begin[t + 1]; k++)
          for (idx s = fronts[k]; s >= 0 && last[s] != t; s = interior.super_parent[s]) last[s] = t, visit(s, t);
    };
    climb([&](idx s, idx) { ptr[s + 1]++; });
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    row.resize(ptr.back());
    std::vector<off> next(ptr.begin(), ptr.end() - 1);
    climb([&](idx s, idx t) { row[next[s]++] = t; });
  }

  idx count(idx s) const { return (idx)(ptr[s + 1] - ptr[s]); }

  // Index of row t in front s, which contains it.
  idx find(idx s, idx t) const {
    return (idx)(std::lower_bound(row.begin() + ptr[s], row.begin() + ptr[s + 1], t) - (row.begin() + ptr[s]));
  }

 private:
  // For every unknown of the interface, the fronts with columns in which it has entries, by rows or by columns.
  static std::pair<std::vector<off>, std::vector<idx>> fronts_with_entries(const Symbolic& interior, PatternView A,
                                                                           const Places& places, idx count) {
    const std::vector<idx> front_of = part_of_each(interior.super_ptr, interior.n);
    const auto for_entries = [&](auto&& visit) {
      for (idx j = 0; j < A.n; j++)
        for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
          const auto [low, high] = std::minmax(places.row[A.ind[p]], places.column[j]);
          if (low < interior.n && high >= interior.n) visit(high - interior.n, front_of[low]);
        }
    };
    std::vector<off> begin(count + 1, 0);
    for_entries([&](idx t, idx) { begin[t + 1]++; });
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<idx> fronts(begin.back());
    std::vector<off> next(begin.begin(), begin.end() - 1);
    for_entries([&](idx t, idx s) { fronts[next[t]++] = s; });
    return {std::move(begin), std::move(fronts)};
  }
};

std::vector<idx> permutation(const std::vector<idx>& of_interior, const std::vector<idx>& inner, const idx* interface,
                             idx count) {
  std::vector<idx> perm;
  for (const idx k : of_interior) perm.push_back(inner[k]);
  perm.insert(perm.end(), interface, interface + count);
  return perm;
}

// Appends the interface's columns to the tree of columns, and its front to that of fronts.
void extend_trees(const Symbolic& interior, const InterfaceRows& rows, idx count, Symbolic& whole) {
  const idx n = interior.n, last = interior.nsuper();
  whole.super_ptr = interior.super_ptr, whole.super_parent = interior.super_parent;
  whole.parent = interior.parent, whole.col_count = interior.col_count;
  for (idx s = 0; s < last; s++) {
    if (whole.super_parent[s] < 0) whole.super_parent[s] = last;
    for (idx j = whole.super_ptr[s]; j < whole.super_ptr[s + 1]; j++) whole.col_count[j] += rows.count(s);
  }
  for (idx& above : whole.parent)
    if (above < 0) above = n;
  for (idx t = 0; t < count; t++) {
    whole.parent.push_back(t + 1 < count ? n + t + 1 : -1);
    whole.col_count.push_back(count - t);
  }
  whole.super_ptr.push_back(n + count), whole.super_parent.push_back(-1);
}

// Rows of the interior come before those of the interface, so their data stay valid.
void extend_rows(const Symbolic& interior, const InterfaceRows& rows, Symbolic& whole) {
  const idx last = interior.nsuper();
  whole.row_ptr = {0};
  for (idx s = 0; s < last; s++) {
    const idx above = interior.super_parent[s];
    for (off k = interior.row_ptr[s]; k < interior.row_ptr[s + 1]; k++) {
      whole.row_ind.push_back(interior.row_ind[k]);
      whole.rel_ind.push_back(interior.rel_ind[k]);
    }
    const idx own = above < 0 ? 0 : interior.super_ptr[above + 1] - interior.super_ptr[above];
    const idx before = above < 0 ? 0 : own + (idx)(interior.row_ptr[above + 1] - interior.row_ptr[above]);
    for (off k = rows.ptr[s]; k < rows.ptr[s + 1]; k++) {
      whole.row_ind.push_back(interior.n + rows.row[k]);
      whole.rel_ind.push_back(above < 0 ? rows.row[k] : before + rows.find(above, rows.row[k]));
    }
    whole.row_ptr.push_back((off)whole.row_ind.size());
  }
  whole.row_ptr.push_back((off)whole.row_ind.size());
}

// Known pivots of order 2 stay valid; the interface has none.
void extend_pairs(const Symbolic& interior, const std::vector<idx>& inner, const idx* interface, idx count,
                  Symbolic& whole) {
  if (!interior.pivot_order.empty()) whole.pivot_order = permutation(interior.pivot_order, inner, interface, count);
  if (interior.partner.empty()) return;
  whole.partner.resize(whole.n);
  std::iota(whole.partner.begin(), whole.partner.end(), 0);
  for (idx j = 0; j < interior.n; j++) whole.partner[inner[j]] = inner[interior.partner[j]];
}

// The reciprocal of a modulus as a power of two.
template <class T> double scale_of(double largest) {
  if (!(largest > 0)) return 1;
  return std::ldexp(1.0, std::clamp(-std::ilogb(largest), -largest_scale_exponent<T>, largest_scale_exponent<T>));
}

template <class T> void scale_interface(const Symbolic& interior, PatternView A, const T* values, const Places& places,
                                        const idx* interface, Symbolic& whole) {
  if (interior.row_scale.empty()) return;
  whole.row_scale.assign(A.n, 1.0), whole.col_scale.assign(A.n, 1.0);
  for (idx k = 0; k < interior.n; k++) {
    whole.row_scale[places.inner[k]] = interior.row_scale[k];
    whole.col_scale[places.inner[k]] = interior.col_scale[k];
  }
  std::vector<double> rows(whole.n_interface, 0.0), columns(rows);
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
      const idx i = A.ind[p], row = places.row[i] - interior.n, column = places.column[j] - interior.n;
      const double size = modulus(values[p]);
      if (row >= 0 && column < 0) rows[row] = std::max(rows[row], size * whole.col_scale[j]);
      if (row < 0 && column >= 0) columns[column] = std::max(columns[column], size * whole.row_scale[i]);
    }
  if (whole.ldlt) columns = rows;
  for (idx t = 0; t < whole.n_interface; t++) {
    whole.row_scale[interface[t]] = scale_of<T>(rows[t]);
    whole.col_scale[interface[t]] = scale_of<T>(columns[t]);
  }
}

}  // namespace

template <class T>
Symbolic with_interface(const Symbolic& interior, PatternView A, const T* values, const idx* interface, idx count) {
  const Stopwatch watch;
  Symbolic whole;
  whole.n = whole.structural_rank = A.n, whole.nnz = A.nnz();
  whole.cholesky = interior.cholesky, whole.ldlt = interior.ldlt;
  whole.ordering = interior.ordering, whole.costs = interior.costs;
  whole.n_interface = count;
  whole.block_ptr = {0, A.n};
  const Places places(interior, A.n, interface, count);
  const InterfaceRows rows(interior, A, places, count);
  whole.row_perm = permutation(interior.row_perm, places.inner, interface, count);
  whole.col_perm = permutation(interior.col_perm, places.inner, interface, count);
  extend_pairs(interior, places.inner, interface, count, whole);
  extend_trees(interior, rows, count, whole);
  extend_rows(interior, rows, whole);
  scale_interface(interior, A, values, places, interface, whole);
  measure_structure(whole);
  whole.seconds = watch.seconds();
  return whole;
}

#define GS_INSTANTIATE(T) template Symbolic with_interface(const Symbolic&, PatternView, const T*, const idx*, idx);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
