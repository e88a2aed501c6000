// Entries of the inverses of systems in lockstep, from their factors (plan/lockstep/plan.hpp): system by system, front
// by front from the roots down, as numeric/front_inverse.cpp does for one system.
#pragma once
#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "plan/lockstep/plan.hpp"

namespace gs {

template <class T> class LockstepInverse {
 public:
  // The arguments must outlive it.
  LockstepInverse(const gpu::LockstepPlan& plan, PatternView A);

  // Entry (j, i) of the inverse for each entry (i, j) of A, of all systems: `inverse` is (count, nnz). fetch(system,
  // factor, values) copies the data of a system, on any thread. Returns the identity errors
  // (numeric/error_checks.hpp).
  template <class Fetch> std::vector<double> of_all(idx count, Fetch&& fetch, T* inverse) const {
    const int threads = std::min<int>(num_threads(), count);
    std::vector<RawVector<T>> work;
    for (int rank = 0; rank < threads; rank++) work.emplace_back(A_.nnz() + plan_.factor_size + workspace());
    std::vector<double> errors(count);
    share_out(threads, count, [&](std::size_t system, int rank) {
      T *const values = work[rank].data(), *const factor = values + A_.nnz();
      fetch((idx)system, factor, values);
      errors[system] = find(values, factor, factor + plan_.factor_size, inverse + system * A_.nnz());
    });
    return errors;
  }

 private:
  struct Entry {
    off k;      // of A
    off place;  // of the entry at the transposed position
  };
  off workspace() const;
  double find(const T* values, T* factor, T* work, T* inverse) const;
  void gather(const gpu::LockstepFront& front, const T* parent, T* Z) const;

  const gpu::LockstepPlan& plan_;
  PatternView A_;
  std::vector<off> ptr_;  // of every front into `entries_`
  RawVector<Entry> entries_;
  std::vector<off> block_;      // position of a front's inverse, after that of its parent
  std::vector<idx> unchanged_;  // rows are not interchanged
  off blocks_size_ = 0;
};

}  // namespace gs
