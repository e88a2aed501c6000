// Checks of unpickled arrays: every property that the core later relies on. They throw std::invalid_argument.
#pragma once
#include "base/types.hpp"
#include "matrix/canonical.hpp"

namespace gs {

// Whether begin[0] .. begin[n] ascend from 0 to `end`; strictly, if no range between them may be empty.
template <class I> bool ascends(const std::vector<I>& begin, off n, off end, bool strictly = false) {
  if ((off)begin.size() != n + 1 || begin[0] != 0 || (off)begin[n] != end) return false;
  bool ascending = true;
  for (off k = 0; k < n; k++) ascending &= strictly ? begin[k] < begin[k + 1] : begin[k] <= begin[k + 1];
  return ascending;
}

// Cost: O(entries).
void validate(const Canonical& canonical);

}  // namespace gs
