// The factors of a Factor as users get them, without the scales of the computation.
//
// Dr (A + E) Dc = L U with E small relative to Dr A Dc says little about E relative to A: where rows or columns differ
// much in size, L and U without scales multiply to A up to errors as large as its largest entry, or leave the range.
// Solves are refined; users of L and U get the result of partial pivoting of the unscaled A, as from SuperLU, where it
// is more accurate.
//
// Fronts eliminate columns in a postorder. If the caller gave an order, factors of one triangle are extracted in it:
// this only renumbers the pivots, except for exchanges inside a front. Row exchanges of LU inside a front could lead
// back to columns that come later in the caller's order, so L and U then come from a column LU in that order.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <type_traits>
#include <utility>

#include "analysis/graph.hpp"
#include "base/operation.hpp"
#include "matrix/modulus.hpp"
#include "matrix/sort_rows.hpp"
#include "numeric/error_checks.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

template <class T> using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;

// y += scale M x, and with `moduli` y += |scale| |M| x.
template <class T, class X>
void add_product(PatternView M, const T* values, double scale, bool moduli, const X* x, X* y) {
  Pace pace;
  for (idx j = 0; j < M.n; pace.go_on(1 + M.ptr[j + 1] - M.ptr[j]), j++)
    for (off p = M.ptr[j]; p < M.ptr[j + 1]; p++) {
      const X v = scaled(X(values[p]), scale);
      y[M.ind[p]] += (moduli ? X(std::abs(v)) : v) * x[j];
    }
}

// scale L U v; with `moduli`, with their moduli.
template <class T> std::vector<Wide<T>> product_of_lu(const AnyMatrix& L, const AnyMatrix& U, double scale, bool moduli,
                                                      const std::vector<Wide<T>>& v) {
  std::vector<Wide<T>> of_U(v.size()), of_L(v.size());
  add_product(U.pattern.view(), (const T*)data_of(U.values), scale, moduli, v.data(), of_U.data());
  add_product(L.pattern.view(), (const T*)data_of(L.values), 1, moduli, of_U.data(), of_L.data());
  return of_L;
}

// scale L D L^H v, or L D L^T v, likewise.
template <class T> std::vector<Wide<T>> product_of_ldlt(const AnyMatrix& L, const std::vector<T>& d,
                                                        const std::vector<T>& e, bool hermitian, double scale,
                                                        bool moduli, const std::vector<Wide<T>>& v) {
  using X = Wide<T>;
  const auto taken = [&](X value) { return moduli ? X(std::abs(value)) : value; };
  const PatternView pattern = L.pattern.view();
  const T* const values = (const T*)data_of(L.values);
  std::vector<X> right(v.size()), of_D(v.size()), of_L(v.size());
  Pace pace;
  for (idx j = 0; j < pattern.n; pace.go_on(1 + pattern.ptr[j + 1] - pattern.ptr[j]), j++)
    for (off p = pattern.ptr[j]; p < pattern.ptr[j + 1]; p++)
      right[j] += taken(conj_if(X(values[p]), hermitian)) * v[pattern.ind[p]];
  for (idx k = 0; k < pattern.n; k++) {
    of_D[k] += taken(scaled(X(d[k]), scale)) * right[k];
    if (k + 1 == pattern.n) break;
    of_D[k + 1] += taken(scaled(X(e[k]), scale)) * right[k];
    of_D[k] += taken(scaled(conj_if(X(e[k]), hermitian), scale)) * right[k + 1];
  }
  add_product(pattern, values, 1, moduli, of_D.data(), of_L.data());
  return of_L;
}

