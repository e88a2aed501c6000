// The first steps of a factorization with default options in one call: for a small matrix separate calls cost more than
// the work.
#pragma once
#include <memory>
#include <vector>

#include "analysis/analyze.hpp"
#include "base/stopwatch.hpp"
#include "bind/checks.hpp"
#include "matrix/canonical.hpp"
#include "matrix/values.hpp"

namespace gs {

// The caller's values in canonical order: themselves, or gathered into `memory`. Null if one is not finite.
template <class T> const T* canonical_values(const Canonical& canonical, const T* values, std::vector<T>& memory) {
  if (!canonical.identity) {
    memory.resize(canonical.pattern.view().nnz());
    gather_values(canonical, values, memory.data());
    values = memory.data();
  }
  return all_finite(values, canonical.pattern.view().nnz()) ? values : nullptr;
}

// Compressed columns, canonicalized, checked and analysed for LU.
template <class T> struct Begun {
  std::unique_ptr<Canonical> canonical = std::make_unique<Canonical>();
  std::shared_ptr<Symbolic> symbolic;
  std::vector<T> gathered;
  const T* values = nullptr;  // canonical ones
  double seconds = 0;         // seconds before the analysis

  // False if a value is not finite. Runs without the GIL; require_pointers must have checked the matrix.
  template <class I>
  bool begin(idx n, const In<I>& ptr, const In<I>& ind, const In<T>& given, const AnalyzeOptions& options) {
    const Stopwatch watch;
    *canonical = canonical_from_columns(n, ptr.data(), ind.data(), (off)ind.shape(0));
    require_entries(given, canonical->nvalues, "data");
    values = canonical_values(*canonical, given.data(), gathered);
    if (!values) return false;
    seconds = watch.seconds();
    symbolic = std::make_shared<Symbolic>(analyze(canonical->pattern.view(), values, options));
    symbolic->seconds = watch.seconds() - seconds;
    return true;
  }
};

}  // namespace gs
