#include "analysis/compatibility.hpp"

#include "analysis/own_order.hpp"
#include "base/scalars.hpp"
#include "matrix/matching_fits.hpp"
#include "matrix/symmetry.hpp"

namespace gs {

template <class T> bool analysis_is_compatible(PatternView A, const T* values, const Symbolic& s, bool any_values) {
  if (s.ordering == "natural" && s.row_scale.empty()) return rows_are_alike(A, values);
  if (!s.ldlt && s.nsuper() == 1 && !s.row_scale.empty()) return scales_fit(A, values, s.row_scale, s.col_scale);
  if (!s.ldlt) return matching_fits(A, values, s.row_perm, s.col_perm, s.row_scale, s.col_scale, s.keeps_diagonal);
  return scales_fit(A, values, s.row_scale, s.row_scale) && (!any_values || symmetry_of(A, values) != Symmetry::none);
}

#define GS_INSTANTIATE(T) template bool analysis_is_compatible(PatternView, const T*, const Symbolic&, bool);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
