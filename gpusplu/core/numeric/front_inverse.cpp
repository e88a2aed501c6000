// Entries of A^-1 from the fronts, from the roots down: a front takes the inverse block of the rows below its pivots
// from its parent's and adds those of its pivots (numeric/dense_inverse.hpp). A block is freed when all children have
// taken theirs.
//
// Cost: about twice the arithmetic of the factorization.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "analysis/entry_places.hpp"
#include "analysis/graph.hpp"
#include "base/job_kind.hpp"
#include "base/types.hpp"
#include "numeric/dense_inverse.hpp"
#include "numeric/front_factor.hpp"
#include "numeric/front_walks.hpp"

namespace gs {
namespace {

constexpr idx kLeastInverseColumns = 64;  // of a front, minimum that a thread copies at once
constexpr int kLeastEntries = 10000;      // the same for the result

}  // namespace

template <class T> void FrontFactor<T>::InverseSpace::place(const Symbolic& symbolic, PatternView P) {
  EntryPlaces<idx> places(columns_of_fronts(symbolic, false), P);
  ptr = places.count();
  entries.resize(ptr.back());
  places.write([&](off to, idx s, off k, idx, idx row, idx column) {
    entries[to] = {k, column + row * (off)FrontShape(symbolic, s).R};
  });
}

template <class T> struct FrontFactor<T>::Inverse {
  const FrontFactor& factor;
  const Symbolic& symbolic;
  const FrontPlan& plan;
  InverseSpace& space;
  T* const inverse;
  std::vector<T*> blocks;                 // by front, until all children have taken theirs
  std::vector<std::atomic<idx>> waiting;  // number of children that have not, by front
  std::atomic<bool> out_of_memory{false};

  Inverse(const FrontFactor& factor, InverseSpace& space, T* inverse)
      : factor(factor),
        symbolic(*factor.symbolic_),
        plan(factor.plan_),
        space(space),
        inverse(inverse),
        blocks(symbolic.nsuper(), nullptr),
        waiting(symbolic.nsuper()) {
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
      if (space.scratch[rank].empty())
        space.scratch[rank].resize(inverse_scratch(factor.tallest_, (int)space.scratch.size()));
      blocks[s] = static_cast<T*>(space.memory.take(rank, block_bytes(s)));
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  }

  void give_block(int rank, idx s) {
    if (T* block = std::exchange(blocks[s], nullptr)) space.memory.give(rank, block, block_bytes(s));
  }

  void taken_from(int rank, idx parent) {
    if (parent >= 0 && waiting[parent].fetch_sub(1, std::memory_order_acq_rel) == 1) give_block(rank, parent);
  }

  // Copies columns begin .. end-1 of Z22 from the parent's block, by runs of neighbouring rows where they are long.
  void gather(idx s, idx begin, idx end) const {
    const auto [W, H, R] = factor.shape(s);
    if (begin == end) return;
    const idx parent = symbolic.super_parent[s];
    const off R_parent = factor.shape(parent).R;
    const idx* rel = symbolic.rel_ind.data() + symbolic.row_ptr[s];
    idx n_runs = 1;
    for (idx i = 1; i < H; i++) n_runs += rel[i] != rel[i - 1] + 1;
    for (idx j = begin; j < end; j++) {
      const T* from = blocks[parent] + rel[j] * R_parent;
      T* to = blocks[s] + W + off(W + j) * R;
      if (n_runs == 1) {
        std::copy_n(from + rel[0], H, to);
      } else if (8 * n_runs <= H) {
        for (idx i = 0, next; i < H; i = next) {
          for (next = i + 1; next < H && rel[next] == rel[next - 1] + 1;) next++;
          std::copy_n(from + rel[i], next - i, to + i);
        }
      } else {
        for (idx i = 0; i < H; i++) to[i] = from[rel[i]];
      }
    }
  }

  void write(idx s, Loops& loops) const {
    const off first = space.ptr[s], count = space.ptr[s + 1] - first;
    const int parts = loops.parts((int)std::min<off>(count, 1 << 30), kLeastEntries);
    loops.run(parts, [&](int k, int) {
      const auto [begin, end] = slice(count, Team{k, parts});
      for (off p = first + begin; p < first + end; p++) inverse[space.entries[p].k] = blocks[s][space.entries[p].place];
    });
  }

  void front(Loops& loops, idx s) {
    const int rank = loops.rank();
    if (!out_of_memory && !must_stop()) take_memory(rank, s);
    if (!blocks[s]) return;
    const auto [W, H, R] = factor.shape(s);
    const int parts = loops.parts(H, kLeastInverseColumns);
    loops.run(parts, [&](int k, int) {
      const auto [begin, end] = slice(H, Team{k, parts});
      gather(s, begin, end);
    });
    taken_from(rank, symbolic.super_parent[s]);
    const T* L = factor.panel(s);
    const idx start = symbolic.super_ptr[s];
    const FrontKind kind = symbolic.cholesky ? FrontKind::cholesky : symbolic.ldlt ? FrontKind::ldlt : FrontKind::lu;
    const T *d = factor.diagonal_.data(), *e = factor.below_diagonal_.data();
    if (symbolic.ldlt) d += start, e += start;
    const idx* pivots = factor.pivots_.data() + start;
    const FactoredFront<T> factored{kind, W, H, L, L + off(W) * R, pivots, d, e, factor.hermitian_};
    inverse_front(loops, factored, blocks[s], space.scratch[rank].data());
    write(s, loops);
    if (plan.child_ptr[s] == plan.child_ptr[s + 1]) give_block(rank, s);
  }

  void task(Loops& loops, const FrontTask& task) {
    Loops serial(loops.rank());
    for (idx s = task.last; s >= task.first; s--) front(task.is_large ? loops : serial, s);
  }

  void run(int threads) {
    DownwardWalk walk(plan);
    static constinit JobKind kind;
    SharedLoops shared(threads);
    const auto body = [&](const Team& team) {
      walk.run(team, shared, [&](Loops& loops, idx t) { task(loops, plan.tasks[t]); });
    };
    run_helpers(threads, body, &kind, plan.total_work);
    if (out_of_memory) throw std::bad_alloc();
  }
};

template <class T> void FrontFactor<T>::inverse_on_pattern(PatternView P, void* out, bool again) const {
  T* const inverse = (T*)out;
  const int want = (int)std::min<double>(num_threads(), 1 + plan_.total_work / symbolic_->costs.threads.inverse);
  std::unique_ptr<InverseSpace> space = inverse_space_.take();
  if (!space) space = std::make_unique<InverseSpace>();
  if (!again || space->ptr.empty()) space->place(*symbolic_, P);
  space->memory.prepare(want, (std::size_t)tallest_ * tallest_ * sizeof(T));
  if ((int)space->scratch.size() < want) space->scratch.resize(want);
  Inverse(*this, *space, inverse).run(want);
  if (!again) space->ptr.clear();
  space->memory.start_again();
  inverse_space_.keep(std::move(space));
  const Symbolic& s = *symbolic_;
  if (s.row_scale.empty()) return;
  over_range(P.n, P.nnz(), [&](idx begin, idx end) {
    for (idx j = begin; j < end; j++)
      for (off k = P.ptr[j]; k < P.ptr[j + 1]; k++)
        inverse[k] = unscaled(inverse[k], s.row_scale[P.ind[k]], s.col_scale[j]);
  });
}

template <class T> std::vector<char> FrontFactor<T>::has_places(PatternView P) const {
  const Symbolic& s = *symbolic_;
  const idx n = s.n;
  const std::vector<idx> row_place = inverse_permutation(s.row_perm.data(), n);
  const std::vector<idx> front_of = part_of_each(s.super_ptr, n);
  std::vector<char> has(P.nnz());
  over_range(n, P.nnz(), [&](idx begin, idx end) {
    for (idx column = begin; column < end; column++)
      for (off k = P.ptr[s.col_perm[column]]; k < P.ptr[s.col_perm[column] + 1]; k++) {
        const auto [first, last] = std::minmax(row_place[P.ind[k]], column);
        has[k] = s.has_row(front_of[first], last);
      }
  });
  return has;
}

#define GS_INSTANTIATE(T)                                                           \
  template void FrontFactor<T>::inverse_on_pattern(PatternView, void*, bool) const; \
  template std::vector<char> FrontFactor<T>::has_places(PatternView) const;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
