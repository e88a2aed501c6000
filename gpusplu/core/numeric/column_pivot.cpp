#include "base/operation.hpp"
#include "base/types.hpp"
#include "base/wide.hpp"
#include "numeric/column_nodes.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

namespace gs {
namespace {

// The state of one factorization. Rows are B's throughout.
template <class T> class PivotSearch {
 public:
  using Real = real_t<T>;
  PivotSearch(const PermutedPattern& B, const T* values, const Real* row_scale, const Real* col_scale,
              const PivotOptions& options, ColumnNodes<T>& out, std::vector<idx>& row_order)
      : B_(B),
        values_(values),
        row_scale_(row_scale),
        col_scale_(col_scale),
        options_(options),
        out_(out),
        row_order_(row_order),
        n_((idx)B.first.size()) {
    row_order_.resize(n_);
    std::iota(row_order_.begin(), row_order_.end(), 0);
    rows_.resize(n_);
    for (idx i = 0; i < n_; i++) rows_[i].column = rows_[i].mark = -1, rows_[i].position = i;
    work_.assign(n_, T(0));
    stack_.resize(n_), order_.resize(n_);
    out_.node.resize(n_ + 1);
    out_.pivot.resize(n_), out_.inverse_pivot.resize(n_);
  }

  // Reserves what the analysis expects and one more column, up to a limit in case the estimate is far too large:
  // unwritten memory costs address space only, but memory from the system faults page by page each time.
  void reserve(const std::vector<idx>& block_ptr) {
    idx largest = 0;
    for (std::size_t block = 0; block + 1 < block_ptr.size(); block++)
      largest = std::max(largest, block_ptr[block + 1] - block_ptr[block]);
    const off unknown = 2 * B_.ptr[n_] + n_, outside = block_ptr.size() > 2 ? B_.ptr[n_] : 0;
    const off expected = B_.lower > 0 ? std::min(unknown, B_.lower + largest + 1) : unknown;
    out_.lower_row.resize(expected), out_.lower.resize(expected);
    out_.upper_row.resize(expected + outside), out_.upper.resize(expected + outside);
  }

  FactorInfo run(const std::vector<idx>& block_ptr) {
    reserve(block_ptr);
    for (std::size_t block = 0; block + 1 < block_ptr.size(); block++) {
      const idx begin = block_ptr[block], end = block_ptr[block + 1];
      for (idx k = begin; k < end; k++) {
        if (!(end - begin == 1 ? single(k) : column(k, begin, end))) return info_;
        pace(k);
      }
      const bool has_lower = end - begin > 1;
      if (!has_lower && !out_.phase.empty() && !out_.phase.back().has_lower) out_.phase.back().end = end;
      else out_.phase.push_back({begin, end, has_lower});
    }
    out_.node[n_] = {lower_end_, lower_end_, upper_end_, upper_end_, 0, n_, 0, 0};
    out_.lower_row.resize(lower_end_), out_.lower.resize(lower_end_);
    out_.upper_row.resize(upper_end_), out_.upper.resize(upper_end_);
    idx* const column_of = order_.data();
    for (idx i = 0; i < n_; i++) column_of[i] = rows_[i].column;
    for (idx& row : out_.lower_row) row = column_of[row];
    out_.a_row.resize(B_.row.size());
    for (std::size_t p = 0; p < B_.row.size(); p++) out_.a_row[p] = column_of[B_.row[p]];
    info_.max_entry = (double)largest_A_;
    info_.pivot_growth = largest_A_ > Real(0) ? (double)(largest_U_ / largest_A_) : 0;
    return info_;
  }

 private:
  // The data of a row that the search and the elimination read, kept together because they access rows in random order.
  struct Row {
    idx column;             // column that it is the pivot of, -1 if none
    idx mark;               // last column with this row in its reach
    off lower, pruned_end;  // its column of L for the search: these entries suffice to reach the rest
    idx n_lower;            // entries of the whole column
    idx position;           // inverse of row_order: current position
  };
  struct Visit {
    off cursor;
    idx row;
  };

  const PermutedPattern& B_;
  const T* values_;
  const Real *row_scale_, *col_scale_;
  const PivotOptions& options_;
  ColumnNodes<T>& out_;
  std::vector<idx>& row_order_;
  idx n_;
  FactorInfo info_;
  double reported_ = 0;  // of info_.flops
  Real largest_A_{0}, largest_U_{0};
  off lower_end_ = 0, upper_end_ = 0;
  RawVector<Row> rows_;
  RawVector<Visit> stack_;
  RawVector<idx> order_;
  RawVector<T> work_;

  template <class V> static void grow(V& rows, auto& values, off needed) {
    if (needed <= (off)rows.size()) return;
    rows.resize(2 * needed), values.resize(2 * needed);
  }

  // Column k of the given B.
  struct Given {
    const idx *row, *end;
    const T* value;
    double scale;
  };
  Given given(idx k) const {
    const idx* const rows = B_.row.data();
    return {rows + B_.ptr[k], rows + B_.ptr[k + 1], values_ + B_.first[k], col_scale_ ? (double)col_scale_[k] : 1.0};
  }
  T entry(idx row, const T& v, double col_scale) const {
    if (!row_scale_) return v;
    // one factor, which overflows for subnormal entries and stored zeros
    return scaled(v, std::min((double)row_scale_[row] * col_scale, std::numeric_limits<double>::max() / 2));
  }

  // Reports progress and checks for interrupts about every 50 microseconds.
  void pace(idx k) {
    if (info_.flops - reported_ < 5e4 && k % 256 != 0) return;
    have_done(info_.flops - reported_);
    reported_ = info_.flops;
    go_on();
  }

  bool fail(FactorInfo::Status status, idx k) {
    info_.status = status;
    info_.column = k;
    return false;
  }

  // Depth-first search from a row through the pruned columns of L. Stores finished pivotal rows in order_ from the top
  // down (topological order), rows without a pivot in the new column of L.
  idx search(idx root, idx k, idx top) {
    Row* const rows = rows_.data();
    idx *const lower_row = out_.lower_row.data(), *const order = order_.data();
    idx* new_row = lower_row + lower_end_;
    Visit* visit = stack_.data();
    rows[root].mark = k;
    *visit = {rows[root].lower, root};
    while (visit >= stack_.data()) {
      auto [p, row] = *visit;
      const off end = rows[row].pruned_end;
      for (; p < end; p++) {
        const idx next = lower_row[p];
        Row& other = rows[next];
        if (other.mark == k) continue;
        other.mark = k;
        if (other.column < 0) {
          *new_row++ = next;
          continue;
        }
        visit->cursor = p + 1;
        *++visit = {other.lower, next};
        break;
      }
      if (p == end) {
        order[--top] = row;
        visit--;
      }
    }
    lower_end_ = new_row - lower_row;
    return top;
  }

  // The column of a block of order 1, without elimination or choice.
  bool single(idx k) {
    const Given column = given(k);
    grow(out_.upper_row, out_.upper, upper_end_ + (column.end - column.row));
    const off upper_begin = upper_end_;
    T pivot(0);
    const T* value = column.value;
    for (const idx* row = column.row; row < column.end; row++) {
      const T v = entry(*row, *value++, column.scale);
      const Real size = abs1(v);
      if (!(size <= std::numeric_limits<Real>::max())) return fail(FactorInfo::not_finite, k);
      largest_A_ = std::max(largest_A_, size);
      if (*row == k) {
        pivot = v;
      } else {
        out_.upper_row[upper_end_] = rows_[*row].column;
        out_.upper[upper_end_++] = v;
      }
    }
    out_.node[k] = {lower_end_, lower_end_, upper_begin, upper_begin, 0, k, 0, (idx)(upper_end_ - upper_begin)};
    rows_[k].column = k;
    return pivot == T(0) ? fail(FactorInfo::singular, k) : take_pivot(k, pivot);
  }

  // False if the pivot or its reciprocal is out of range.
  bool take_pivot(idx k, const T& pivot) {
    const Real size = abs1(pivot);
    const T inverse = T(1) / pivot;
    if (!(size <= std::numeric_limits<Real>::max())) return fail(FactorInfo::not_finite, k);
    if (!(abs1(inverse) <= std::numeric_limits<Real>::max())) return fail(FactorInfo::not_finite, k);
    info_.max_pivot = std::max(info_.max_pivot, (double)size);
    info_.min_pivot = k == 0 ? (double)size : std::min(info_.min_pivot, (double)size);
    largest_U_ = std::max(largest_U_, size);
    out_.pivot[k] = pivot;
    out_.inverse_pivot[k] = inverse;
    return true;
  }

  static bool must_divide(const T& pivot) {
    if constexpr (std::is_floating_point_v<Real>) return abs1(pivot) > largest_with_reciprocal<T>;
    else return false;
  }

  bool column(idx k, idx block_begin, idx block_end) {
    grow(out_.lower_row, out_.lower, lower_end_ + block_end - block_begin);
    const Given column = given(k);
    grow(out_.upper_row, out_.upper, upper_end_ + block_end - block_begin + (column.end - column.row));
    const off lower_begin = lower_end_, upper_begin = upper_end_;
    Row* const rows = rows_.data();
    T* const work = work_.data();
    idx* const lower_row = out_.lower_row.data();
    const T* value = column.value;
    Real largest = largest_A_;
    idx top = n_, n_outer = 0;
    for (const idx* next = column.row; next < column.end; next++) {
      const idx row = *next;
      const T v = entry(row, *value++, column.scale);
      const Real size = abs1(v);
      if (!(size <= std::numeric_limits<Real>::max())) return fail(FactorInfo::not_finite, k);
      largest = std::max(largest, size);
      work[row] = v;
      if (row < block_begin) {  // outside the diagonal blocks: no elimination
        order_[n_outer++] = row;
      } else if (rows[row].mark != k) {
        if (rows[row].column >= 0) {
          top = search(row, k, top);
        } else {
          rows[row].mark = k;
          lower_row[lower_end_++] = row;
        }
      }
    }
    largest_A_ = largest;
    eliminate(top);
    if (info_.flops > options_.most_flops) return fail(FactorInfo::not_finite, k);
    for (idx i = 0; i < n_outer; i++) {
      out_.upper_row[upper_end_] = rows_[order_[i]].column;
      out_.upper[upper_end_++] = work_[order_[i]];
      work_[order_[i]] = T(0);
    }
    if (!choose_pivot(k, lower_begin)) return false;
    out_.node[k] = {lower_begin, lower_begin, upper_begin, upper_begin, 0, k, (idx)(lower_end_ - lower_begin), n_outer};
    Row& pivot = rows_[row_order_[k]];
    pivot.column = k, pivot.lower = lower_begin, pivot.pruned_end = lower_end_;
    pivot.n_lower = (idx)(lower_end_ - lower_begin);
    for (idx i = top; i < n_; i++) prune(rows_[order_[i]], row_order_[k]);
    return true;
  }

  void eliminate(idx top) {
    for (; top < n_; top++) {
      const idx row = order_[top];
      const T u = work_[row];
      work_[row] = T(0);
      out_.upper_row[upper_end_] = rows_[row].column;
      out_.upper[upper_end_++] = u;
      largest_U_ = std::max(largest_U_, abs1(u));
      const idx count = rows_[row].n_lower;
      const idx* rows = out_.lower_row.data() + rows_[row].lower;
      const T* lower = out_.lower.data() + rows_[row].lower;
      T* work = work_.data();
      for (idx p = 0; p < count; p++) work[rows[p]] -= lower[p] * u;
      info_.flops += 2.0 * count;
    }
  }

  // Gathers column k's rows without a pivot, takes one of them, and scales the rest.
  bool choose_pivot(idx k, off begin) {
    const idx diagonal = row_order_[k];
    Real largest(0);
    off best = -1, on_diagonal = -1;
    for (off p = begin; p < lower_end_; p++) {
      const idx row = out_.lower_row[p];
      const Real size = abs1(out_.lower[p] = work_[row]);
      work_[row] = T(0);
      if (size > largest) largest = size, best = p;
      if (row == diagonal) on_diagonal = p;
    }
    if (best < 0) {  // all of them zero or NaN
      const bool zeros = std::all_of(out_.lower.begin() + begin, out_.lower.begin() + lower_end_,
                                     [](const T& v) { return v == T(0); });
      return fail(zeros ? FactorInfo::singular : FactorInfo::not_finite, k);
    }
    if (on_diagonal >= 0) {
      const Real size = abs1(out_.lower[on_diagonal]);
      if (size > Real(0) && size >= options_.pivot_threshold * largest) best = on_diagonal;
    }
    if (!take_pivot(k, out_.lower[best])) return false;
    const T pivot = out_.pivot[k], inverse = out_.inverse_pivot[k];
    const idx row = out_.lower_row[best];
    out_.lower_row[best] = out_.lower_row[--lower_end_];
    out_.lower[best] = out_.lower[lower_end_];
    Real multiplier(0);
    if (must_divide(pivot))
      for (off p = begin; p < lower_end_; p++)
        multiplier = std::max(multiplier, abs1(out_.lower[p] = quotient(out_.lower[p], pivot)));
    else
      for (off p = begin; p < lower_end_; p++) multiplier = std::max(multiplier, abs1(out_.lower[p] *= inverse));
    info_.flops += lower_end_ - begin;
    info_.max_multiplier = std::max(info_.max_multiplier, (double)multiplier);
    if (row != diagonal) {  // the displaced diagonal row becomes the diagonal of the column that loses its own
      info_.n_off_diagonal++;
      const idx other = rows_[row].position;
      row_order_[other] = diagonal, rows_[diagonal].position = other;
      row_order_[k] = row, rows_[row].position = k;
    }
    return true;
  }

  // The column of L of an earlier pivot j has an entry in the new pivot row, and U_jk is present: column k reaches
  // everything that the search would reach through j's rows without a pivot (symmetric pruning). Its pivotal rows move
  // to the front.
  void prune(Row& earlier, idx pivot_row) {
    const off begin = earlier.lower, end = begin + earlier.n_lower;
    if (earlier.pruned_end < end) return;
    idx* rows = out_.lower_row.data();
    T* lower = out_.lower.data();
    if (std::find(rows + begin, rows + end, pivot_row) == rows + end) return;
    off head = begin, tail = end;
    while (head < tail) {
      if (rows_[rows[head]].column >= 0) {
        head++;
      } else {
        tail--;
        std::swap(rows[head], rows[tail]);
        std::swap(lower[head], lower[tail]);
      }
    }
    earlier.pruned_end = tail;
  }
};

}  // namespace

template <class T> FactorInfo factor_with_pivoting(const PermutedPattern& B, const std::vector<idx>& block_ptr,
                                                   const T* values, const real_t<T>* row_scale,
                                                   const real_t<T>* col_scale, const PivotOptions& options,
                                                   ColumnNodes<T>& out, std::vector<idx>& row_order) {
  return PivotSearch<T>(B, values, row_scale, col_scale, options, out, row_order).run(block_ptr);
}

#define GS_INSTANTIATE(T)                                                                                \
  template FactorInfo factor_with_pivoting<T>(const PermutedPattern&, const std::vector<idx>&, const T*, \
                                              const real_t<T>*, const real_t<T>*, const PivotOptions&,   \
                                              ColumnNodes<T>&, std::vector<idx>&);
GS_FOR_SCALARS(GS_INSTANTIATE)
GS_INSTANTIATE(Wide<double>)
GS_INSTANTIATE(Wide<std::complex<double>>)

}  // namespace gs
