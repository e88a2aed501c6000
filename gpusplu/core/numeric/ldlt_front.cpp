#include "numeric/ldlt_front.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/scalars.hpp"
#include "matrix/modulus.hpp"
#include "numeric/phases.hpp"
#include "numeric/strips.hpp"

namespace gs {
namespace {

constexpr double serial_ldlt_flops = 8e6;         // smaller fronts are left to one thread [flop]
constexpr idx widest_block = ldlt_block_columns;  // among which pivots are sought
constexpr double largest_multiplier = 100;        // of a pivot that is not postponed
constexpr idx stopped = -1;                       // in place of a number of pivots: the call was asked to stop

// Of floats.
off size_of_sizes(idx R) { return 2 * off(R / rows_per_task + 2) * widest_block; }

template <class T> class LdltFront {
 public:
  LdltFront(const Team& team, Phases& phases, const LdltBlocks<T>& front, T* shared, T* own, const PivotRule& rule,
            PivotStats& stats)
      : team_(team),
        phases_(phases),
        front_(front),
        W_(front.W),
        R_(front.W + front.H),
        nb_(W_ > 256 ? widest_block : widest_block / 2),
        sizes_(reinterpret_cast<double*>(shared)),
        backup_(shared + size_of_sizes(R_)),
        work_(backup_ + widest_block * widest_block),
        Y_(work_ + 2 * widest_block),
        own_(own),
        rule_(rule),
        stats_(stats) {}

  void factor_square() {
    if (team_.rank == 0) std::iota(front_.order, front_.order + W_, 0);
    idx end = W_;  // columns from here on are postponed
    bool progress = false, forced = false;
    for (idx k = 0; k < W_ && !phases_.is_over();) {
      if (k == end) forced = !progress, progress = false, end = W_;
      const idx n = std::min(nb_, end - k);
      const idx found = find_pivots(k, n, forced);
      if (found == stopped) return;
      const auto [accepted, failed] = found > 0 ? divide_rows(k, n, found, forced) : Divided{0, 0};
      if (accepted > 0) update(k, n, accepted);
      else if (forced) force_pivot(k);
      if (phases_.is_over()) return;
      const idx gained = accepted > 0 ? accepted : forced;
      const idx bad = forced ? 0 : accepted == found ? n - found : failed;
      k += gained, progress |= gained > 0;
      if (bad > 0) postpone(k, end - bad, bad);
      end -= bad;
    }
  }

  void update_contribution() {
    const idx H = front_.H, chunks = (H + rows_per_task - 1) / rows_per_task;
    for (idx task; (task = phases_.take()) < chunks;) {  // longest rows first
      const idx i = (chunks - 1 - task) * rows_per_task, m = std::min(H - i, rows_per_task);
      const off ldy = m;
      kernel_.times_pivots(m, W_, at(W_ + i, 0), front_.ldl, front_.d, front_.e, own_, ldy, front_.hermitian);
      update_rows(front_.C, i, m, W_, own_, ldy, at(W_, 0), front_.ldl, front_.hermitian);
    }
    phases_.next_phase();
  }

 private:
  T* at(idx i, idx j) const { return front_.L + i + j * front_.ldl; }

  void exchange(idx p, idx q) {  // in the lower triangle of the whole front
    if (p == q) return;
    kernel_.swap_symmetric(R_, front_.L, front_.ldl, p, q, front_.hermitian);
    std::swap(front_.order[p], front_.order[q]);
  }

  // Where nothing better is left, the largest entry of the first column may belong to another block.
  void fetch_partner(idx k) {
    idx largest = k;
    for (idx i = k + 1; i < W_; i++)
      if (!(abs1(*at(i, k)) <= abs1(*at(largest, k))) || largest == k) largest = i;
    if (largest > k + 1) exchange(k + 1, largest);
  }

  // Pivots of the n columns from k on, and what they do to rows and columns outside of the block. Returns how many.
  idx find_pivots(idx k, idx n, bool forced) {
    if (team_.rank == 0) phases_.set_word(stopped);
    if (phases_.leads()) {
      if (forced && n > 1) fetch_partner(k);
      for (idx j = 0; j < n; j++) std::copy(at(k + j, k + j), at(k + n, k + j), backup_ + j + j * n);
      idx swaps[widest_block];
      phases_.set_word(kernel_.ldlt_block(n, at(k, k), front_.ldl, front_.d + k, front_.e + k, swaps, work_,
                                          rule_.tiny_below, front_.hermitian, &stats_));
      kernel_.swap_rows(k, at(k, 0), front_.ldl, 0, n, swaps);
      if (R_ > k + n) kernel_.swap_upper(n, R_ - k - n, at(k + n, k), front_.ldl, swaps);
      for (idx j = 0; j < n; j++) {
        kernel_.swap_symmetric(n, backup_, n, j, swaps[j], front_.hermitian);
        std::swap(front_.order[k + j], front_.order[k + swaps[j]]);
      }
    }
    return phases_.next_phase();
  }

  // Columns whose pivots bound the multipliers in the rows below, and those of the first pivot that does not.
  struct Divided {
    idx accepted, failed;
  };

  // Y = L D in the rows below the block. Where nothing is accepted, the block is what it was.
  Divided divide_rows(idx k, idx n, idx found, bool forced) {
    const idx first = k + n, chunks = (R_ - first + rows_per_task - 1) / rows_per_task;
    for (idx task; (task = phases_.take()) < chunks;) {
      const idx i = first + task * rows_per_task, m = std::min(R_ - i, rows_per_task);
      for (idx j = 0; j < found; j++) std::copy(at(i, k + j), at(i, k + j) + m, Y_ + i + j * (off)R_);
      kernel_.solve_unit_h(m, found, Y_ + i, R_, at(k, k), front_.ldl, front_.hermitian);
      std::fill_n(sizes_ + task * widest_block, found, 0.0);
      kernel_.column_sizes(m, found, Y_ + i, R_, sizes_ + task * widest_block);
    }
    phases_.next_phase();
    if (team_.rank == 0) {
      const idx accepted = accepted_pivots(k, found, chunks, forced);
      const bool pair = accepted < found && front_.e[k + accepted] != T(0);
      if (accepted < n) restore(k, n, accepted);
      phases_.set_word(2 * accepted + pair);
    }
    const int word = phases_.next_phase();
    return {word / 2, 1 + word % 2};
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

  // The pivots k .. k + accepted - 1 of a block of n columns become part of L, and the columns behind them lose what
  // they leave there.
  void update(idx k, idx n, idx accepted) {
    const T *d = front_.d + k, *e = front_.e + k;
    const idx next = k + accepted, first = k + n, chunks = (R_ - first + rows_per_task - 1) / rows_per_task;
    if (team_.rank == 0 && accepted < n)
      kernel_.times_pivots(n - accepted, accepted, at(next, k), front_.ldl, d, e, Y_ + next, R_, front_.hermitian);
    for (idx task; (task = phases_.take()) < chunks;) {
      const idx i = first + task * rows_per_task, m = std::min(R_ - i, rows_per_task);
      kernel_.divide_by_pivots(m, accepted, Y_ + i, R_, d, e, at(i, k), front_.ldl, front_.hermitian, &stats_);
    }
    phases_.next_phase();
    const idx strip = nb_ / 2;
    for (idx c0; (c0 = next + phases_.take() * strip) < W_;) {
      const idx c1 = std::min(W_, c0 + strip);
      kernel_.update_lower_by(c1 - c0, accepted, Y_ + c0, R_, at(c0, k), front_.ldl, at(c0, c0), front_.ldl,
                              front_.hermitian);
      kernel_.update_t(R_ - c1, c1 - c0, accepted, Y_ + c1, R_, at(c0, k), front_.ldl, at(c1, c0), front_.ldl,
                       front_.hermitian);
    }
    phases_.next_phase();
  }

  // Column k as a pivot, whatever it is.
  void force_pivot(idx k) {
    if (team_.rank == 0) {
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
                                 front_.hermitian, &stats_);
    }
    update_by_one(k);
  }

  void update_by_one(idx k) {
    phases_.next_phase();
    for (idx c0; (c0 = k + 1 + phases_.take() * nb_) < W_;) {
      const idx c1 = std::min(W_, c0 + nb_);
      kernel_.update_lower_by(c1 - c0, 1, Y_ + c0, R_, at(c0, k), front_.ldl, at(c0, c0), front_.ldl, front_.hermitian);
      kernel_.update_t(R_ - c1, c1 - c0, 1, Y_ + c1, R_, at(c0, k), front_.ldl, at(c1, c0), front_.ldl,
                       front_.hermitian);
    }
    phases_.next_phase();
  }

  // Exchanges `count` columns from k on with those from `to` on.
  void postpone(idx k, idx to, idx count) {
    if (team_.rank == 0)
      for (idx j = count; j-- > 0;)
        if (to + j > k + j) exchange(k + j, to + j);
    phases_.next_phase();
  }

  const Team& team_;
  Phases& phases_;
  const DenseKernels<T>& kernel_ = kernels<T>();
  const LdltBlocks<T>& front_;
  const idx W_, R_, nb_;
  double* const sizes_;  // of the columns of Y, for each task
  T *const backup_, *const work_, *const Y_, *const own_;
  const PivotRule& rule_;
  PivotStats& stats_;
};

double ldlt_flops(double W, double H) { return W * (W * W / 3 + W * H + H * H); }

}  // namespace

off ldlt_scratch(idx R) { return off(R) * rows_per_task + size_of_sizes(R) + widest_block * (widest_block + 2); }

template <class T> void ldlt_front(const Team& team, const LdltBlocks<T>& front, T* shared, T* own,
                                   const PivotRule& rule, PivotStats& stats) {
  const Team one;
  const bool serial = ldlt_flops(front.W, front.H) < serial_ldlt_flops;
  const auto at_once = [&] {
    const auto& [W, H, L, ldl, C, d, e, order, hermitian] = front;
    return W <= ldlt_small_columns &&
           kernels<T>().ldlt_small_front(W, H, L, ldl, C, d, e, order, shared, rule.tiny_below, largest_multiplier,
                                         hermitian, &stats);
  };
  if (!serial || (team.rank == 0 && !at_once())) {
    Phases phases(serial ? one : team);
    LdltFront<T> work(serial ? one : team, phases, front, shared, own, rule, stats);
    work.factor_square();
    if (front.H > 0) work.update_contribution();
  }
  if (serial) team.sync();
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

#define GS_INSTANTIATE(T)                                                                             \
  template void ldlt_front(const Team&, const LdltBlocks<T>&, T*, T*, const PivotRule&, PivotStats&); \
  template void solve_pivots(idx, const T*, const T*, bool, idx, T*, off);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
