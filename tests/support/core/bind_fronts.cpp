#include <nanobind/stl/complex.h>
#include <nanobind/stl/tuple.h>

#include <memory>

#include "numeric/front_factor.hpp"
#include "testing.hpp"

namespace gs {
namespace {

template <class T> FrontFactor<T>* make_factor(const Symbolic& structure, In<idx> row_perm, In<idx> col_perm,
                                               In<double> row_scale, In<double> col_scale, In<off> ptr, In<idx> ind) {
  auto symbolic = std::make_shared<Symbolic>(structure);
  set_permutations(*symbolic, row_perm, col_perm, row_scale, col_scale);
  nb::gil_scoped_release release;
  return new FrontFactor<T>(std::move(symbolic), pattern_view(ptr, ind));
}

template <class T> nb::dict factor_fronts(FrontFactor<T>& self, In<T> values, double perturb_below, double tiny_below) {
  const PivotRule rule{perturb_below, tiny_below};
  return to_dict(without_gil([&] { return self.factor(values.data(), rule); }));
}

// b is Fortran-ordered n x nrhs, flat.
template <class T> NumPy<T> solve_fronts(const FrontFactor<T>& self, In<T> b, const std::string& trans) {
  const idx n = self.symbolic().n, nrhs = columns_of(b, n, "b");
  const Trans op = trans_of(trans);
  std::vector<T> x(b.shape(0));
  without_gil([&] { self.solve(op, nrhs, b.data(), x.data()); });
  return to_numpy(std::move(x));
}

template <class T> void bind_front_factor(nb::module_& m, const char* name) {
  using F = FrontFactor<T>;
  nb::class_<F>(m, name, "Multifrontal LU or Cholesky (internal).")
      .def_static("make", &make_factor<T>, "symbolic"_a, "row_perm"_a, "col_perm"_a, "row_scale"_a, "col_scale"_a,
                  "ptr"_a, "ind"_a, nb::rv_policy::take_ownership)
      .def("factor", &factor_fronts<T>, "values"_a, "perturb_below"_a = 0.0, "tiny_below"_a = 0.0)
      .def("solve", &solve_fronts<T>, "b"_a, "trans"_a = "N")
      .def("lower", [](const F& f) { return matrix_tuple(without_gil([&] { return f.lower(); })); })
      .def("upper", [](const F& f) { return matrix_tuple(without_gil([&] { return f.upper(); })); })
      .def("row_perm", [](const F& f) { return to_numpy(f.row_perm()); })
      .def("diagonal", [](const F& f) { return to_numpy(f.diagonal()); });
}

}  // namespace

void bind_fronts(nb::module_& m) {
  for_scalars(
      [&]<class T>(const char* scalar) { bind_front_factor<T>(m, (std::string("FrontFactor_") + scalar).c_str()); });
}

}  // namespace gs
