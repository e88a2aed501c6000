// The factors as compressed columns. Cost: O(panels), twice: entries that are exactly zero are counted, then omitted.
//
// A front exchanges only its own rows. The same rows of L in its descendants move too: an entry of row i belongs to row
// new_row[i].
#include <utility>

#include "analysis/graph.hpp"
#include "base/operation.hpp"
#include "base/scalars.hpp"
#include "matrix/sort_rows.hpp"
#include "numeric/front_factor.hpp"
#include "numeric/unscaled.hpp"

namespace gs {
namespace {

// Collects columns in two identical passes of calls add(column, row, value).
template <class T> class Columns {
 public:
  explicit Columns(idx n) {
    pattern_.n = n;
    pattern_.ptr.assign(n + 1, 0);
  }
  void add(idx column, idx row, T value) {
    if (!filling_) {
      pattern_.ptr[column + 1]++;
    } else {
      const off p = next_[column]++;
      pattern_.ind[p] = row, values_[p] = value;
    }
  }
  void fill() {
    for (idx j = 0; j < pattern_.n; j++) pattern_.ptr[j + 1] += pattern_.ptr[j];
    next_.assign(pattern_.ptr.begin(), pattern_.ptr.end() - 1);
    pattern_.ind.resize(pattern_.ptr.back()), values_.resize(pattern_.ptr.back());
    filling_ = true;
  }
  Matrix<T> finish() {
    Matrix<T> matrix{std::move(pattern_), std::move(values_)};
    sort_rows(matrix);
    return matrix;
  }

 private:
  Pattern pattern_;
  std::vector<T> values_;
  std::vector<off> next_;
  bool filling_ = false;
};

// scale[perm[k]], or ones.
std::vector<double> gathered(const std::vector<double>& scale, const std::vector<idx>& perm) {
  std::vector<double> out(perm.size(), 1.0);
  if (!scale.empty())
    for (std::size_t k = 0; k < perm.size(); k++) out[k] = scale[perm[k]];
  return out;
}

}  // namespace

template <class T> std::vector<idx> FrontFactor<T>::row_perm() const {
  std::vector<idx> perm = symbolic_->row_perm;
  if (symbolic_->cholesky) return perm;
  for (idx s = 0; s < symbolic_->nsuper(); s++) {
    const idx start = symbolic_->super_ptr[s], W = shape(s).W;
    for (idx k = 0; k < W; k++)
      if (symbolic_->ldlt) perm[start + k] = symbolic_->row_perm[start + pivots_[start + k]];
      else std::swap(perm[start + k], perm[start + pivots_[start + k]]);
  }
  return perm;
}

template <class T> AnyMatrix FrontFactor<T>::lower() const {
  const std::vector<idx> perm = row_perm();
  const std::vector<double> scale = gathered(symbolic_->row_scale, perm);
  const bool unit = !symbolic_->cholesky;
  const std::vector<idx> new_row = gather(inverse_permutation(perm.data(), symbolic_->n), symbolic_->row_perm);
  Columns<T> columns(symbolic_->n);
  Pace pace;
  for (const bool last : {false, true}) {
    for (idx s = 0; s < symbolic_->nsuper(); s++) {
      const auto [W, H, R] = shape(s);
      const idx start = symbolic_->super_ptr[s];
      const idx* rows = symbolic_->row_ind.data() + symbolic_->row_ptr[s];
      for (idx k = 0; k < W; k++) {
        pace.go_on(R);
        const T* column = panel(s) + off(k) * R;
        const idx j = start + k;
        columns.add(j, j, unit ? T(1) : column[k]);
        for (idx i = k + 1; i < R; i++) {
          const idx row = i < W ? start + i : new_row[rows[i - W]];
          if (column[i] != T(0)) columns.add(j, row, unscaled(column[i], scale[j], 1 / scale[row]));
        }
      }
    }
    if (!last) columns.fill();
  }
  return columns.finish();
}

template <class T> AnyMatrix FrontFactor<T>::upper() const {
  const std::vector<double> row_scale = gathered(symbolic_->row_scale, row_perm());
  const std::vector<double> col_scale = gathered(symbolic_->col_scale, symbolic_->col_perm);
  Columns<T> columns(symbolic_->n);
  Pace pace;
  for (const bool last : {false, true}) {
    for (idx s = 0; s < symbolic_->nsuper(); s++) {
      const auto [W, H, R] = shape(s);
      const idx start = symbolic_->super_ptr[s];
      const idx* rows = symbolic_->row_ind.data() + symbolic_->row_ptr[s];
      const T* Ut = panel(s) + off(R) * W;
      auto add = [&](idx i, idx j, T v, bool keep) {
        if (keep || v != T(0)) columns.add(j, i, unscaled(v, 1 / row_scale[i], 1 / col_scale[j]));
      };
      for (idx k = 0; k < W; k++) {
        pace.go_on(R);
        for (idx j = k; j < W; j++) add(start + k, start + j, panel(s)[k + off(j) * R], j == k);
        for (idx h = 0; h < H; h++) add(start + k, rows[h], Ut[h + off(k) * H], false);
      }
    }
    if (!last) columns.fill();
  }
  return columns.finish();
}

template <class T> Values FrontFactor<T>::diagonal() const {
  const std::vector<double> row_scale = gathered(symbolic_->row_scale, row_perm());
  const std::vector<double> col_scale = gathered(symbolic_->col_scale, col_perm());
  std::vector<T> diagonal(symbolic_->n);
  for (std::size_t k = 0; k < diagonal_.size(); k++)
    diagonal[k] = unscaled(diagonal_[k], 1 / row_scale[k], 1 / col_scale[k]);
  if (symbolic_->ldlt) return diagonal;
  for (idx s = 0; s < symbolic_->nsuper(); s++) {
    const auto [W, H, R] = shape(s);
    for (idx k = 0; k < W; k++) {
      const idx j = symbolic_->super_ptr[s] + k;
      diagonal[j] = unscaled(panel(s)[k + off(k) * R], 1 / row_scale[j], 1 / col_scale[j]);
    }
  }
  return diagonal;
}

template <class T> Values FrontFactor<T>::below_diagonal() const {
  const std::vector<double> scale = gathered(symbolic_->row_scale, row_perm());
  std::vector<T> below(below_diagonal_);
  for (std::size_t k = 0; k + 1 < below.size(); k++) below[k] = unscaled(below[k], 1 / scale[k], 1 / scale[k + 1]);
  return below;
}

template <class T> std::pair<idx, idx> FrontFactor<T>::inertia_of_pivots() const {
  idx positive = 0, negative = 0;
  for (std::size_t k = 0; k < diagonal_.size(); k++) {
    const real_t<T> d = std::real(diagonal_[k]), e = std::abs(below_diagonal_[k]);
    if (e == 0) {
      (d > 0 ? positive : negative)++;
    } else if (d / e * (std::real(diagonal_[++k]) / e) < 1) {
      positive++, negative++;
    } else {
      (d > 0 ? positive : negative) += 2;
    }
  }
  return {positive, negative};
}

#define GS_INSTANTIATE(T)                                     \
  template std::vector<idx> FrontFactor<T>::row_perm() const; \
  template AnyMatrix FrontFactor<T>::lower() const;           \
  template AnyMatrix FrontFactor<T>::upper() const;           \
  template Values FrontFactor<T>::diagonal() const;           \
  template Values FrontFactor<T>::below_diagonal() const;     \
  template std::pair<idx, idx> FrontFactor<T>::inertia_of_pivots() const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
