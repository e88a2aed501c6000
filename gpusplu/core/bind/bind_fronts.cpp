#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "numeric/front_factor.hpp"

namespace gs {
namespace {

// The engine as the tests see it; users get it through Factor.
template <class T> struct BoundFrontFactor : FrontFactor<T> {
  off nnz_of_A;  // the class itself does not have to know
  BoundFrontFactor(std::shared_ptr<const Symbolic> symbolic, PatternView A)
      : FrontFactor<T>(std::move(symbolic), A), nnz_of_A(A.nnz()) {}
};

template <class T> BoundFrontFactor<T>* make_factor(const Symbolic& structure, In<idx> row_perm, In<idx> col_perm,
                                                    In<double> row_scale, In<double> col_scale, In<off> ptr,
                                                    In<idx> ind) {
  const PatternView A = pattern_view(ptr, ind);
  require(structure.n == A.n, "the structure is of a matrix of another order");
  require_permutation(row_perm, A.n, "row_perm");
  require_permutation(col_perm, A.n, "col_perm");
  for (const auto& [scale, name] : {std::pair(&row_scale, "row_scale"), std::pair(&col_scale, "col_scale")})
    if (scale->shape(0)) require_length(*scale, A.n, name);
  auto symbolic = std::make_shared<Symbolic>(structure);
  symbolic->row_perm = to_vector(row_perm), symbolic->col_perm = to_vector(col_perm);
  symbolic->row_scale = to_vector(row_scale), symbolic->col_scale = to_vector(col_scale);
  nb::gil_scoped_release release;
  return new BoundFrontFactor<T>(std::move(symbolic), A);
}

nb::dict to_dict(const FactorInfo& info) {
  static constexpr const char* status[] = {"ok", "singular", "bad_growth", "not_finite", "not_positive_definite"};
  nb::dict d;
  d["status"] = status[info.status], d["column"] = info.column;
  d["min_pivot"] = info.min_pivot, d["max_pivot"] = info.max_pivot;
  d["pivot_growth"] = info.pivot_growth, d["max_multiplier"] = info.max_multiplier;
  d["n_perturbed"] = info.n_perturbed, d["n_off_diagonal"] = info.n_off_diagonal;
  return d;
}

template <class T> nb::dict factor(BoundFrontFactor<T>& self, In<T> values, std::optional<In<off>> source,
                                   double perturb_below, double tiny_below) {
  require_source(values, source, self.nnz_of_A);
  FactorInfo info;
  {
    nb::gil_scoped_release release;
    info = self.factor(values.data(), source ? source->data() : nullptr, PivotRule{perturb_below, tiny_below});
  }
  return to_dict(info);
}

// b is Fortran-ordered n x nrhs, flat.
template <class T> NumPy<T> solve(const BoundFrontFactor<T>& self, In<T> b, const std::string& trans) {
  const idx n = self.symbolic().n, nrhs = n ? idx(b.shape(0) / n) : 0;
  require_columns(b, n, "b");
  const Trans op = trans_of(trans);
  std::vector<T> x(b.shape(0));
  {
    nb::gil_scoped_release release;
    self.solve(op, nrhs, b.data(), n, x.data(), n);
  }
  return to_numpy(std::move(x));
}

template <class T> void bind_front_factor(nb::module_& m, const char* name) {
  using F = BoundFrontFactor<T>;
  nb::class_<F>(m, name, "Multifrontal LU or Cholesky (internal).")
      .def_static("make", &make_factor<T>, "symbolic"_a, "row_perm"_a, "col_perm"_a, "row_scale"_a, "col_scale"_a,
                  "ptr"_a, "ind"_a, nb::rv_policy::take_ownership)
      .def("factor", &factor<T>, "values"_a, "source"_a = nb::none(), "perturb_below"_a = 0.0, "tiny_below"_a = 0.0)
      .def("solve", &solve<T>, "b"_a, "trans"_a = "N")
      .def("lower", [](const F& f) { return matrix_tuple(without_gil([&] { return f.lower(); })); })
      .def("upper", [](const F& f) { return matrix_tuple(without_gil([&] { return f.upper(); })); })
      .def("row_perm", [](const F& f) { return to_numpy(f.row_perm()); })
      .def("diagonal", [](const F& f) { return to_numpy(f.diagonal()); })
      .def("nnz", [](const F& f) { return f.nnz_lower(); })
      .def("bytes", [](const F& f) { return f.bytes(); });
}

}  // namespace

void bind_fronts(nb::module_& m) {
  bind_front_factor<float>(m, "FrontFactor_f");
  bind_front_factor<double>(m, "FrontFactor_d");
  bind_front_factor<std::complex<float>>(m, "FrontFactor_F");
  bind_front_factor<std::complex<double>>(m, "FrontFactor_D");
}

}  // namespace gs
