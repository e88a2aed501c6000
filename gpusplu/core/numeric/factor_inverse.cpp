// The selected inverse of a Factor, certified.
//
// Solves are refined; entries of the inverse cannot be. But each column and row of A checks its own entries
// (numeric/error_checks.hpp). The checks may miss perturbed pivots, and the effect of large multipliers, or of scales
// of other values, on entries of the inverse next to small entries of A. If a few columns and rows exceed the error
// limit of the accuracy policy, solves replace their entries. If more do, or if there are such pivots, all entries come
// from a column LU of the same values with partial pivoting or, as the last fallback, from solves.
#include <algorithm>

#include "base/operation.hpp"
#include "matrix/products.hpp"
#include "numeric/error_checks.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

constexpr idx columns_per_solve = 32;  // columns of the identity
constexpr int refinements = 2;         // of replaced columns
constexpr int most_rounds = 8;         // of replacements: new entries reveal errors of others that had cancelled

// Solves with refinement, using the unrefined solve(trans, nrhs, b, x).
template <class T, class Solve>
void solve_refined(PatternView A, const T* values, Trans trans, idx nrhs, const T* b, T* x, Solve&& solve) {
  std::vector<T> r((size_t)A.n * nrhs);
  std::vector<ResidualNorms> norms(nrhs);
  solve(trans, nrhs, b, x);
  for (int step = 0; step < refinements; step++) {
    residual(A, values, trans, x, b, r.data(), nrhs, norms.data());
    solve(trans, nrhs, r.data(), r.data());
    for (size_t i = 0; i < r.size(); i++) x[i] += r[i];
  }
}

// Recomputes the entries of the inverse on P in the columns and rows with errors above the limit, unless there are
// many. Returns the error of all entries.
template <class T, class Solve> double solve_missed(PatternView A, const T* values, PatternView P, T* inverse,
                                                    const AccuracyPolicy& policy, Solve&& solve) {
  std::vector<idx> missed[2];
  double worst = 0;
  evaluate_ones(A, values, P, inverse, [&](bool of_row, idx i, double error) {
    if (!policy.is_inverse(error)) missed[of_row].push_back(i);
    worst = max_or_nan(worst, error);
  });
  if (std::max(missed[0].size(), missed[1].size()) > columns_per_solve) return worst;
  for (const bool of_row : {false, true}) {  // a row of A corresponds to a column of the inverse
    const idx nrhs = (idx)missed[of_row].size();
    if (nrhs == 0) continue;
    std::vector<T> b((size_t)A.n * nrhs), x(b.size());
    std::vector<idx> which(A.n, -1);
    for (idx r = 0; r < nrhs; r++) which[missed[of_row][r]] = r, b[(size_t)r * A.n + missed[of_row][r]] = T(1);
    solve_refined(A, values, of_row ? Trans::none : Trans::transpose, nrhs, b.data(), x.data(), solve);
    for (idx j = 0; j < P.n; j++)
      for (off k = P.ptr[j]; k < P.ptr[j + 1]; k++) {
        const idx i = P.ind[k], r = which[of_row ? i : j];
        if (r >= 0) inverse[k] = x[(size_t)r * A.n + (of_row ? j : i)];
      }
  }
  return identity_error(A, values, P, inverse);
}

