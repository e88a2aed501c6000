#include "numeric/lockstep_factor.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/entry_places.hpp"
#include "base/parallel.hpp"
#include "base/types.hpp"
#include "numeric/dense_inverse.hpp"
#include "numeric/error_checks.hpp"
#include "numeric/numeric.hpp"

namespace gs {
namespace {

// The traversal visits a front after all its ancestors, and its children before its next sibling, so only the blocks of
// its ancestors have to be in memory.
template <class T> class LockstepInverse {
 public:
  LockstepInverse(const gpu::LockstepPlan& plan, PatternView A)
      : plan_(plan), A_(A), block_(plan.nf), unchanged_(plan.tallest) {
    std::iota(unchanged_.begin(), unchanged_.end(), 0);
    std::vector<idx> first(plan.nf);
    std::vector<off> below_ptr(plan.nf + 1, (off)plan.below.size());
    for (idx f = plan.nf; f-- > 0;) {
      const gpu::LockstepFront& front = plan.fronts[f];
      first[f] = front.first, below_ptr[f] = front.below;
      const auto end = [&](idx g) { return block_[g] + (off)plan.fronts[g].rows * plan.fronts[g].rows; };
      block_[f] = front.parent < 0 ? 0 : end(front.parent);
      blocks_size_ = std::max(blocks_size_, end(f));
    }
    EntryPlaces<idx> places({.n = plan.n,
                             .nf = plan.nf,
                             .one_triangle = false,
                             .row_perm = plan.row_perm.data(),
                             .col_perm = plan.col_perm.data(),
                             .first = first.data(),
                             .below_ptr = below_ptr.data(),
                             .below = plan.below.data()},
                            A);
    ptr_ = places.count();
    entries_.resize(ptr_.back());
    places.write([&](off to, idx f, off k, idx, idx row, idx column) {
      entries_[to] = {k, column + row * (off)plan.fronts[f].rows};
    });
  }

  off workspace() const { return blocks_size_ + inverse_scratch(plan_.tallest); }

  double find(const T* values, T* factor, T* work, T* inverse) const {
    const FrontKind kind = plan_.cholesky ? FrontKind::cholesky : FrontKind::lu;
    for (idx f = plan_.nf; f-- > 0;) {
      const gpu::LockstepFront& front = plan_.fronts[f];
      const idx W = front.width, H = front.rows - W;
      T *const Z = work + block_[f], *const L = factor + front.factor;
      if (H) gather(front, work + block_[front.parent], Z);
      for (idx k = 0; k < W; k++) L[k * (front.rows + off(1))] = T(1) / L[k * (front.rows + off(1))];
      const FactoredFront<T> factored{kind, W, H, L, L + off(W) * front.rows, unchanged_.data(), nullptr, nullptr};
      Loops serial;
      inverse_front(serial, factored, Z, work + blocks_size_);
      for (off p = ptr_[f]; p < ptr_[f + 1]; p++) inverse[entries_[p].k] = Z[entries_[p].place];
    }
    if (!plan_.row_scale.empty())
      for (idx j = 0; j < A_.n; j++)
        for (off k = A_.ptr[j]; k < A_.ptr[j + 1]; k++)
          inverse[k] = unscaled(inverse[k], plan_.row_scale[A_.ind[k]], plan_.col_scale[j]);
    return identity_error(A_, values, A_, inverse);
  }

 private:
  struct Entry {
    off k;      // of A
    off place;  // of the entry at the transposed position
  };

  // Copies the block below the pivots from the parent's block.
  void gather(const gpu::LockstepFront& front, const T* parent, T* Z) const {
    const off R = front.rows, H = R - front.width, R_parent = H ? plan_.fronts[front.parent].rows : 0;
    const std::uint16_t* place = plan_.place.data() + front.below;
    for (off j = 0; j < H; j++) {
      const T* from = parent + place[j] * R_parent;
      T* to = Z + front.width + (front.width + j) * R;
      for (off i = 0; i < H; i++) to[i] = from[place[i]];
    }
  }

  const gpu::LockstepPlan& plan_;
  PatternView A_;
  std::vector<off> ptr_;  // of every front into `entries_`
  RawVector<Entry> entries_;
  std::vector<off> block_;      // position of a front's inverse, after that of its parent
  std::vector<idx> unchanged_;  // rows are not interchanged
  off blocks_size_ = 0;
};

}  // namespace

template <class T> std::vector<double> lockstep_inverse(const gpu::LockstepPlan& plan, PatternView A, idx count,
                                                        const std::function<void(idx, T*, T*)>& fetch, T* inverse) {
  const LockstepInverse<T> inverses(plan, A);
  const int threads = std::min<int>(num_threads(), count);
  std::vector<RawVector<T>> work;
  for (int rank = 0; rank < threads; rank++) work.emplace_back(A.nnz() + plan.factor_size + inverses.workspace());
  std::vector<double> errors(count);
  share_out(threads, count, [&](std::size_t system, int rank) {
    T *const values = work[rank].data(), *const factor = values + A.nnz();
    fetch((idx)system, factor, values);
    errors[system] = inverses.find(values, factor, factor + plan.factor_size, inverse + system * A.nnz());
  });
  return errors;
}

#define GS_INSTANTIATE(T)                                                                   \
  template std::vector<double> lockstep_inverse(const gpu::LockstepPlan&, PatternView, idx, \
                                                const std::function<void(idx, T*, T*)>&, T*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