// The largest entry of (L U - Pr A Pc) v relative to that of A, for a vector v of ones with signs, including possible
// rounding errors of products of L and U; infinite where numbers are out of range. `of_product` multiplies L U or
// L D L^H.
template <class T, class Product> double error_of_triangles(PatternView A, const T* values, double largest_of_A,
                                                            const Numeric& numeric, Product&& of_product) {
  using X = Wide<T>;
  const double scale = std::ldexp(1.0, -std::clamp(std::ilogb(largest_of_A), -1000, 1000));
  const std::vector<T> signs = known_answer<T>(A.n, 1);
  const std::vector<X> v(signs.begin(), signs.end());
  const std::vector<idx> row_perm = numeric.row_perm(), col_perm = numeric.col_perm();
  std::vector<X> by_columns(A.n), of_A(A.n);
  for (idx k = 0; k < A.n; k++) by_columns[col_perm[k]] = v[k];
  add_product(A, values, scale, false, by_columns.data(), of_A.data());
  const std::vector<X> found = of_product(scale, false, v), sizes = of_product(scale, true, std::vector<X>(A.n, X(1)));
  double largest = 0;
  for (idx k = 0; k < A.n; k++)
    largest = max_or_nan(largest, std::abs(found[k] - of_A[row_perm[k]]) + eps<T> * std::abs(sizes[k]));
  const double error = largest / (largest_of_A * scale);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

// The order of pivots nearest to the wanted one in which L stays lower triangular: new pivot k is old pivot order[k].
// wanted[k] is the wanted position of old pivot k, all distinct. Where joined[k], old pivots k and k + 1 form a block
// of D and stay together, at the smaller of their positions. L is lower triangular with its diagonal, in compressed
// columns.
//
// Returns the smallest order by `wanted` of all that L allows, pivot by pivot; this is the wanted order itself if L is
// lower triangular in it, which holds without exchanges: fronts are eliminated in a postorder of the elimination tree,
// which is equivalent to any order of its own columns (Liu, The role of elimination trees in sparse factorization, SIAM
// J. Matrix Anal. Appl. 11 (1990), section 6). Cost: O(nnz(L) + n log n).
std::vector<idx> nearest_order(PatternView L, const std::vector<idx>& wanted, const std::vector<char>& joined) {
  const idx n = L.n;
  const auto first_of = [&](idx k) { return k > 0 && joined[k - 1] ? k - 1 : k; };  // of its block
  const auto last_of = [&](idx k) { return joined[k] ? k + 1 : k; };
  std::vector<idx> waiting(n);  // by first pivot of a block: entries of its rows in columns that are not placed yet
  const auto for_rows_behind = [&](idx k, auto&& visit) {
    for (idx j = k; j <= last_of(k); j++)
      for (off p = L.ptr[j]; p < L.ptr[j + 1]; p++)
        if (const idx block = first_of(L.ind[p]); block != k) visit(block);
  };
  for (idx k = 0; k < n; k = last_of(k) + 1) for_rows_behind(k, [&](idx block) { waiting[block]++; });
  std::priority_queue<std::pair<idx, idx>, std::vector<std::pair<idx, idx>>, std::greater<>> ready;
  const auto add = [&](idx k) { ready.emplace(std::min(wanted[k], wanted[last_of(k)]), k); };
  for (idx k = 0; k < n; k = last_of(k) + 1)
    if (waiting[k] == 0) add(k);
  std::vector<idx> order;
  order.reserve(n);
  while (!ready.empty()) {
    const idx k = ready.top().second;
    ready.pop();
    for (idx j = k; j <= last_of(k); j++) order.push_back(j);
    for_rows_behind(k, [&](idx block) {
      if (--waiting[block] == 0) add(block);
    });
  }
  return order;
}

// P L P^T, with an order as returned by `nearest_order`.
AnyMatrix in_order(const AnyMatrix& L, const std::vector<idx>& order) {
  const std::vector<off>& ptr = L.pattern.ptr;
  const RawVector<idx>& ind = L.pattern.ind;
  const idx n = L.pattern.n;
  const std::vector<idx> place = inverse_permutation(order.data(), n);
  return std::visit(
      [&]<class T>(const std::vector<T>& values) -> AnyMatrix {
        Matrix<T> permuted;
        permuted.pattern.n = n;
        permuted.pattern.ptr.assign((std::size_t)n + 1, 0);
        permuted.pattern.ind.reserve(ind.size()), permuted.values.reserve(values.size());
        for (idx k = 0; k < n; k++) {
          for (off p = ptr[order[k]]; p < ptr[order[k] + 1]; p++)
            permuted.pattern.ind.push_back(place[ind[p]]), permuted.values.push_back(values[p]);
          permuted.pattern.ptr[k + 1] = (off)permuted.pattern.ind.size();
        }
        sort_rows(permuted);
        return permuted;
      },
      L.values);
}

}  // namespace

double Factor::error_of_lu(const Numeric& numeric) const {
  const AnyMatrix L = numeric.lower(), U = numeric.upper();
  return typed([&]<class T>(T) {
    return error_of_triangles(A_, values_as<T>(), largest_, numeric,
                              [&](const auto&... given) { return product_of_lu<T>(L, U, given...); });
  });
}

double Factor::error_of_ldlt() const {
  const AnyMatrix L = front_->lower();
  const Values diagonal = front_->diagonal(), below = front_->below_diagonal();
  return typed([&]<class T>(T) {
    const auto &d = std::get<std::vector<T>>(diagonal), &e = std::get<std::vector<T>>(below);
    return error_of_triangles(A_, values_as<T>(), largest_, *front_, [&](const auto&... given) {
      return product_of_ldlt<T>(L, d, e, options_.hermitian, given...);
    });
  });
}

