// The accuracy policy for engines with factors from outside the core.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <complex>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "matrix/products.hpp"
#include "numeric/error_checks.hpp"

namespace gs {
namespace {

double eps_of(const std::string& dtype) {
  return with_scalar(dtype_named(dtype), []<class T>(T) -> double { return eps<T>; });
}

using Errors = std::pair<double, double>;

Refined refine(const AccuracyPolicy& policy, const PivotReport& pivots, std::function<Errors(bool)> measure,
               std::function<double(bool)> step, std::function<void()> go_back) {
  const auto errors = [&](bool by_rows) {
    const auto [normwise, rowwise] = measure(by_rows);
    return SolveError{normwise, rowwise};
  };
  return policy.refine(pivots, {errors, step, go_back});
}

using Solve = nb::typed<nb::callable, nb::any(nb::any, int)>;

template <class T> double inverse_norm_by(idx n, const Solve& solve) {
  return estimate_inverse_norm<T>(n, [&](Trans trans, const T* b, T* x) {
    const nb::object solution = solve(to_numpy(std::vector<T>(b, b + n)), (int)trans);
    const In<T> found = nb::cast<In<T>>(solution);
    require_length(found, (off)n, "the solution");
    std::copy_n(found.data(), n, x);
  });
}

double inverse_norm(const std::string& dtype, idx n, const Solve& solve) {
  return with_scalar(dtype_named(dtype), [&]<class T>(T) { return inverse_norm_by<T>(n, solve); });
}

template <class T> void bind_sizes(nb::module_& m) {
  m.def(
      "relative_size",
      [](In<T> step, In<T> x, idx nrhs) {
        require(nrhs > 0 && (off)x.shape(0) % nrhs == 0, "x must have nrhs columns");
        require_length(step, (off)x.shape(0), "step");
        return relative_size(step.data(), x.data(), (idx)((off)x.shape(0) / nrhs), nrhs);
      },
      "step"_a.noconvert(), "x"_a.noconvert(), "nrhs"_a,
      "The largest entry of a step beside that of its solution, the largest over the columns.");
}

}  // namespace

void bind_accuracy_policy(nb::module_& m) {
  nb::class_<PivotReport>(m, "PivotReport",
                          "What a factorization says of itself; see core/certify/accuracy_policy.hpp.")
      .def(
          "__init__",
          [](PivotReport* self, bool failed, idx n_perturbed, idx n_tiny, double max_multiplier, double growth) {
            new (self) PivotReport{failed, true, n_perturbed, n_tiny, max_multiplier, growth};
          },
          nb::kw_only(), "failed"_a = false, "n_perturbed"_a = 0, "n_tiny"_a = 0, "max_multiplier"_a = 0.0,
          "growth"_a = 0.0);
  nb::enum_<Decision>(m, "Decision")
      .value("accept", Decision::accept)
      .value("solve_known_system", Decision::solve_known_system)
      .value("choose_pivots", Decision::choose_pivots);
  nb::class_<Refined> refined(m, "Refined", "What refinement came to.");
  def_members<&Refined::error, &Refined::steps, &Refined::accurate_at_start, &Refined::accurate>(refined);
  nb::class_<AccuracyPolicy>(m, "AccuracyPolicy", "The rules of certification; see core/certify/accuracy_policy.hpp.")
      .def(
          "__init__",
          [](AccuracyPolicy* self, const std::string& dtype, const std::string& pivoting, const std::string& refine) {
            new (self)
                AccuracyPolicy(eps_of(dtype), pivoting_of(pivoting), refine_of(refine), 1);  // attempt: the CPU engine
          },
          "dtype"_a, nb::kw_only(), "pivoting"_a = "auto", "refine"_a = "auto")
      .def("is_suspect", &AccuracyPolicy::is_suspect, "pivots"_a)
      .def("after_factorization", &AccuracyPolicy::after_factorization, "pivots"_a, "measured"_a)
      .def(
          "must_measure", [](const AccuracyPolicy& policy) { return policy.must_measure(Trust::none, {}); },
          "Whether engines measure that have no bound of errors.")
      .def("is_enough", &AccuracyPolicy::is_enough, "error"_a)
      .def(
          "is_accurate",
          [](const AccuracyPolicy& policy, double normwise, double rowwise) {
            return policy.is_accurate({normwise, rowwise});
          },
          "normwise"_a, "rowwise"_a = 0.0,
          "Whether a solution with this normwise error is handed out; rowwise: of factors that are doubtful.")
      .def("ones_tell", &AccuracyPolicy::ones_tell, "multiplier"_a, "growth"_a,
           "Whether `is_inverse` can be asked of entries by such pivots.")
      .def("is_inverse", &AccuracyPolicy::is_inverse, "error"_a,
           "Whether entries of an inverse with this error are handed out.")
      .def("refine", &refine, "pivots"_a, "measure"_a, "step"_a, "go_back"_a,
           "By measure(by_rows) -> (normwise, rowwise), step(sized) -> its size, and go_back().")
      .def("may_choose_pivots", &AccuracyPolicy::may_choose_pivots, "n_tried"_a, "b_is_finite"_a)
      .def("must_warn", &AccuracyPolicy::must_warn, "error"_a, "x_is_finite"_a, "b_is_finite"_a);
  m.attr("INACCURATE_SOLVE") = inaccurate_solve;
  m.attr("MOST_STEPS") = most_steps;
  m.attr("REFINE_ABOVE") = refine_above;
  m.attr("INERTIA_SAMPLES") = inertia_samples;
  m.attr("CERTAIN_DISTANCE") = certain_distance;
  m.def(
      "small_pivots_of_fronts",
      [](const std::string& dtype, idx n) { return small_pivots_of_fronts(eps_of(dtype), n); }, "dtype"_a, "n"_a,
      "Pivots below these are perturbed, and may mean a singular matrix.");
  m.def(
      "small_pivot_of_columns", [](const std::string& dtype) { return small_pivot_of_columns(eps_of(dtype)); },
      "dtype"_a, "Pivots below are replaced.");
  m.def("multiplier_bound", &multiplier_bound, "pivot_threshold"_a, "seen"_a = 1.0,
        "Multipliers beyond mean that pivots do not suit new values.");
  m.def("inverse_norm", &inverse_norm, "dtype"_a, "n"_a, "solve"_a,
        "An estimate of ||A^-1|| in the 1-norm by solve(b, trans), with trans 0 for A and 2 for its conjugate "
        "transpose.");
  for_scalars([&]<class T>(const char*) { bind_sizes<T>(m); });
}

}  // namespace gs
