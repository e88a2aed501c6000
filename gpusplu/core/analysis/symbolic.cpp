#include "analysis/symbolic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/analyze.hpp"
#include "analysis/graph.hpp"
#include "matrix/canonical.hpp"
#include "matrix/scales.hpp"

namespace gs {

bool cut_scales(Symbolic& symbolic, int largest_exponent) {
  const double largest = std::ldexp(1.0, largest_exponent);
  bool any = false;
  for (std::vector<double>* scales : {&symbolic.row_scale, &symbolic.col_scale})
    for (double& scale : *scales) {
      const double cut = std::clamp(scale, 1 / largest, largest);
      any |= std::exchange(scale, cut) != cut;
    }
  return any;
}

template <class T> std::shared_ptr<const Symbolic> with_scales_of(std::shared_ptr<const Symbolic> symbolic) {
  if constexpr (std::is_same_v<real_t<T>, double>) return symbolic;  // scales of any type are in its range
  const double largest = std::ldexp(1.0, largest_scale_exponent<T>);
  const auto fit = [&](const std::vector<double>& scale) {
    const ScaleRange range = range_of(scale);
    return range.least >= 1 / largest && range.largest <= largest;
  };
  if (fit(symbolic->row_scale) && fit(symbolic->col_scale)) return symbolic;
  auto cut_off = std::make_shared<Symbolic>(*symbolic);
  cut_scales(*cut_off, largest_scale_exponent<T>);
  return cut_off;
}

#define GS_INSTANTIATE(T) template std::shared_ptr<const Symbolic> with_scales_of<T>(std::shared_ptr<const Symbolic>);
GS_FOR_SCALARS(GS_INSTANTIATE)

namespace {

bool is_permutation(const std::vector<idx>& perm, idx n) {
  std::vector<char> seen(n, 0);
  if ((off)perm.size() != n) return false;
  for (const idx i : perm)
    if (i < 0 || i >= n || seen[i]++) return false;
  return true;
}

bool is_pairing(const std::vector<idx>& partner, idx n) {
  if (!is_permutation(partner, n)) return false;
  for (idx j = 0; j < n; j++)
    if (partner[partner[j]] != j) return false;
  return true;
}

bool is_forest(const std::vector<idx>& parent) {
  const idx n = (idx)parent.size();
  for (idx j = 0; j < n; j++)
    if (parent[j] != -1 && (parent[j] <= j || parent[j] >= n)) return false;
  return true;
}

// Of a forest with parents after their children.
bool is_postordered(const std::vector<idx>& parent) {
  std::vector<idx> open;  // without their parents yet
  for (idx s = 0; s < (idx)parent.size(); s++) {
    while (!open.empty() && parent[open.back()] == s) open.pop_back();
    open.push_back(s);
  }
  return std::all_of(open.begin(), open.end(), [&](idx s) { return parent[s] < 0; });
}

bool are_scales(const std::vector<double>& scale, idx n) {
  int exponent = 0;
  return scale.empty() || ((off)scale.size() == n && std::all_of(scale.begin(), scale.end(), [&](double power) {
                             return std::isfinite(power) && std::frexp(power, &exponent) == 0.5 &&
                                    std::abs(exponent - 1) <= largest_scale_exponent<double>;
                           }));
}

void validate_numbers(const Symbolic& s) {
  require(s.n >= 0 && s.nnz >= 0 && s.structural_rank >= 0 && s.structural_rank <= s.n && s.lnz >= 0 &&
              s.column_levels >= 0 && s.super_levels >= 0 && s.flops >= 0 && std::isfinite(s.flops) &&
              std::isfinite(s.critical_path) && std::isfinite(s.seconds),
          "a pickled analysis is damaged: a size or count is impossible");
  const std::vector<std::string_view>& names = ordering_names();
  const bool known =
      s.ordering.empty() || s.ordering == "user" || std::find(names.begin(), names.end(), s.ordering) != names.end();
  require(known, "a pickled analysis is damaged: its ordering is unknown");
}

void validate_permutations(const Symbolic& s) {
  const bool complete = !s.row_perm.empty() || !s.col_perm.empty();
  require(!complete || (is_permutation(s.row_perm, s.n) && is_permutation(s.col_perm, s.n)),
          "a pickled analysis is damaged: an order of rows or columns is no permutation");
  require(!complete || s.structural_rank == s.n, "a pickled analysis is damaged: its rank contradicts its structure");
  require(!s.one_triangle() || s.row_perm == s.col_perm,
          "a pickled analysis is damaged: rows and columns differ in order");
  require(are_scales(s.row_scale, s.n) && are_scales(s.col_scale, s.n) && s.row_scale.empty() == s.col_scale.empty(),
          "a pickled analysis is damaged: a scale is no power of two, or out of range");
  require(!s.cholesky || s.row_scale.empty(), "a pickled analysis is damaged: it scales a Hermitian matrix");
  require(!s.ldlt || (!s.cholesky && s.row_scale == s.col_scale),
          "a pickled analysis is damaged: rows and columns differ in scale");
  require(s.pivot_order.empty() || is_permutation(s.pivot_order, s.n),
          "a pickled analysis is damaged: an order of pivots is no permutation");
  require(s.partner.empty() || is_pairing(s.partner, s.n), "a pickled analysis is damaged: its pairs are none");
  require(s.block_ptr.empty() || s.n == 0 || ascends(s.block_ptr, (off)s.block_ptr.size() - 1, s.n, true),
          "a pickled analysis is damaged: its blocks do not ascend to the order of the matrix");
}

// Rows of a front ascend after its columns, and rel_ind gives their places in the front of the parent.
bool has_valid_rows(const Symbolic& s, idx front) {
  const idx above = s.super_parent[front];
  idx previous = s.super_ptr[front + 1] - 1;
  for (off k = s.row_ptr[front]; k < s.row_ptr[front + 1]; previous = s.row_ind[k++]) {
    if (s.row_ind[k] <= previous || s.row_ind[k] >= s.n || above < 0) return false;
    const idx begin = s.super_ptr[above], width = s.super_ptr[above + 1] - begin, place = s.rel_ind[k];
    if (place < 0 || place >= width + (s.row_ptr[above + 1] - s.row_ptr[above])) return false;
    const idx row = place < width ? begin + place : s.row_ind[s.row_ptr[above] + place - width];
    if (row != s.row_ind[k]) return false;
  }
  return true;
}

void validate_fronts(const Symbolic& s) {
  require(
      (off)s.parent.size() == s.n && is_forest(s.parent) && is_forest(s.super_parent) && is_postordered(s.super_parent),
      "a pickled analysis is damaged: its tree is none");
  require((off)s.col_count.size() == s.n, "a pickled analysis is damaged: counts of columns are missing");
  for (idx j = 0; j < s.n; j++)
    require(s.col_count[j] >= 1 && s.col_count[j] <= s.n - j, "a pickled analysis is damaged: a column is too long");
  require(ascends(s.super_ptr, s.nsuper(), s.n, true) && ascends(s.row_ptr, s.nsuper(), (off)s.row_ind.size()) &&
              s.rel_ind.size() == s.row_ind.size(),
          "a pickled analysis is damaged: bounds of its fronts do not ascend");
  const idx last = s.nsuper() - 1;
  require(s.n_interface == 0 || (last >= 0 && s.n_interface == s.super_ptr[last + 1] - s.super_ptr[last]),
          "a pickled analysis is damaged: its interface is no front");
  for (idx front = 0; front < s.nsuper(); front++)
    require(has_valid_rows(s, front), "a pickled analysis is damaged: rows of a front are not those of its parent");
}

// Calls visit(i, j) for the entries of A in permuted rows and columns, until one returns false.
template <class Visit> bool for_all_entries(const Symbolic& s, PatternView A, Visit&& visit) {
  const std::vector<idx> row = inverse_permutation(s.row_perm.data(), s.n);
  for (idx j = 0; j < s.n; j++)
    for (off p = A.ptr[s.col_perm[j]]; p < A.ptr[s.col_perm[j] + 1]; p++)
      if (!visit(row[A.ind[p]], j)) return false;
  return true;
}

}  // namespace

void validate(const Symbolic& s) {
  validate_numbers(s);
  validate_permutations(s);
  if (s.method == Method::front && (s.structural_rank == s.n || !s.super_ptr.empty())) return validate_fronts(s);
  require(!s.one_triangle() && s.n_interface == 0 && s.parent.empty() && s.col_count.empty() && s.super_ptr.empty() &&
              s.super_parent.empty() && s.row_ptr.empty() && s.row_ind.empty() && s.rel_ind.empty(),
          "a pickled analysis is damaged: it has fronts and none");
}

void validate(const Symbolic& s, PatternView A) {
  require(s.n == A.n && s.nnz == A.nnz(), "a pickled analysis is damaged: it is of another matrix");
  require(s.structural_rank < s.n || (off)s.row_perm.size() == s.n,
          "a pickled analysis is damaged: it has no permutations");
  if (s.row_perm.empty()) return;
  const bool fronts = s.method == Method::front;
  const std::vector<idx> part = part_of_each(fronts ? s.super_ptr : s.block_ptr, s.n);
  const bool fits = for_all_entries(s, A, [&](idx i, idx j) {
    if (!fronts) return part[i] <= part[j];
    if (i < j && s.one_triangle()) return true;  // the other triangle is checked
    return s.has_row(part[std::min(i, j)], std::max(i, j));
  });
  require(fits, "a pickled analysis is damaged: an entry of the matrix has no place in its structure");
}

}  // namespace gs
