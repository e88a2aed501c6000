#include "analysis/symbolic.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/graph.hpp"
#include "analysis/structure.hpp"
#include "base/types.hpp"
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

// Rows of the interface, counted from 0, in each front, ascending: those of its own entries, by rows or by columns, and
// of its children's.
std::vector<std::vector<idx>> interface_rows(const Symbolic& interior, PatternView A, const Places& places, idx count) {
  const std::vector<idx> front_of = part_of_each(interior.super_ptr, interior.n);
  std::vector<std::vector<idx>> fronts(count), rows(interior.nsuper());
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
      const auto [low, high] = std::minmax(places.row[A.ind[p]], places.column[j]);
      if (low < interior.n && high >= interior.n) fronts[high - interior.n].push_back(front_of[low]);
    }
  for (idx t = 0; t < count; t++)
    for (idx s : fronts[t])
      for (; s >= 0 && (rows[s].empty() || rows[s].back() != t); s = interior.super_parent[s]) rows[s].push_back(t);
  return rows;
}

std::vector<idx> permutation(const std::vector<idx>& of_interior, const std::vector<idx>& inner, const idx* interface,
                             idx count) {
  std::vector<idx> perm;
  for (const idx k : of_interior) perm.push_back(inner[k]);
  perm.insert(perm.end(), interface, interface + count);
  return perm;
}

// Appends the interface's columns to the tree of columns, and its front to that of fronts.
void extend_trees(const Symbolic& interior, const std::vector<std::vector<idx>>& rows, idx count, Symbolic& whole) {
  const idx n = interior.n, last = interior.nsuper();
  whole.super_ptr = interior.super_ptr, whole.super_parent = interior.super_parent;
  whole.parent = interior.parent, whole.col_count = interior.col_count;
  for (idx s = 0; s < last; s++) {
    if (whole.super_parent[s] < 0) whole.super_parent[s] = last;
    for (idx j = whole.super_ptr[s]; j < whole.super_ptr[s + 1]; j++) whole.col_count[j] += (idx)rows[s].size();
  }
  for (idx& above : whole.parent)
    if (above < 0) above = n;
  for (idx t = 0; t < count; t++) {
    whole.parent.push_back(t + 1 < count ? n + t + 1 : -1);
    whole.col_count.push_back(count - t);
  }
  whole.super_ptr.push_back(n + count), whole.super_parent.push_back(-1);
}

// Rows of the interior come before those of the interface.
void extend_rows(const Symbolic& interior, const std::vector<std::vector<idx>>& rows, Symbolic& whole) {
  whole.row_ptr = {0};
  for (idx s = 0; s < interior.nsuper(); s++) {
    whole.row_ind.insert(whole.row_ind.end(), interior.row_ind.begin() + interior.row_ptr[s],
                         interior.row_ind.begin() + interior.row_ptr[s + 1]);
    for (const idx t : rows[s]) whole.row_ind.push_back(interior.n + t);
    whole.row_ptr.push_back((off)whole.row_ind.size());
  }
  whole.row_ptr.push_back((off)whole.row_ind.size());
  find_relative_indices(whole);
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
  const std::vector<std::vector<idx>> rows = interface_rows(interior, A, places, count);
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
