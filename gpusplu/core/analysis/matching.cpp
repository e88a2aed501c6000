// Duff, Koster, "On algorithms for permuting large entries to the diagonal of a sparse matrix", SIAM J. Matrix Anal.
// Appl. 22(4), 2001, sec. 3-4 (the bottleneck is replaced by the product): an assignment problem with the costs
//   c_ij = log2 max_k |a_kj| - log2 |a_ij| >= 0,
// solved by shortest augmenting paths from a dual feasible start. Invariant: u_i + v_j <= c_ij for all entries, with
// equality on matched ones; so the duals are the logarithms of a scaling.
// Logarithms are fixed point numbers of 16 fractional bits: the arithmetic on duals is exact, equality means equality,
// and the product found is within a factor 1 + 1e-5 an entry of the largest, far below what the scaling is rounded to.
#include "analysis/matching.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gs {
namespace {

constexpr int fraction_bits = 16;
constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max() / 4;

// log2 of a positive number in fixed point: the exponent, and linear interpolation in a table for the mantissa.
class FixedLog2 {
 public:
  FixedLog2() {
    for (int k = 0; k <= intervals; ++k)
      table_[k] = (std::int32_t)std::lround(std::log2(1 + (double)k / intervals) * (1 << guarded_bits));
  }
  std::int32_t operator()(double x) const {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    int exponent = (int)(bits >> 52) - 1023;
    if (exponent == -1023) {  // denormal
      bits = std::bit_cast<std::uint64_t>(x * 0x1p54);
      exponent = (int)(bits >> 52) - 1023 - 54;
    }
    const int k = (int)(bits >> (52 - index_bits)) & (intervals - 1);
    const std::int64_t rest = (std::int64_t)(bits >> (52 - index_bits - 16)) & 0xffff;
    const std::int64_t log = table_[k] + (((table_[k + 1] - table_[k]) * rest) >> 16);
    return exponent * (1 << fraction_bits) + (std::int32_t)(log >> (guarded_bits - fraction_bits));
  }

 private:
  static constexpr int index_bits = 8, intervals = 1 << index_bits, guarded_bits = 24;
  std::array<std::int32_t, intervals + 1> table_;
};

const FixedLog2 fixed_log2;

template <class R> std::int32_t log2_modulus(R value) { return fixed_log2(std::abs((double)value)); }

template <class R> std::int32_t log2_modulus(std::complex<R> value) {
  const double re = value.real(), im = value.imag(), square = re * re + im * im;
  if (square > 0x1p-960 && square < 0x1p1000) return fixed_log2(square) >> 1;
  return fixed_log2(std::hypot(re, im));
}

struct Entry {
  idx row;
  std::int32_t cost;
};

class ProductMatching {
 public:
  template <class T> ProductMatching(PatternView A, const T* values);
  Matching run();

 private:
  void start_duals();
  void match_tight();
  bool match_beside(idx j);
  bool augment(idx root);
  void update_duals(idx root, std::int64_t shortest);
  void scale(Matching& result);
  void match(idx i, idx j) {
    row_of_col_[j] = i;
    col_of_row_[i] = j;
  }

  const idx n_;
  std::vector<off> ptr_;
  std::vector<Entry> entry_;  // A's columns without stored zeros
  std::vector<std::int32_t> col_max_;
  std::vector<std::int64_t> u_, v_;
  std::vector<idx> row_of_col_, col_of_row_;
  std::vector<off> lookahead_;
  std::vector<off> diagonal_;
  // Of a search: distance of a row (infinite: not reached; minus infinity: reached by a search that failed, which no
  // later path can use), the column it was reached from.
  std::vector<std::int64_t> distance_;
  std::vector<idx> from_, touched_, settled_, ready_;
  std::vector<std::pair<std::int64_t, idx>> heap_;
};

template <class T> ProductMatching::ProductMatching(PatternView A, const T* values)
    : n_(A.n), ptr_(A.n + 1), entry_(A.nnz()), col_max_(A.n), diagonal_(A.n, -1) {
  off end = 0;
  for (idx j = 0; j < n_; ++j) {
    ptr_[j] = end;
    std::int32_t largest = std::numeric_limits<std::int32_t>::min();
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; ++p) {
      if (values[p] == T(0)) continue;
      if (A.ind[p] == j) diagonal_[j] = end;
      const std::int32_t log = log2_modulus(values[p]);
      largest = std::max(largest, log);
      entry_[end++] = {A.ind[p], log};
    }
    for (off p = ptr_[j]; p < end; ++p) entry_[p].cost = largest - entry_[p].cost;
    col_max_[j] = largest;
  }
  ptr_[n_] = end;
}

// u_i = min_j c_ij, v_j = min_i c_ij - u_i.
void ProductMatching::start_duals() {
  u_.assign(n_, infinite);
  v_.resize(n_);
  for (off p = 0; p < ptr_[n_]; ++p) u_[entry_[p].row] = std::min<std::int64_t>(u_[entry_[p].row], entry_[p].cost);
  for (idx j = 0; j < n_; ++j) {
    std::int64_t least = infinite;
    for (off p = ptr_[j]; p < ptr_[j + 1]; ++p) least = std::min(least, entry_[p].cost - u_[entry_[p].row]);
    v_[j] = least;
  }
}

