// Duff, Koster, "On algorithms for permuting large entries to the diagonal of a sparse matrix", SIAM J. Matrix Anal.
// Appl. 22(4), 2001, sec. 4: the largest product of diagonal entries is an assignment problem with the costs
//   c_ij = log2 max_k |a_kj| - log2 |a_ij| >= 0,
// solved by shortest augmenting paths from a dual feasible start. Invariant: u_i + v_j <= c_ij for all entries, with
// equality on matched ones; so the duals are the logarithms of a scaling.
// Logarithms are fixed point numbers of 16 fractional bits: the arithmetic on duals is exact, equality means equality,
// and the product found is within a factor 1 + 1e-5 an entry of the largest, far below the rounding of the scaling (a
// factor 2 an entry where the searches take too long, see run).
//
// Tight entries, u_i + v_j = c_ij, are matched first, by augmenting paths: Pothen, Fan, "Computing the block triangular
// form of a sparse matrix", ACM TOMS 16(4), 1990: phases of depth-first searches from all unmatched columns, which
// together visit every row at most once a phase; a lookahead for free rows that resumes where it stopped (Duff, ACM
// TOMS 7(3), 1981), and alternating directions of search (Duff, Kaya, Ucar, "Design, implementation, and analysis of
// maximum transversal algorithms", ACM TOMS 38(2), 2011, "PF+").
// Cost: O(nnz) a phase and O(n) phases in the worst case; a dozen or two in practice.
//
// Costs, first duals and scales are found by all threads, the paths by one.
#include "analysis/matching.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "analysis/symbolic.hpp"
#include "base/operation.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"

namespace gs {
namespace {

constexpr int fraction_bits = 16;
constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max() / 4;

// log2 of a positive number in fixed point: the exponent, and linear interpolation in a table for the mantissa.
class FixedLog2 {
 public:
  FixedLog2() {
    const auto at = [](int k) {
      return (std::int32_t)std::lround(std::log2(1 + (double)k / intervals) * (1 << guarded_bits));
    };
    for (int k = 0; k < intervals; ++k) table_[k] = {at(k), at(k + 1) - at(k)};
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
    const auto [begin, rise] = table_[k];
    const std::int64_t log = begin + ((rise * rest) >> 16);
    return exponent * (1 << fraction_bits) + (std::int32_t)(log >> (guarded_bits - fraction_bits));
  }

 private:
  static constexpr int index_bits = 8, intervals = 1 << index_bits, guarded_bits = 24;
  struct Interval {
    std::int32_t begin, rise;
  };
  std::array<Interval, intervals> table_;
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

// The data of a row that the search reads, stored together because rows are visited in no order.
struct Row {
  std::int64_t dual;  // u_i
  std::int64_t
      distance;  // infinite: not reached; minus infinity: reached by a search that failed, no use for later ones
  idx from;      // column it was reached from
  idx col;       // column matched to it, -1 if none
};

// Lowers a number, which other threads may lower at the same time if `shared`.
void lower(std::int32_t& number, std::int32_t to, bool shared) {
  if (!shared) return void(number = std::min(number, to));
  const std::atomic_ref<std::int32_t> now(number);
  for (std::int32_t seen = now.load(std::memory_order_relaxed); to < seen;)
    if (now.compare_exchange_weak(seen, to, std::memory_order_relaxed)) break;
}

class ProductMatching {
 public:
  template <class T> ProductMatching(PatternView A, const T* values);
  Matching run(int largest_exponent);

 private:
  // visit(j) for all columns, by several threads.
  template <class Visit> void for_columns(Visit&& visit) const {
    over_range(n_, ptr_[n_], [&](idx begin, idx end) {
      for (idx j = begin; j < end; ++j) visit(j);
    });
  }
  bool is_tight(off p, idx j) const { return row_[entry_[p].row].dual + v_[j] == entry_[p].cost; }
  void match(idx i, idx j) {
    row_of_col_[j] = i;
    row_[i].col = j;
  }
  void start_duals();
  void match_tight();
  bool take_free_row(idx j);
  bool search(idx root);
  bool solve(off limit);
  bool augment(idx root);
  void update_duals(idx root, std::int64_t shortest);
  void scale(Matching& result, int largest_exponent);