// The entries of A and of the factors, in A's numbering.
Pattern pattern_of_factors(const Numeric& numeric, PatternView A, bool one_triangle) {
  const std::vector<idx> row_perm = numeric.row_perm(), col_perm = numeric.col_perm();
  const Pattern lower = numeric.lower().pattern, upper = one_triangle ? Pattern() : numeric.upper().pattern;
  Pace pace;
  const auto each = [&](auto&& visit) {  // visit(row, column)
    for (const PatternView factor : {lower.view(), upper.view()})
      for (idx b = 0; b < factor.n; pace.go_on(1 + factor.ptr[b + 1] - factor.ptr[b]), b++)
        for (off p = factor.ptr[b]; p < factor.ptr[b + 1]; p++) {
          visit(row_perm[factor.ind[p]], col_perm[b]);
          if (one_triangle && factor.ind[p] != b) visit(row_perm[b], col_perm[factor.ind[p]]);
        }
    for (idx j = 0; j < A.n; j++)
      for (off k = A.ptr[j]; k < A.ptr[j + 1]; k++) visit(A.ind[k], j);
  };
  std::vector<off> next(A.n + 1);
  each([&](idx, idx j) { next[j + 1]++; });
  for (idx j = 0; j < A.n; j++) next[j + 1] += next[j];
  Pattern all;
  all.n = A.n;
  all.ptr = {0};
  all.ind.resize(next[A.n]);
  each([&](idx i, idx j) { all.ind[next[j]++] = i; });
  off begin = 0, end = 0;
  for (idx j = 0; j < A.n; j++) {
    const auto first = all.ind.begin() + begin, last = all.ind.begin() + next[j];
    pace.go_on(1 + next[j] - begin);
    std::sort(first, last);
    end = std::copy(first, std::unique(first, last), all.ind.begin() + end) - all.ind.begin();
    begin = next[j];
    all.ptr.push_back(end);
  }
  all.ind.resize(end);
  return all;
}

// The entries of A and those of `more` that have a place; empty if A has all of them.
Pattern joined(PatternView A, PatternView more, const std::vector<char>& has_place) {
  Pattern both;
  both.n = A.n;
  both.ptr.push_back(0);
  both.ind.reserve(A.nnz() + more.nnz());
  for (idx j = 0; j < A.n; j++) {
    off k = A.ptr[j];
    const auto take_up_to = [&](idx i) {
      while (k < A.ptr[j + 1] && A.ind[k] <= i) both.ind.push_back(A.ind[k++]);
    };
    for (off p = more.ptr[j]; p < more.ptr[j + 1]; p++) {
      if (!has_place[p]) continue;
      const idx i = more.ind[p];
      take_up_to(i);
      if (k == A.ptr[j] || A.ind[k - 1] != i) both.ind.push_back(i);
    }
    take_up_to(A.n);
    both.ptr.push_back((off)both.ind.size());
  }
  return both.ptr.back() > A.nnz() ? both : Pattern();
}

bool has_entry(PatternView A, idx i, idx j) { return std::binary_search(A.ind + A.ptr[j], A.ind + A.ptr[j + 1], i); }

}  // namespace

bool Factor::has_any(PatternView more) const {
  for (idx j = 0; j < more.n; j++)
    for (off p = more.ptr[j]; p < more.ptr[j + 1]; p++)
      if (has_entry(A_, more.ind[p], j)) return true;
  if (!front_ && (!column_->factored() || column_->is_wide())) return false;
  const std::vector<char> places = numeric().has_places(more);
  return std::find(places.begin(), places.end(), 1) != places.end();
}

// Computes the inverse with these factors and keeps it in `best` if it is more accurate.
void Factor::try_inverse(const Numeric& numeric, const InverseOf& of, InverseEntries& best) const {
  InverseEntries found;
  const bool one_triangle = &numeric == front_.get() && symbolic_->one_triangle();
  if (of.factors) found.pattern = pattern_of_factors(numeric, A_, one_triangle);
  if (of.more.nnz() > 0) found.pattern = joined(A_, of.more, numeric.has_places(of.more));
  const PatternView P = found.on(A_);
  found.values = zeros(dtype_, P.nnz());
  numeric.inverse_on_pattern(P, data_of(found.values), P.ind == A_.ind);
  found.error = error_of_inverse(P, found.values);
  if (found.error < best.error) best = std::move(found);
}

double Factor::error_of_inverse(PatternView P, const Values& inverse) const {
  return typed([&]<class T>(T) { return identity_error(A_, values_as<T>(), P, (const T*)data_of(inverse)); });
}