// Matches what tight entries (u_i + v_j = c_ij) allow: the diagonal first, then free rows, then one step further.
void ProductMatching::match_tight() {
  row_of_col_.assign(n_, -1);
  col_of_row_.assign(n_, -1);
  for (idx j = 0; j < n_; ++j)
    if (const off p = diagonal_[j]; p >= 0 && u_[j] + v_[j] == entry_[p].cost) match(j, j);
  lookahead_.assign(ptr_.begin(), ptr_.end() - 1);
  for (idx j = 0; j < n_; ++j)
    if (row_of_col_[j] < 0) match_beside(j);
}

bool ProductMatching::match_beside(idx j) {
  for (off p = ptr_[j]; p < ptr_[j + 1]; ++p) {
    const idx i = entry_[p].row;
    if (col_of_row_[i] < 0 && u_[i] + v_[j] == entry_[p].cost) {
      match(i, j);
      return true;
    }
  }
  for (off p = ptr_[j]; p < ptr_[j + 1]; ++p) {
    const idx i = entry_[p].row;
    if (u_[i] + v_[j] != entry_[p].cost) continue;
    const idx other = col_of_row_[i];
    for (off& q = lookahead_[other]; q < ptr_[other + 1]; ++q) {
      const idx k = entry_[q].row;
      if (col_of_row_[k] < 0 && u_[k] + v_[other] == entry_[q].cost) {
        match(k, other);
        match(i, j);
        return true;
      }
    }
  }
  return false;
}

// Dijkstra's algorithm on reduced costs from column `root` to the nearest free row; rows farther than the nearest free
// row seen so far are not entered.
bool ProductMatching::augment(idx root) {
  touched_.clear();
  settled_.clear();
  ready_.clear();
  heap_.clear();
  std::int64_t level = 0, shortest = infinite;
  idx free_row = -1, j = root;
  for (;;) {
    const std::int64_t base = level - v_[j];
    for (off p = ptr_[j]; p < ptr_[j + 1]; ++p) {
      const idx i = entry_[p].row;
      const std::int64_t d = base + entry_[p].cost - u_[i];
      if (d >= shortest || d >= distance_[i]) continue;
      if (distance_[i] == infinite) touched_.push_back(i);
      distance_[i] = d;
      from_[i] = j;
      if (col_of_row_[i] < 0) {
        shortest = d;
        free_row = i;
        if (d == level) break;
      } else if (d == level) {
        ready_.push_back(i);
      } else {
        heap_.emplace_back(-d, i);
        std::push_heap(heap_.begin(), heap_.end());
      }
    }
    if (shortest == level) break;
    idx next = -1;
    if (!ready_.empty()) {
      next = ready_.back();
      ready_.pop_back();
    }
    while (next < 0 && !heap_.empty() && -heap_.front().first < shortest) {
      const auto [minus_d, i] = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      if (distance_[i] != -minus_d) continue;
      level = -minus_d;
      next = i;
    }
    if (next < 0) break;
    settled_.push_back(next);
    j = col_of_row_[next];
  }
  if (free_row < 0) {
    for (idx i : touched_) distance_[i] = -infinite;
    return false;
  }
  update_duals(root, shortest);
  for (idx i = free_row;;) {
    const idx col = from_[i], next = row_of_col_[col];
    match(i, col);
    if (col == root) break;
    i = next;
  }
  return true;
}

// Keeps the settled columns feasible and makes the path tight.
void ProductMatching::update_duals(idx root, std::int64_t shortest) {
  for (idx i : settled_) {
    const std::int64_t change = shortest - distance_[i];
    u_[i] -= change;
    v_[col_of_row_[i]] += change;
  }
  v_[root] += shortest;
  for (idx i : touched_) distance_[i] = infinite;
}

Matching ProductMatching::run() {
  start_duals();
  match_tight();
  Matching result;
  for (idx j = 0; j < n_; ++j) {
    if (row_of_col_[j] < 0) {
      if (distance_.empty()) {
        distance_.assign(n_, infinite);
        from_.resize(n_);
      }
      if (!augment(j)) continue;
    }
    ++result.structural_rank;
  }
  scale(result);
  result.row_of_col = std::move(row_of_col_);
  return result;
}

// |a_ij| 2^(u_i + v_j - log2 max_k |a_kj|) <= 1 before rounding. A shift between rows and columns is free: it gives both
// sides the same middle, so that neither overflows.
void ProductMatching::scale(Matching& result) {
  result.row_scale.assign(n_, 1);
  result.col_scale.assign(n_, 1);
  if (result.structural_rank < n_ || n_ == 0) return;
  for (idx j = 0; j < n_; ++j) v_[j] -= col_max_[j];
  auto twice_middle = [](const std::vector<std::int64_t>& dual) {
    const auto [least, largest] = std::minmax_element(dual.begin(), dual.end());
    return *least + *largest;
  };
  const std::int64_t shift = (twice_middle(u_) - twice_middle(v_)) / 4;
  auto power_of_two = [](std::int64_t log) {
    const std::int64_t exponent = (log + (1 << (fraction_bits - 1))) >> fraction_bits;
    return std::bit_cast<double>((1023 + std::clamp<std::int64_t>(exponent, -1022, 1023)) << 52);
  };
  for (idx i = 0; i < n_; ++i) result.row_scale[i] = power_of_two(u_[i] - shift);
  for (idx j = 0; j < n_; ++j) result.col_scale[j] = power_of_two(v_[j] + shift);
}

}  // namespace

template <class T> Matching max_product_matching(PatternView A, const T* values) {
  return ProductMatching(A, values).run();
}

template Matching max_product_matching(PatternView, const float*);
template Matching max_product_matching(PatternView, const double*);
template Matching max_product_matching(PatternView, const std::complex<float>*);
template Matching max_product_matching(PatternView, const std::complex<double>*);

}  // namespace gs
