// Passes over a matrix's values: through the map of a Canonical, and the check for NaN and infinity.
#pragma once
#include "base/types.hpp"
#include "matrix/canonical.hpp"

namespace gs {

// out[k] = canonical value k from the caller's `values`; out has canonical.pattern.nnz() entries. Threaded when large;
// the order of summation is fixed.
template <class T> void gather_values(const Canonical& canonical, const T* values, T* out);

// Largest modulus of a real or imaginary part; infinity when any of them is NaN or infinite. Runs at the speed of
// memory.
template <class T> double largest_part(const T* values, off n);

// Whether no value is NaN or infinite.
template <class T> bool all_finite(const T* values, off n) { return std::isfinite(largest_part(values, n)); }

// out[k] = values[source[k]], or values[k] if source is null; returns largest_part(out, n). Threaded when large.
template <class T> double copy_values(const T* values, const off* source, T* out, off n);

}  // namespace gs
