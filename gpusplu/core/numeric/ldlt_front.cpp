#include "numeric/ldlt_front.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/types.hpp"
#include "matrix/modulus.hpp"
#include "numeric/strips.hpp"

namespace gs {
namespace {

constexpr double serial_ldlt_flops = 8e6;         // one thread factors smaller fronts [flop]
constexpr idx widest_block = ldlt_block_columns;  // for the pivot search
constexpr double largest_multiplier = 100;        // of a pivot that is not postponed
constexpr idx stopped = -1;                       // in place of a number of pivots: the call was interrupted

// In units of float.
off size_of_sizes(idx R) { return 2 * off(R / rows_per_task + 2) * widest_block; }

template <class T> class LdltFront {
 public:
  LdltFront(Loops& loops, const LdltBlocks<T>& front, T* const* scratch, const PivotRule& rule,
            PivotStats* const* stats)
      : loops_(loops),
        front_(front),
        W_(front.W),
        R_(front.W + front.H),
        nb_(W_ > 256 ? widest_block : widest_block / 2),
        sizes_(reinterpret_cast<double*>(scratch[loops.rank()])),
        backup_(scratch[loops.rank()] + size_of_sizes(R_)),
        work_(backup_ + widest_block * widest_block),
        Y_(work_ + 2 * widest_block),
        scratch_(scratch),
        rule_(rule),
        stats_by_rank_(stats),
        stats_(*stats[loops.rank()]) {}

  void factor_square() {
    std::iota(front_.order, front_.order + W_, 0);
    idx end = W_;  // columns from here on are postponed
    bool progress = false, forced = false;
    for (idx k = 0; k < W_;) {
      if (k == end) forced = !progress, progress = false, end = W_;
      const idx n = std::min(nb_, end - k);
      const idx found = find_pivots(k, n, forced);
      if (found == stopped) return;
      const auto [accepted, failed] = found > 0 ? divide_rows(k, n, found, forced) : Divided{0, 0};
      if (accepted > 0) update(k, n, accepted);
      else if (forced) force_pivot(k);
      const idx gained = accepted > 0 ? accepted : forced;
      const idx bad = forced ? 0 : accepted == found ? n - found : failed;
      k += gained, progress |= gained > 0;
      if (bad > 0) postpone(k, end - bad, bad);
      end -= bad;
    }
  }

  void update_contribution() {
    over_triangle(loops_, front_.C, [&](const TrianglePart& part, int rank) {
      const off ldy = part.m;
      T* const own = scratch_[rank];  // the leader's scratch has no other data any more
      kernel_.times_pivots(part.m, W_, at(W_ + part.i, 0), front_.ldl, front_.d, front_.e, own, ldy, front_.hermitian);
      kernel_.update_strips(part.i, part.m, part.begin, part.end, W_, own, ldy, at(W_, 0), front_.ldl, front_.C,
                            front_.hermitian);
    });
  }

 private:
  T* at(idx i, idx j) const { return front_.L + i + j * front_.ldl; }

  void exchange(idx p, idx q) {  // in the lower triangle of the whole front
    if (p == q) return;
    kernel_.swap_symmetric(R_, front_.L, front_.ldl, p, q, front_.hermitian);
    std::swap(front_.order[p], front_.order[q]);
  }

  // If no better pivot is left, the largest entry of the first column may be in another block.
  void fetch_partner(idx k) {
    idx largest = k;
    for (idx i = k + 1; i < W_; i++)
      if (!(abs1(*at(i, k)) <= abs1(*at(largest, k))) || largest == k) largest = i;
    if (largest > k + 1) exchange(k + 1, largest);
  }

  // Finds pivots of the n columns from k on, and applies their exchanges to rows and columns outside of the block.
  // Returns their number.
  idx find_pivots(idx k, idx n, bool forced) {
    if (must_stop()) return stopped;
    if (forced && n > 1) fetch_partner(k);
    for (idx j = 0; j < n; j++) std::copy(at(k + j, k + j), at(k + n, k + j), backup_ + j + j * n);
    idx swaps[widest_block];
    const idx found = kernel_.ldlt_block(n, at(k, k), front_.ldl, front_.d + k, front_.e + k, swaps, work_,
                                         rule_.tiny_below, front_.hermitian, stats_);
    kernel_.swap_rows(k, at(k, 0), front_.ldl, 0, n, swaps);
    if (R_ > k + n) kernel_.swap_upper(n, R_ - k - n, at(k + n, k), front_.ldl, swaps);
    for (idx j = 0; j < n; j++) {
      kernel_.swap_symmetric(n, backup_, n, j, swaps[j], front_.hermitian);
      std::swap(front_.order[k + j], front_.order[k + swaps[j]]);
    }
    return found;
  }

  // Number of columns with pivots that bound the multipliers in the rows below, and of columns of the first pivot that
  // does not.
  struct Divided {
    idx accepted, failed;
  };

  // Y = L D in the rows below the block. If no pivot is accepted, the block is restored.
  Divided divide_rows(idx k, idx n, idx found, bool forced) {
    const idx first = k + n, chunks = chunks_of(R_ - first, rows_per_task);
    loops_.run(chunks, [&](int task, int) {
      const idx i = first + task * rows_per_task, m = std::min(R_ - i, rows_per_task);
      for (idx j = 0; j < found; j++) std::copy(at(i, k + j), at(i, k + j) + m, Y_ + i + j * (off)R_);
      kernel_.solve_unit_h(m, found, Y_ + i, R_, at(k, k), front_.ldl, front_.hermitian);
      std::fill_n(sizes_ + task * widest_block, found, 0.0);
      kernel_.column_sizes(m, found, Y_ + i, R_, sizes_ + task * widest_block);
    });
    const idx accepted = must_stop() ? 0 : accepted_pivots(k, found, chunks, forced);
    const bool pair = accepted < found && front_.e[k + accepted] != T(0);
    if (accepted < n) restore(k, n, accepted);
    return {accepted, 1 + pair};
  }

  void restore(idx k, idx n, idx accepted) {
    for (idx j = accepted; j < n; j++) std::copy(backup_ + j + j * n, backup_ + n + j * n, at(k + j, k + j));
  }

  idx accepted_pivots(idx k, idx found, idx chunks, bool forced) const {
    double size[widest_block] = {};
    for (idx c = 0; c < chunks; c++)
      for (idx j = 0; j < found; j++) size[j] = max_or_nan(size[j], sizes_[c * widest_block + j]);
    const double small = forced ? rule_.perturb_below : std::numeric_limits<double>::infinity();
    idx j = 0;
    while (j < found) {
      const double d1 = abs1(front_.d[k + j]), e = abs1(front_.e[k + j]);
      if (e == 0) {
        const bool bounded = size[j] <= largest_multiplier * d1;
        if (!bounded && !(d1 >= small)) break;
        stats_.max_upper = std::max(stats_.max_upper, size[j++]);
        continue;
      }
      // |D^-1| is at most 2 / e^2 times [d2 e; e d1]
      const double d2 = abs1(front_.d[k + j + 1]);
      const double most = std::max(size[j] * d2 + size[j + 1] * e, size[j] * e + size[j + 1] * d1);
      if (!(2 * most <= largest_multiplier * e * e) && !(e >= small)) break;
      stats_.max_upper = std::max({stats_.max_upper, size[j], size[j + 1]});
      j += 2;
    }
    return j;
  }

  // The pivots k .. k + accepted - 1 of a block of n columns become part of L, and their update is subtracted from the
  // columns behind them.
  void update(idx k, idx n, idx accepted) {
    const T *d = front_.d + k, *e = front_.e + k;
    const idx next = k + accepted, first = k + n, chunks = chunks_of(R_ - first, rows_per_task);
    if (accepted < n)
      kernel_.times_pivots(n - accepted, accepted, at(next, k), front_.ldl, d, e, Y_ + next, R_, front_.hermitian);
    loops_.run(chunks, [&](int task, int rank) {
      const idx i = first + task * rows_per_task, m = std::min(R_ - i, rows_per_task);
      kernel_.divide_by_pivots(m, accepted, Y_ + i, R_, d, e, at(i, k), front_.ldl, front_.hermitian,
                               *stats_by_rank_[rank]);
    });
    subtract(k, accepted);
  }

  // Subtracts the terms of `count` pivots from k on from the columns behind them.
  void subtract(idx k, idx count) {
    const idx strip = nb_ / 2;
    loops_.run(chunks_of(W_ - k - count, strip), [&](int task, int) {
      const idx c0 = k + count + task * strip, c1 = std::min(W_, c0 + strip);
      kernel_.update_lower(c1 - c0, count, Y_ + c0, R_, at(c0, k), front_.ldl, at(c0, c0), front_.ldl,
                           front_.hermitian);
      kernel_.update_t(R_ - c1, c1 - c0, count, Y_ + c1, R_, at(c0, k), front_.ldl, at(c1, c0), front_.ldl,
                       front_.hermitian);
    });
  }

  // Accepts column k as a pivot unconditionally.
  void force_pivot(idx k) {
    T pivot = front_.hermitian ? T(std::real(*at(k, k))) : *at(k, k);
    const double size = abs1(pivot);
    stats_.n_tiny += size < rule_.tiny_below;
    if (size < rule_.perturb_below) {
      stats_.n_perturbed++;
      pivot = size > 0 ? pivot * real_t<T>(rule_.perturb_below / size) : T(real_t<T>(rule_.perturb_below));
    }
    stats_.finite = stats_.finite && abs1(pivot) > 0;
    front_.d[k] = pivot, front_.e[k] = T(0);
    for (idx i = k + 1; i < R_; i++) {
      Y_[i] = *at(i, k);
      stats_.max_upper = max_or_nan(stats_.max_upper, (double)abs1(Y_[i]));
    }
    if (k + 1 < R_)
      kernel_.divide_by_pivots(R_ - k - 1, 1, Y_ + k + 1, R_, front_.d + k, front_.e + k, at(k + 1, k), front_.ldl,
                               front_.hermitian, stats_);
    subtract(k, 1);
  }

  // Exchanges `count` columns from k on with those from `to` on.
  void postpone(idx k, idx to, idx count) {
    for (idx j = count; j-- > 0;)
      if (to + j > k + j) exchange(k + j, to + j);
  }

  Loops& loops_;
  const DenseKernels<T>& kernel_ = kernels<T>();
  const LdltBlocks<T>& front_;
  const idx W_, R_, nb_;
  double* const sizes_;  // of the columns of Y, per task
  T *const backup_, *const work_, *const Y_;
  T* const* const scratch_;
  const PivotRule& rule_;
  PivotStats* const* const stats_by_rank_;
  PivotStats& stats_;  // of the leader
};

double ldlt_flops(double W, double H) { return W * (W * W / 3 + W * H + H * H); }

}  // namespace

off ldlt_scratch(idx R) { return off(R) * rows_per_task + size_of_sizes(R) + widest_block * (widest_block + 2); }

template <class T> void ldlt_front(Loops& loops, const LdltBlocks<T>& front, T* const* scratch, const PivotRule& rule,
                                   PivotStats* const* stats) {
  const auto& [W, H, L, ldl, C, d, e, order, hermitian] = front;
  if (W <= ldlt_small_columns && ldlt_flops(W, H) < serial_ldlt_flops &&
      kernels<T>().ldlt_small_front(W, H, L, ldl, C, d, e, order, scratch[loops.rank()], rule.tiny_below,
                                    largest_multiplier, hermitian, *stats[loops.rank()]))
    return;
  Loops one(loops.rank());
  LdltFront<T> work(ldlt_flops(W, H) < serial_ldlt_flops ? one : loops, front, scratch, rule, stats);
  work.factor_square();
  if (H > 0) work.update_contribution();
}

template <class T> void solve_pivots(idx W, const T* d, const T* e, bool hermitian, idx nrhs, T* x, off ldx) {
  for (idx r = 0; r < nrhs; r++, x += ldx)
    for (idx k = 0; k < W; k++) {
      if (e[k] == T(0)) {
        x[k] /= d[k];
        continue;
      }
      const T conj_e = conj_if(e[k], hermitian), a = d[k] / conj_e, b = d[k + 1] / e[k], x1 = x[k] / conj_e,
              x2 = x[k + 1] / e[k], det = a * b - T(1);
      x[k] = (b * x1 - x2) / det, x[k + 1] = (a * x2 - x1) / det;
      k++;
    }
}

#define GS_INSTANTIATE(T)                                                                                  \
  template void ldlt_front(Loops&, const LdltBlocks<T>&, T* const*, const PivotRule&, PivotStats* const*); \
  template void solve_pivots(idx, const T*, const T*, bool, idx, T*, off);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