  const idx n_;
  const off* const ptr_;           // A's columns
  RawVector<off> end_, diagonal_;  // of each column: where its entries that are no stored zeros end, and its diagonal
  RawVector<Entry> entry_;
  RawVector<Row> row_;
  RawVector<std::int64_t> v_;
  RawVector<std::int32_t> col_max_;
  std::vector<idx> row_of_col_, unmatched_;
  std::vector<idx> touched_, finished_, ready_;  // rows that a search has reached, has finished, has to continue from
  std::vector<std::pair<std::int64_t, idx>> waiting_;  // heap of minus the distance and the row
  off scanned_ = 0;                                    // entries scanned by the searches
  idx phase_ = 0;                                      // of searches for tight entries
  std::vector<off> lookahead_;                         // of each column, where its search for a free row stopped
  std::vector<idx> visited_;                           // phase that reached a row last
  std::vector<std::pair<idx, off>> path_;
  Pace pace_;
};

template <class T> ProductMatching::ProductMatching(PatternView A, const T* values)
    : n_(A.n),
      ptr_(A.ptr),
      end_(A.n),
      diagonal_(A.n),
      entry_(A.nnz()),
      row_(A.n),
      v_(A.n),
      col_max_(A.n),
      row_of_col_(A.n) {
  for_columns([&](idx j) {
    Entry *const first = entry_.data() + ptr_[j], *next = first;
    const Entry* diagonal = nullptr;
    std::int32_t largest = std::numeric_limits<std::int32_t>::min();
    for (off p = ptr_[j]; p < ptr_[j + 1]; ++p) {
      const T value = values[p];
      if (value == T(0)) continue;
      const idx i = A.ind[p];
      const std::int32_t log = log2_modulus(value);
      diagonal = i == j ? next : diagonal;
      largest = std::max(largest, log);
      *next++ = {i, log};
    }
    for (Entry* e = first; e < next; ++e) e->cost = largest - e->cost;
    end_[j] = next - entry_.data(), diagonal_[j] = diagonal ? diagonal - entry_.data() : -1;
    col_max_[j] = largest;
  });
}

// u_i = min_j c_ij, v_j = min_i c_ij - u_i.
void ProductMatching::start_duals() {
  constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();
  const bool shared = threads_for(ptr_[n_]) > 1;
  RawVector<std::int32_t> least_of_row(n_);
  std::int32_t* const least_of = least_of_row.data();
  std::fill_n(least_of, n_, none);
  for_columns([&](idx j) {
    for (off p = ptr_[j]; p < end_[j]; ++p) lower(least_of[entry_[p].row], entry_[p].cost, shared);
  });
  for_columns([&](idx j) {
    std::int32_t least = none;
    for (off p = ptr_[j]; p < end_[j]; ++p) least = std::min(least, entry_[p].cost - least_of[entry_[p].row]);
    v_[j] = least < none ? least : infinite;
    row_[j] = {least_of[j] < none ? least_of[j] : infinite, infinite, -1, -1};
  });
}

// Extends the matching of tight entries to one of maximum cardinality. Leaves in unmatched_ the columns for which there
// is no row.
void ProductMatching::match_tight() {
  if (unmatched_.empty()) return;
  lookahead_.assign(ptr_, ptr_ + n_);
  std::erase_if(unmatched_, [&](idx j) {
    pace_.go_on(8);
    return take_free_row(j);
  });
  if (unmatched_.empty()) return;
  visited_.assign(n_, 0);
  phase_ = 0;
  for (std::size_t before = 0; before != unmatched_.size();) {
    before = unmatched_.size();
    ++phase_;
    std::erase_if(unmatched_, [&](idx j) { return search(j); });
  }
}

// Matched rows stay matched, so every column is scanned once in all.
bool ProductMatching::take_free_row(idx j) {
  for (off& p = lookahead_[j]; p < end_[j]; ++p) {
    const idx i = entry_[p].row;
    if (row_[i].col >= 0 || !is_tight(p, j)) continue;
    match(i, j);
    return true;
  }
  return false;
}

bool ProductMatching::search(idx root) {
  const bool forward = phase_ % 2;
  const auto first = [&](idx j) { return forward ? ptr_[j] : end_[j] - 1; };
  path_.assign(1, {root, first(root)});
  while (!path_.empty()) {
    auto& [j, p] = path_.back();
    pace_.go_on(8);
    const off stop = forward ? end_[j] : ptr_[j] - 1;
    for (; p != stop; p += forward ? 1 : -1)
      if (visited_[entry_[p].row] != phase_ && is_tight(p, j)) break;
    if (p == stop) {
      path_.pop_back();
      continue;
    }
    const idx i = entry_[p].row, next = row_[i].col;
    visited_[i] = phase_;
    if (take_free_row(next)) {  // every column of the path takes the row it went on through
      for (const auto& [col, at] : path_) match(entry_[at].row, col);
      return true;
    }
    path_.emplace_back(next, first(next));
  }
  return false;
}

// Dijkstra's algorithm on reduced costs from column `root` to the nearest free row; rows farther than the nearest free
// row seen so far are not entered.
bool ProductMatching::augment(idx root) {
  touched_.clear();
  finished_.clear();
  ready_.clear();
  waiting_.clear();
  std::int64_t level = 0, shortest = infinite;
  idx free_row = -1, j = root;
  for (;;) {
    const std::int64_t base = level - v_[j];
    scanned_ += end_[j] - ptr_[j];
    pace_.go_on(1 + end_[j] - ptr_[j]);
    for (off p = ptr_[j]; p < end_[j]; ++p) {
      const idx i = entry_[p].row;
      Row& row = row_[i];
      const std::int64_t d = base + entry_[p].cost - row.dual;
      if (d >= shortest || d >= row.distance) continue;
      if (row.distance == infinite) touched_.push_back(i);
      row.distance = d;
      row.from = j;
      if (row.col < 0) {
        shortest = d;
        free_row = i;
        if (d == level) break;
      } else if (d == level) {
        ready_.push_back(i);
      } else {
        waiting_.emplace_back(-d, i);
        std::push_heap(waiting_.begin(), waiting_.end());
      }
    }
    if (shortest == level) break;
    idx next = -1;
    if (!ready_.empty()) {
      next = ready_.back();
      ready_.pop_back();
    }
    while (next < 0 && !waiting_.empty() && -waiting_.front().first < shortest) {
      const auto [minus_d, i] = waiting_.front();
      std::pop_heap(waiting_.begin(), waiting_.end());
      waiting_.pop_back();
      if (row_[i].distance != -minus_d) continue;
      level = -minus_d;
      next = i;
    }
    if (next < 0) break;
    finished_.push_back(next);
    j = row_[next].col;
  }
  if (free_row < 0) {
    for (idx i : touched_) row_[i].distance = -infinite;
    return false;
  }
  update_duals(root, shortest);
  for (idx i = free_row;;) {
    const idx col = row_[i].from, next = row_of_col_[col];
    match(i, col);
    if (col == root) break;
    i = next;
  }
  return true;
}

// Keeps the finished columns feasible and makes the path tight.
void ProductMatching::update_duals(idx root, std::int64_t shortest) {
  for (idx i : finished_) {
    const std::int64_t change = shortest - row_[i].distance;
    row_[i].dual -= change;
    v_[row_[i].col] += change;
  }
  v_[root] += shortest;
  for (idx i : touched_) row_[i].distance = infinite;
}

// False when the searches took more than `limit` entries.
bool ProductMatching::solve(off limit) {
  start_duals();
  for_columns([&](idx j) {
    row_of_col_[j] = -1;
    if (diagonal_[j] >= 0 && is_tight(diagonal_[j], j)) match(j, j);
  });
  unmatched_.clear();
  for (idx j = 0; j < n_; ++j)
    if (row_of_col_[j] < 0) unmatched_.push_back(j);
  match_tight();
  scanned_ = 0;
  std::erase_if(unmatched_, [&](idx j) { return scanned_ <= limit && augment(j); });
  return scanned_ <= limit;
}

// Searches are short as a rule, but on some matrices almost every one of them goes through a large part of the graph.
// Costs in whole bits make many paths equally long, and searches end ten times sooner.
Matching ProductMatching::run(int largest_exponent) {
  off n_entries = 0;
  for (idx j = 0; j < n_; ++j) n_entries += end_[j] - ptr_[j];
  if (!solve(20 * n_entries + 1'000'000)) {
    for_columns([&](idx j) {
      for (off p = ptr_[j]; p < end_[j]; ++p) entry_[p].cost &= -(1 << fraction_bits);
    });
    solve(std::numeric_limits<off>::max());
  }
  Matching result;
  result.structural_rank = n_ - (idx)unmatched_.size();
  scale(result, largest_exponent);
  result.row_of_col = std::move(row_of_col_);
  return result;
}

// Rounds row exponents u_i and column exponents v_j - log2 max_k |a_kj|, which make all moduli <= 1. A common shift
// between them is free: it gives both the same middle. Exponents that are still too large are cut off, which leaves no
// entry larger than it was, or than 1.
void ProductMatching::scale(Matching& result, int largest_exponent) {
  result.row_scale.assign(n_, 1);
  result.col_scale.assign(n_, 1);
  if (result.structural_rank < n_ || n_ == 0) return;
  const auto row_exponent = [&](idx i) { return row_[i].dual; };
  const auto col_exponent = [&](idx j) { return v_[j] - col_max_[j]; };
  const auto twice_middle = [this](auto& exponent) {
    std::int64_t least = infinite, largest = -infinite;
    std::mutex mutex;
    over_range(n_, n_, [&](idx begin, idx end) {
      std::int64_t least_here = infinite, largest_here = -infinite;
      for (idx k = begin; k < end; ++k) {
        least_here = std::min<std::int64_t>(least_here, exponent(k));
        largest_here = std::max<std::int64_t>(largest_here, exponent(k));
      }
      const std::lock_guard lock(mutex);
      least = std::min(least, least_here), largest = std::max(largest, largest_here);
    });
    return least + largest;
  };
  const std::int64_t shift = (twice_middle(row_exponent) - twice_middle(col_exponent)) / 4;
  const auto power_of_two = [largest_exponent](std::int64_t log) {
    const std::int64_t exponent = (log + (1 << (fraction_bits - 1))) >> fraction_bits;
    const std::int64_t cut = std::clamp<std::int64_t>(exponent, -largest_exponent, largest_exponent);
    return std::bit_cast<double>((std::uint64_t)(cut + 1023) << 52);
  };
  for_columns([&](idx k) {
    result.row_scale[k] = power_of_two(row_exponent(k) - shift);
    result.col_scale[k] = power_of_two(col_exponent(k) + shift);
  });
}

}  // namespace

template <class T> Matching max_product_matching(PatternView A, const T* values) {
  begin_phase("matching");
  return ProductMatching(A, values).run(largest_scale_exponent<T>);
}

#define GS_INSTANTIATE(T) template Matching max_product_matching(PatternView, const T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
