#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>

#include "base/raw_vector.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "matrix/canonical.hpp"
#include "numeric/lockstep_factor.hpp"
#include "plan/lockstep/plan.hpp"

namespace gs {
namespace {

template <class T> using InRows = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

template <class T> using LockstepBinding = Bound<LockstepFactor<T>>;

template <class T> LockstepBinding<T>* make_lockstep(const Symbolic& symbolic, nb::object canonical, idx count,
                                                     In<T> like, const Costs& costs, const std::string& refine) {
  const Canonical& given = nb::cast<const Canonical&>(canonical);
  const PatternView A = given.pattern.view();
  require_analysis_of(A, symbolic);
  require(symbolic.nnz == A.nnz(), "the analysis is of another pattern");
  require(count > 0, "count must be positive");
  const SupernodeCosts& merging = costs.lockstep.merging;
  const AccuracyPolicy policy(eps<T>, Pivoting::automatic, refine_of(refine), 0);
  const Canonical* const compared = symbolic.cholesky ? &given : nullptr;
  require(like.shape(0) == 0 || (off)like.shape(0) == A.nnz(), "`like` has another number of values");
  const T* const guide = like.shape(0) == 0 ? nullptr : like.data();
  auto factor = without_gil(
      [&] { return std::make_unique<LockstepFactor<T>>(symbolic, A, count, merging, policy, compared, guide); });
  return new LockstepBinding<T>{std::move(canonical), std::move(factor)};
}

// Values of all systems: in canonical order, or the caller's if `source` is given.
template <class T>
void require_values(const LockstepBinding<T>& self, const InRows<T>& values, const std::optional<In<off>>& source) {
  const LockstepFactor<T>& factor = *self.factor;
  require(values.ndim() == 2, "values must have two dimensions");
  require((off)values.shape(0) == factor.count(), "values must have a row for each system");
  require((off)values.shape(1) >= (source ? self.nvalues() : factor.nnz()), "a system has too few values");
  if (source) require_entries(*source, factor.nnz(), "source");
}

template <class T>
void refactor_lockstep(LockstepBinding<T>& self, InRows<T> values, const std::optional<In<off>>& source) {
  require_values(self, values, source);
  without_gil([&] { self.factor->refactor(values.data(), (off)values.shape(1), source ? source->data() : nullptr); });
}

// Allocates the result of solve(nrhs, x) for `b`.
template <class T, class Solve>
nb::ndarray<nb::numpy, T> solution(const LockstepBinding<T>& self, const InRows<T>& b, int trans, Solve&& solve) {
  const LockstepFactor<T>& factor = *self.factor;
  require(b.ndim() == 2 || b.ndim() == 3, "b must have two dimensions or three");
  require((off)b.shape(0) == factor.count(), "b must have a row for each system");
  require((off)b.shape(1) == factor.n(), "a right-hand side has another order than the matrix");
  require(trans >= 0 && trans <= 2, "trans must be 0, 1 or 2");
  const size_t nrhs = b.ndim() == 2 ? 1 : b.shape(2);
  const size_t shape[] = {b.shape(0), b.shape(1), nrhs};
  auto* x = new RawVector<T>(shape[0] * shape[1] * nrhs);
  nb::capsule owner(x, [](void* p) noexcept { delete static_cast<RawVector<T>*>(p); });
  without_gil([&] { solve((idx)nrhs, x->data()); });
  return nb::ndarray<nb::numpy, T>(x->data(), b.ndim(), shape, owner);
}

template <class T> nb::ndarray<nb::numpy, T> solve_lockstep(LockstepBinding<T>& self, InRows<T> b, int trans) {
  return solution(self, b, trans, [&](idx nrhs, T* x) { self.factor->solve((Trans)trans, nrhs, b.data(), x); });
}

template <class T> nb::ndarray<nb::numpy, T> refactor_solve_lockstep(LockstepBinding<T>& self, InRows<T> values,
                                                                     InRows<T> b, int trans,
                                                                     const std::optional<In<off>>& source) {
  require_values(self, values, source);
  return solution(self, b, trans, [&](idx nrhs, T* x) {
    self.factor->refactor_solve(values.data(), (off)values.shape(1), source ? source->data() : nullptr, (Trans)trans,
                                nrhs, b.data(), x);
  });
}

template <class T> Tuple<NumPy<T>, NumPy<double>> slogdet_lockstep(LockstepBinding<T>& self) {
  std::vector<T> sign(self.factor->count());
  std::vector<double> log_modulus(sign.size());
  without_gil([&] { self.factor->slogdet(sign.data(), log_modulus.data()); });
  return nb::make_tuple(to_numpy(std::move(sign)), to_numpy(std::move(log_modulus)));
}

template <class T> NumPy<T> values_binding(const LockstepBinding<T>& self, idx system) {
  require(system >= 0 && system < self.factor->count(), "there is no such system");
  return to_numpy(without_gil([&] { return self.factor->values(system); }));
}

template <class T> Tuple<nb::ndarray<nb::numpy, T>, NumPy<double>> invert_lockstep(LockstepBinding<T>& self) {
  LockstepFactor<T>& factor = *self.factor;
  std::vector<double> errors;
  auto inverse =
      numpy_rows<T>(factor.count(), factor.nnz(), [&](T* rows) { errors = factor.inverse_on_pattern(rows); });
  return nb::make_tuple(std::move(inverse), to_numpy(std::move(errors)));
}

template <class T> void bind_lockstep_of(nb::module_& m, const char* name) {
  using Factor = LockstepFactor<T>;
  using Self = LockstepBinding<T>;
  nb::class_<Self>(m, name, "Systems of one pattern in lockstep; see core/numeric/lockstep_factor.hpp.")
      .def("refactor", &refactor_lockstep<T>, "values"_a.noconvert(), "source"_a = nb::none(),
           "Values (count, nnz) in canonical order, or with `source` the caller's.")
      .def("solve", &solve_lockstep<T>, "b"_a.noconvert(), "trans"_a = 0, "b: (count, n) or (count, n, nrhs).")
      .def("refactor_solve", &refactor_solve_lockstep<T>, "values"_a.noconvert(), "b"_a.noconvert(), "trans"_a = 0,
           "source"_a = nb::none())
      .def("values", &values_binding<T>, "system"_a, "Canonical values of a system that were factored last.")
      .def("report", &asked<&Factor::report>, "Bytes of a LockstepReport for each system.")
      .def("errors", &asked<&Factor::errors>)
      .def("steps", &asked<&Factor::steps>)
      .def("slogdet", &slogdet_lockstep<T>)
      .def("inverse_on_pattern", &invert_lockstep<T>,
           "Entry (j, i) of the inverse for each canonical entry (i, j), (count, nnz), and identity errors.")
      .def_prop_ro("n", [](const Self& self) { return self.factor->n(); })
      .def_prop_ro("nbytes", [](const Self& self) { return self.factor->bytes(); });
  m.def(
      "lockstep", &make_lockstep<T>, "symbolic"_a, "canonical"_a, "count"_a, "like"_a.noconvert(), "costs"_a,
      nb::kw_only(), "refine"_a = "auto",
      "Room for `count` systems with this canonical pattern, by an analysis of either method, of the dtype of `like`: "
      "canonical values whose factorization by columns chooses the pivots, or none.");
}

gpu::LockstepPlan plan_lockstep(const Symbolic& symbolic, In<off> ptr, In<idx> ind, const Costs& costs, double grain) {
  const PatternView A = pattern_view(ptr, ind);
  require_analysis_of(A, symbolic);
  require(grain >= 0, "grain must not be negative");
  return without_gil([&] { return gpu::make_lockstep_plan(symbolic, A, {costs.lockstep.merging, grain}); });
}

template <class T> using InMatrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Inverts with factors that were computed elsewhere, one system per row.
template <class T>
Tuple<nb::ndarray<nb::numpy, T>, NumPy<double>> invert_planned(const gpu::LockstepPlan& plan, In<off> ptr, In<idx> ind,
                                                               InMatrix<T> factors, InMatrix<T> values) {
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
      numpy_rows<T>(count, nnz, [&](T* rows) { errors = lockstep_inverse<T>(plan, A, (idx)count, fetch, rows); });
  return nb::make_tuple(std::move(inverse), to_numpy(std::move(errors)));
}

}  // namespace

void bind_lockstep(nb::module_& m) {
  using Plan = gpu::LockstepPlan;
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
  m.attr("MOST_LOCKSTEP_ORDER") = most_lockstep_order;
  for_scalars([&]<class T>(const char* dtype) { bind_lockstep_of<T>(m, ("Lockstep_" + std::string(dtype)).c_str()); });
}

}  // namespace gs