// Reorders one value per pivot into the order of extraction.
template <class Each> std::vector<Each> Factor::taken_out(const std::vector<Each>& each) const {
  if (own_order_.empty()) return each;
  std::vector<Each> out(each.size());
  for (std::size_t k = 0; k < out.size(); k++) out[k] = each[own_order_[k]];
  return out;
}

Values Factor::taken_out(const Values& values) const {
  return std::visit([&](const auto& each) -> Values { return taken_out(each); }, values);
}

// Measures the triangles once per factorization, and only if pivots were perturbed, the error bound is poor or
// multipliers may leave the range without scales. Requires exclusive use of the factor.
void Factor::fit_triangles() {
  triangles_.reset(), own_order_.clear(),
      triangles_error_ = 0;  // restart: an earlier call may have been interrupted
  const bool orders_columns = front_ && !options_.own_order.empty();
  if (orders_columns && symbolic_->one_triangle()) fit_own_order();
  if (orders_columns && !symbolic_->one_triangle()) return fit_columns(std::numeric_limits<double>::infinity());
  const double apart = scales_[0].largest / scales_[0].least;
  const bool in_range = !is_wide() && apart < std::sqrt(precision_.largest);
  const bool good = info_.n_perturbed == 0 && in_range && policy_.is_inverse(error_bound());
  if (good || symbolic_->cholesky || (!front_ && !column_->factored())) return;
  triangles_error_ = symbolic_->ldlt ? error_of_ldlt() : error_of_lu(numeric());
  if (symbolic_->ldlt) return;
  if (policy_.is_inverse(triangles_error_) || options_.pivoting == Pivoting::fixed) return;
  fit_columns(triangles_error_);
}

// By partial pivoting of the unscaled A, if its error is less.
void Factor::fit_columns(double most_error) {
  const Symbolic unscaled = unscaled_analysis();
  if (unscaled.structural_rank < unscaled.n) return;
  auto column = make_column_lu(dtype_, unscaled, A_);
  const double threshold = pivot_threshold_of(Fallback::unscaled, options_.pivot_threshold);
  const FactorInfo info = column->factor(values_.data(), {threshold});
  if (info.status != FactorInfo::ok) return;
  const double error = error_of_lu(*column);
  if (error < most_error) triangles_ = std::move(column), triangles_error_ = error;
}

// In the caller's order, or the nearest one that exchanged pivots allow.
void Factor::fit_own_order() {
  const std::vector<idx> place = inverse_permutation(options_.own_order.data(), A_.n);
  const std::vector<idx> wanted = gather(place, front_->col_perm());
  if (symbolic_->cholesky) {
    own_order_ = inverse_permutation(wanted.data(), A_.n);
    return;
  }
  std::vector<char> joined(A_.n);
  typed([&]<class T>(T) {
    const auto below = std::get<std::vector<T>>(front_->below_diagonal());
    for (idx k = 0; k < A_.n; k++) joined[k] = below[k] != T(0);
  });
  own_order_ = nearest_order(front_->lower().pattern.view(), wanted, joined);
}

// Queries the factors that L and U are taken from. It may compute them first; callers of const functions do not see
// this.
template <class Query> auto Factor::taken_by(Query&& query) const {
  for (;;) {
    {
      const UseLock::Shared shared = held();
      if (triangles_fit_) return query(triangles_ ? *triangles_ : numeric());
    }
    const UseLock::Exclusive own = use_.exclusive();
    const_cast<Factor*>(this)->recover();
    if (triangles_fit_) continue;  // another thread computed them meanwhile
    const_cast<Factor*>(this)->fit_triangles();
    const_cast<Factor*>(this)->triangles_fit_ = true;
  }
}

bool Factor::has_accurate_triangles() const {
  return taken_by([&](const Numeric&) { return policy_.may_be_inverse(triangles_error_); });
}

std::vector<idx> Factor::row_perm() const {
  return taken_by([&](const Numeric& numeric) { return taken_out(numeric.row_perm()); });
}

std::vector<idx> Factor::col_perm() const {
  return taken_by([&](const Numeric& numeric) { return taken_out(numeric.col_perm()); });
}

AnyMatrix Factor::lower() const {
  begin_phase("extract");
  return taken_by([&](const Numeric& numeric) {
    AnyMatrix L = numeric.lower();
    return own_order_.empty() ? std::move(L) : in_order(L, own_order_);
  });
}

std::pair<Values, Values> Factor::pivots() const {
  return taken_by([&](const Numeric&) {
    return std::pair(taken_out(numeric().diagonal()), taken_out(numeric().below_diagonal()));
  });
}

AnyMatrix Factor::upper() const {
  begin_phase("extract");
  return taken_by([](const Numeric& numeric) { return numeric.upper(); });
}

}  // namespace gs
