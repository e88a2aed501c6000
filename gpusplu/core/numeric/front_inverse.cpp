// Entries of A^-1 from the fronts, from the roots down: a front takes the inverse block of the rows below its pivots
// from its parent's and adds those of its pivots (numeric/dense_inverse.hpp). A block is given back when all children
// have taken theirs.
//
// Cost: about twice the arithmetic of the factorization.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "analysis/entry_places.hpp"
#include "base/scalars.hpp"
#include "numeric/dense_inverse.hpp"
#include "numeric/front_factor.hpp"
#include "numeric/front_walks.hpp"
#include "numeric/unscaled.hpp"

namespace gs {
namespace {

constexpr double kWorkPerThread = 125e3;  // of the factorization; less than this does not pay for a further thread [ns]

// Where the entries of a pattern lie, by fronts.
struct WantedEntries {
  struct Entry {
    off k;            // of the pattern
    idx row, column;  // of the front
    idx j;            // column of the pattern
  };
  std::vector<off> ptr;
  RawVector<Entry> entry;

  WantedEntries(const Symbolic& symbolic, PatternView P) {
    EntryPlaces<idx> places({.n = symbolic.n,
                             .nf = symbolic.nsuper(),
                             .cholesky = false,
                             .row_perm = symbolic.row_perm.data(),
                             .col_perm = symbolic.col_perm.data(),
                             .first = symbolic.super_ptr.data(),
                             .below_ptr = symbolic.row_ptr.data(),
                             .below = symbolic.row_ind.data()},
                            P);
    ptr = places.count();
    entry.resize(ptr.back());
    places.write([&](off to, idx, off k, idx j, idx row, idx column) {
      entry[to] = {k, row, column, symbolic.col_perm[j]};
    });
  }
};

}  // namespace

template <class T> struct FrontFactor<T>::Inverse {
  const FrontFactor& factor;
  const Symbolic& symbolic;
  const FrontPlan& plan;
  const PatternView P;
  T* const inverse;
  const WantedEntries wanted;
  std::vector<T*> blocks;                 // of fronts whose children have not all taken theirs
  std::vector<std::atomic<idx>> waiting;  // children that have not, by front
  std::vector<BlockPool> pools;           // of each thread
  std::vector<RawVector<T>> scratch;      // of each thread
  std::atomic<bool> out_of_memory{false};

  Inverse(const FrontFactor& factor, PatternView P, T* inverse, int threads)
      : factor(factor),
        symbolic(*factor.symbolic_),
        plan(factor.plan_),
        P(P),
        inverse(inverse),
        wanted(symbolic, P),
        blocks(symbolic.nsuper(), nullptr),
        waiting(symbolic.nsuper()),
        pools(threads),
        scratch(threads) {
    for (idx s = 0; s < symbolic.nsuper(); s++) waiting[s] = plan.child_ptr[s + 1] - plan.child_ptr[s];
  }

  ~Inverse() {
    for (idx s = 0; s < symbolic.nsuper(); s++) give_block(0, s);
  }

  std::size_t block_bytes(idx s) const {
    const std::size_t R = factor.shape(s).R;
    return R * R * sizeof(T);
  }

  void take_memory(int rank, idx s) {
    try {
      if (scratch[rank].empty()) scratch[rank].resize(inverse_scratch(factor.tallest_));
      blocks[s] = static_cast<T*>(pools[rank].take(block_bytes(s)));
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  }

  void give_block(int rank, idx s) {
    if (T* block = std::exchange(blocks[s], nullptr)) pools[rank].give(block, block_bytes(s));
  }

  // Columns begin .. end-1 of Z22, from the parent's block.
  void gather(idx s, idx begin, idx end) const {
    const auto [W, H, R] = factor.shape(s);
    const idx parent = symbolic.super_parent[s];
    if (H == 0) return;
    const off R_parent = factor.shape(parent).R;
    const idx* rel = symbolic.rel_ind.data() + symbolic.row_ptr[s];
    const bool run = rel[H - 1] - rel[0] == H - 1;
    for (idx j = begin; j < end; j++) {
      const T* from = blocks[parent] + rel[j] * R_parent;
      T* to = blocks[s] + W + off(W + j) * R;
      if (run) std::copy_n(from + rel[0], H, to);
      else
        for (idx i = 0; i < H; i++) to[i] = from[rel[i]];
    }
  }

  void taken_from(int rank, idx parent) {
    if (parent >= 0 && waiting[parent].fetch_sub(1, std::memory_order_acq_rel) == 1) give_block(rank, parent);
  }

  void write(idx s, idx begin, idx end) const {
    const idx R = factor.shape(s).R;
    const T* Z = blocks[s];
    for (off p = wanted.ptr[s] + begin; p < wanted.ptr[s] + end; p++) {
      const auto [k, row, column, j] = wanted.entry[p];
      const T z = Z[column + off(row) * R];
      inverse[k] = symbolic.row_scale.empty() ? z : unscaled(z, symbolic.row_scale[P.ind[k]], symbolic.col_scale[j]);
    }
  }

  void front(const Team& team, int rank, idx s) {
    if (team.rank == 0 && !out_of_memory) take_memory(rank, s);
    team.sync();
    const bool stop = out_of_memory;
    team.sync();
    if (stop) return;
    const auto [W, H, R] = factor.shape(s);
    const T* L = factor.panel(s);
    const auto columns = slice(H, team);
    gather(s, columns.begin, columns.end);
    team.sync();
    if (team.rank == 0) taken_from(rank, symbolic.super_parent[s]);
    const idx* pivots = factor.pivots_.data() + symbolic.super_ptr[s];
    const FactoredFront<T> factored{W, H, L, L + off(W) * R, pivots, symbolic.cholesky};
    inverse_front(team, factored, blocks[s], scratch[rank].data());
    const auto entries = slice((idx)(wanted.ptr[s + 1] - wanted.ptr[s]), team);
    write(s, entries.begin, entries.end);
    team.sync();
    if (team.rank == 0 && plan.child_ptr[s] == plan.child_ptr[s + 1]) give_block(rank, s);
  }

  void task(int rank, idx t) {
    for (idx s = plan.tasks[t].last; s >= plan.tasks[t].first; s--) front(Team{}, rank, s);
  }

  void run(int threads) {
    const bool teams = threads > 1 && std::any_of(plan.tasks.begin(), plan.tasks.end(),
                                                  [](const FrontTask& t) { return t.whole_team; });
    DownwardWalk walk(plan, teams);
    static constinit Crowding of_teams, of_helpers;
    const auto below = [&](const Team& team) { walk.run(team, [&](idx t) { task(team.rank, t); }); };
    const auto all = [&](const Team& team) {
      for (idx t = (idx)plan.tasks.size(); t-- > 0;)
        if (plan.tasks[t].whole_team) front(team, 0, plan.tasks[t].last);
      below(team);
    };
    if (teams) run_team(threads, all, &of_teams);
    else run_helpers(threads, below, &of_helpers);
    if (out_of_memory) throw std::bad_alloc();
  }
};

template <class T> void FrontFactor<T>::inverse_on_pattern(PatternView A, T* inverse) const {
  const int want = (int)std::min<double>(num_threads(), 1 + plan_.total_work / kWorkPerThread);
  Inverse(*this, A, inverse, want).run(want);
}

#define GS_INSTANTIATE(T) template void FrontFactor<T>::inverse_on_pattern(PatternView, T*) const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
