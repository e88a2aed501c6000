#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "numeric/lockstep_inverse.hpp"
#include "plan/lockstep/plan.hpp"

namespace gs::gpu {
namespace {

LockstepPlan plan_lockstep(const Symbolic& symbolic, In<off> ptr, In<idx> ind, const Costs& costs, double grain) {
  const PatternView A = pattern_view(ptr, ind);
  require_analysis_of(A, symbolic);
  require(grain >= 0, "grain must not be negative");
  return without_gil([&] { return make_lockstep_plan(symbolic, A, {costs.lockstep.merging, grain}); });
}

template <class T> using InMatrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Inverts with factors that were computed elsewhere, one system per row.
template <class T> Tuple<nb::ndarray<nb::numpy, T>, NumPy<double>> invert_planned(const LockstepPlan& plan, In<off> ptr,
                                                                                  In<idx> ind, InMatrix<T> factors,
                                                                                  InMatrix<T> values) {
  const PatternView A = pattern_view(ptr, ind);
  const std::size_t count = factors.shape(0), nnz = A.nnz(), size = plan.factor_size;
  require(A.n == plan.n && A.nnz() == plan.nnz, "the plan is of another pattern");
  require(factors.shape(1) == size, "a system has another number of entries of the factor");
  require(values.shape(0) == count && values.shape(1) == nnz, "values must have a row for each system");
  std::vector<double> errors;
  const auto fetch = [&](idx system, T* factor, T* own) {
    std::copy_n(factors.data() + system * size, size, factor);
    std::copy_n(values.data() + system * nnz, nnz, own);
  };
  auto inverse =
      numpy_rows<T>(count, nnz, [&](T* rows) { errors = LockstepInverse<T>(plan, A).of_all((idx)count, fetch, rows); });
  return nb::make_tuple(std::move(inverse), to_numpy(std::move(errors)));
}

}  // namespace

void bind_lockstep_plan(nb::module_& m) {
  using Plan = LockstepPlan;
  nb::class_<Plan> plan(m, "LockstepPlan",
                        "Plan of systems in lockstep; see core/plan/lockstep/plan.hpp. Arrays are read-only views.");
  def_members<&Plan::n, &Plan::nf, &Plan::nnz, &Plan::cholesky, &Plan::row_perm, &Plan::col_perm, &Plan::row_scale,
              &Plan::col_scale, &Plan::fronts, &Plan::tasks, &Plan::below, &Plan::place, &Plan::child,
              &Plan::entry_source, &Plan::entry_target, &Plan::entry_scale, &Plan::factor_size, &Plan::shared_size,
              &Plan::task_size, &Plan::flops, &Plan::work, &Plan::seconds>(plan);
  for_scalars([&]<class T>(const char*) {
    plan.def("inverse_on_pattern", &invert_planned<T>, "ptr"_a, "ind"_a, "factors"_a.noconvert(),
             "values"_a.noconvert(),
             "Entry (j, i) of the inverse for each canonical entry (i, j), and identity errors, by factors (count, "
             "factor_size) of systems with values (count, nnz).");
  });
  m.def("make_lockstep_plan", &plan_lockstep, "symbolic"_a, "ptr"_a, "ind"_a, "costs"_a, nb::kw_only(), "grain"_a = 0.0,
        "Plan for systems in lockstep, of a symbolic of method 'front' and the canonical pattern it was made of.");
}

}  // namespace gs::gpu