void Factor::try_inverse_by_partial_pivoting(const InverseOf& of, InverseEntries& best) const {
  for (const Fallback fallback : {Fallback::scaled, Fallback::unscaled}) {
    const Symbolic reanalyzed = fallback == Fallback::unscaled ? unscaled_analysis() : analysis_by_columns(true);
    if (reanalyzed.structural_rank < reanalyzed.n) return;
    const auto column = make_column_lu(dtype_, reanalyzed, A_);
    const double threshold = pivot_threshold_of(fallback, options_.pivot_threshold);
    if (column->factor(values_.data(), {threshold}).status != FactorInfo::ok) continue;
    try_inverse(*column, of, best);
    if (policy_.is_inverse(best.error)) return;
  }
}

// Row i of A requires entries of column i of A^-1.
Factor::InverseEntries Factor::inverse_by_solves() {
  std::vector<off> next(A_.n + 1);
  for (off k = 0; k < A_.nnz(); k++) next[A_.ind[k] + 1]++;
  for (idx i = 0; i < A_.n; i++) next[i + 1] += next[i];
  std::vector<std::pair<idx, off>> by_row(A_.nnz());  // column, entry
  for (idx j = 0; j < A_.n; j++)
    for (off k = A_.ptr[j]; k < A_.ptr[j + 1]; k++) by_row[next[A_.ind[k]]++] = {j, k};
  InverseEntries found;
  found.values = zeros(dtype_, A_.nnz());
  RawVector<std::byte> b(A_.n * columns_per_solve * precision_.bytes), x(b.size());
  off p = 0;
  for (idx first = 0; first < A_.n; first += columns_per_solve) {
    const idx nrhs = std::min(A_.n - first, columns_per_solve);
    std::fill(b.begin(), b.end(), std::byte(0));
    typed([&]<class T>(T) {
      for (idx r = 0; r < nrhs; r++) ((T*)b.data())[(size_t)r * A_.n + first + r] = T(1);
    });
    solve_by_policy(Trans::none, nrhs, b.data(), x.data());
    typed([&]<class T>(T) {
      T* const inverse = (T*)data_of(found.values);
      for (idx r = 0; r < nrhs; r++)
        for (; p < next[first + r]; p++)
          inverse[by_row[p].second] = ((const T*)x.data())[(size_t)r * A_.n + by_row[p].first];
    });
  }
  found.error = error_of_inverse(A_, found.values);
  return found;
}

Factor::InverseEntries Factor::inverse(const InverseOf& of) {
  InverseEntries best;
  {
    const UseLock::Shared shared = held();
    if (of.more.n > 0 && !has_any(of.more)) return {.accurate = true};
    if (!front_ && !column_->factored()) throw SingularError(-1);  // the attempt to choose new pivots failed
    const bool shown = symbolic_->cholesky || (info_.n_perturbed == 0 &&
                                               policy_.ones_tell(info_.max_multiplier, info_.pivot_growth * spread()));
    if (front_ && shown) {
      try_inverse(*front_, of, best);
      for (int round = 0; round < most_rounds && !policy_.is_inverse(best.error) && !best.empty(); round++)
        best.error = typed([&]<class T>(T) {
          return solve_missed(A_, values_as<T>(), best.on(A_), (T*)data_of(best.values), policy_,
                              [&](auto&&... args) { unchecked_solve(args...); });
        });
    }
    if (column_ && !column_->is_wide() && shown) try_inverse(*column_, of, best);
    if (!policy_.is_inverse(best.error) && policy_.may_choose_pivots(0, true)) {
      try_inverse_by_partial_pivoting(of, best);
      std::lock_guard lock(use_.counts);
      stats_.n_repivoted += !symbolic_->ldlt;
    }
  }
  best.accurate = policy_.may_be_inverse(best.error);
  if (best.accurate) return best;
  const UseLock::Exclusive own = use_.exclusive();
  recover();
  best = inverse_by_solves();
  best.accurate = policy_.may_be_inverse(best.error);
  return best;
}

}  // namespace gs
