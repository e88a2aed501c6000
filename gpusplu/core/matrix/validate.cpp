#include "matrix/validate.hpp"

#include "base/require.hpp"

namespace gs {
namespace {

bool is_canonical(const Pattern& pattern) {
  for (idx j = 0; j < pattern.n; j++) {
    idx previous = -1;
    for (off p = pattern.ptr[j]; p < pattern.ptr[j + 1]; previous = pattern.ind[p++])
      if (pattern.ind[p] <= previous || pattern.ind[p] >= pattern.n) return false;
  }
  return true;
}

}  // namespace

void validate(const Canonical& c) {
  const off nnz = (off)c.pattern.ind.size();
  require(c.pattern.n >= 0 && ascends(c.pattern.ptr, c.pattern.n, nnz),
          "a pickled pattern is damaged: its column pointers do not ascend to the number of entries");
  require(is_canonical(c.pattern), "a pickled pattern is damaged: rows of a column do not ascend within the matrix");
  if (c.identity)
    return require(c.nvalues == nnz && c.source.empty() && c.source_ptr.empty(),
                   "a pickled pattern is damaged: it says that values lie in order, and where they lie");
  require(c.source_ptr.empty() ? (off)c.source.size() == nnz : ascends(c.source_ptr, nnz, (off)c.source.size(), true),
          "a pickled pattern is damaged: sources of its values are missing");
  bool inside = c.nvalues >= 0;
  for (const off source : c.source) inside &= (source ^ (source >> 63)) < c.nvalues;  // ~source when negative
  require(inside, "a pickled pattern is damaged: a value comes from outside of the caller's values");
}

}  // namespace gs
