// Cholesky factors of A + C C^H and A - C C^H from those of A.
//
// A vector changes the columns on the path in the tree from its first row to the root, and nothing else (T. A. Davis
// and W. W. Hager, "Row modifications of a sparse Cholesky factorization", SIAM J. Matrix Anal. Appl. 26 (2005), and
// "Multiple-rank modifications of a sparse Cholesky factorization", 22 (2001)). Here the path goes from front to front.
// In a front a vector has one entry per row; each column rotates it, by a plane rotation or for a downdate a hyperbolic
// one in mixed form (A. Bojanczyk, R. Brent, P. Van Dooren and F. de Hoog, "A note on downdating the Cholesky
// factorization", SIAM J. Sci. Stat. Comput. 8 (1987)), and the entries below go to the parent. Vectors with paths that
// have met pass through a front together, column by column, so that it is read once. One thread does all of this, so
// the result does not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/graph.hpp"
#include "base/operation.hpp"
#include "base/scalars.hpp"
#include "numeric/front_factor.hpp"

namespace gs {
namespace {

constexpr idx block_of_vectors = 8;  // vectors

// One plane or hyperbolic rotation: L <- (L + sign conj(s) w) / c, then w <- c w - s L, for n rows.
template <class T> void rotate(idx n, T* __restrict L, T* __restrict w, real_t<T> c, T s, int sign) {
  const real_t<T> inverse = 1 / c;
  const T t = real_t<T>(sign) * conj_if(s, true);
  for (idx i = 0; i < n; i++) {
    const T l = (L[i] + t * w[i]) * inverse;
    w[i] = c * w[i] - s * l;
    L[i] = l;
  }
}

// Column L with its pivot first, and the vector from the same row on. False if less than half of the digits of the
// pivot would be left, or if it is not positive.
template <class T> bool update_column(idx n, T* L, T* w, int sign) {
  using R = real_t<T>;
  const R size = std::abs(w[0]);
  if (size == 0) return true;
  const R pivot = std::real(L[0]);
  const R changed = sign > 0 ? std::hypot(pivot, size) : std::sqrt((pivot - size) * (pivot + size));
  const R c = changed / pivot;
  if (!(c * c > std::sqrt(std::numeric_limits<R>::epsilon())) || !std::isfinite(changed)) return false;
  rotate(n - 1, L + 1, w + 1, c, w[0] / pivot, sign);
  L[0] = T(changed);
  return true;
}

}  // namespace

// The fronts where the columns of C begin.
template <class T> std::vector<idx> FrontFactor<T>::first_fronts(const Pattern& C) const {
  const Symbolic& symbolic = *symbolic_;
  if (place_.empty()) place_ = inverse_permutation(symbolic.col_perm.data(), symbolic.n);
  std::vector<idx> first(C.n, -1);
  for (idx r = 0; r < C.n; r++) {
    idx lowest = symbolic.n;
    for (off p = C.ptr[r]; p < C.ptr[r + 1]; p++) lowest = std::min(lowest, place_[C.ind[p]]);
    if (lowest < symbolic.n)
      first[r] = (idx)(std::upper_bound(symbolic.super_ptr.begin(), symbolic.super_ptr.end(), lowest) -
                       symbolic.super_ptr.begin()) -
                 1;
  }
  return first;
}

template <class T> bool FrontFactor<T>::update_pays(const Pattern& C) const {
  double entries = 0;
  for (idx s : first_fronts(C))
    for (; s >= 0; s = symbolic_->super_parent[s]) entries += double(shape(s).W) * shape(s).R;
  return entries * symbolic_->costs.tasks.entries * num_threads() < plan_.total_work;
}

template <class T> bool FrontFactor<T>::update(const AnyMatrix& C, int sign) {
  const std::vector<idx> first = first_fronts(C.pattern);
  std::vector<idx> order(first.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](idx a, idx b) { return first[a] < first[b]; });
  const auto begin = std::partition_point(order.begin(), order.end(), [&](idx r) { return first[r] < 0; });
  std::vector<T> vectors((std::size_t)block_of_vectors * tallest_), below(tallest_);
  std::vector<idx> at(block_of_vectors);  // all memory is allocated before anything changes
  for (auto next = begin; next != order.end();) {
    const idx count = (idx)std::min<std::ptrdiff_t>(block_of_vectors, order.end() - next);
    if (!update_along_paths(C.pattern, std::get<std::vector<T>>(C.values).data(), &*next, count, first, sign, at.data(),
                            vectors.data(), below.data()))
      return false;
    next += count;
  }
  return true;
}

// `at`: the current front of each vector. Vectors in one front are adjacent, as fronts of a subtree are.
template <class T> bool FrontFactor<T>::update_along_paths(const Pattern& C, const T* values, const idx* which,
                                                           idx count, const std::vector<idx>& first, int sign, idx* at,
                                                           T* vectors, T* below) {
  const off ld = tallest_;
  Pace pace;
  std::fill(vectors, vectors + ld * count, T(0));
  for (idx k = 0; k < count; k++) {
    at[k] = first[which[k]];
    for (off p = C.ptr[which[k]]; p < C.ptr[which[k] + 1]; p++)
      vectors[row_in_front(at[k], place_[C.ind[p]]) + k * ld] = values[p];
  }
  for (;;) {
    idx begin = -1;
    for (idx k = 0; k < count; k++)
      if (at[k] >= 0 && (begin < 0 || at[k] < at[begin])) begin = k;
    if (begin < 0) return true;
    const idx s = at[begin];
    const auto [W, H, R] = shape(s);
    pace.go_on((off)W * R * count);
    idx end = begin;
    while (end < count && at[end] == s) end++;
    for (idx j = 0; j < W; j++)
      for (idx k = begin; k < end; k++)
        if (!update_column(R - j, panel(s) + j + off(j) * R, vectors + j + k * ld, sign)) return false;
    const idx* rel = symbolic_->rel_ind.data() + symbolic_->row_ptr[s];
    for (idx k = begin; k < end; k++) {
      T* own = vectors + k * ld;
      at[k] = symbolic_->super_parent[s];
      if (at[k] < 0) continue;
      std::copy(own + W, own + R, below);
      std::fill(own, own + std::max(R, shape(at[k]).R), T(0));
      for (idx i = 0; i < H; i++) own[rel[i]] = below[i];
    }
  }
}

// Position of a row in front s, from its position in the order of the fronts.
template <class T> idx FrontFactor<T>::row_in_front(idx s, idx place) const {
  const idx begin = symbolic_->super_ptr[s], end = symbolic_->super_ptr[s + 1];
  if (place < end) return place - begin;
  const idx *rows = symbolic_->row_ind.data() + symbolic_->row_ptr[s],
            *rows_end = symbolic_->row_ind.data() + symbolic_->row_ptr[s + 1];
  return end - begin + (idx)(std::lower_bound(rows, rows_end, place) - rows);
}

#define GS_INSTANTIATE(T)                                                                                              \
  template std::vector<idx> FrontFactor<T>::first_fronts(const Pattern&) const;                                        \
  template bool FrontFactor<T>::update_pays(const Pattern&) const;                                                     \
  template bool FrontFactor<T>::update(const AnyMatrix&, int);                                                         \
  template bool FrontFactor<T>::update_along_paths(const Pattern&, const T*, const idx*, idx, const std::vector<idx>&, \
                                                   int, idx*, T*, T*);                                                 \
  template idx FrontFactor<T>::row_in_front(idx, idx) const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
