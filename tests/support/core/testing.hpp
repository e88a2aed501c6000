// What the bindings of _core_testing share.
#pragma once
#include "analysis/symbolic.hpp"
#include "bind/checks.hpp"
#include "numeric/numeric.hpp"

namespace gs {

inline nb::dict to_dict(const FactorInfo& info) {
  static constexpr const char* status[] = {"ok", "singular", "bad_growth", "not_finite", "not_positive_definite"};
  nb::dict d;
  d["status"] = status[info.status], d["column"] = info.column;
  d["min_pivot"] = info.min_pivot, d["max_pivot"] = info.max_pivot;
  d["max_multiplier"] = info.max_multiplier;
  d["n_perturbed"] = info.n_perturbed, d["n_off_diagonal"] = info.n_off_diagonal;
  d["flops"] = info.flops;
  return d;
}

inline void set_permutations(Symbolic& symbolic, const In<idx>& row_perm, const In<idx>& col_perm,
                             const In<double>& row_scale, const In<double>& col_scale) {
  symbolic.row_perm = to_vector(row_perm), symbolic.col_perm = to_vector(col_perm);
  symbolic.row_scale = to_vector(row_scale), symbolic.col_scale = to_vector(col_scale);
}

void bind_teams(nb::module_&);
void bind_products(nb::module_&);
void bind_ordering(nb::module_&);
void bind_structure(nb::module_&);
void bind_numeric(nb::module_&);
void bind_dense(nb::module_&);
void bind_lockstep_solve(nb::module_&);

}  // namespace gs
