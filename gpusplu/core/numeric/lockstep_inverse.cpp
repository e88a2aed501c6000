#include "numeric/lockstep_inverse.hpp"

#include <numeric>

#include "analysis/entry_places.hpp"
#include "base/scalars.hpp"
#include "numeric/dense_inverse.hpp"
#include "numeric/error_checks.hpp"
#include "numeric/numeric.hpp"

namespace gs {

// The traversal visits a front after all its ancestors, and its children before its next sibling, so only the blocks of
// its ancestors have to be in memory.
template <class T> LockstepInverse<T>::LockstepInverse(const gpu::LockstepPlan& plan, PatternView A)
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

template <class T> off LockstepInverse<T>::workspace() const { return blocks_size_ + inverse_scratch(plan_.tallest); }

// Copies the block below the pivots from the parent's block.
template <class T> void LockstepInverse<T>::gather(const gpu::LockstepFront& front, const T* parent, T* Z) const {
  const off R = front.rows, H = R - front.width, R_parent = H ? plan_.fronts[front.parent].rows : 0;
  const std::uint16_t* place = plan_.place.data() + front.below;
  for (off j = 0; j < H; j++) {
    const T* from = parent + place[j] * R_parent;
    T* to = Z + front.width + (front.width + j) * R;
    for (off i = 0; i < H; i++) to[i] = from[place[i]];
  }
}

template <class T> double LockstepInverse<T>::find(const T* values, T* factor, T* work, T* inverse) const {
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

#define GS_INSTANTIATE(T) template class LockstepInverse<T>;
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
