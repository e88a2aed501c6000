// Factors of one set of values by themselves; users reach them through Factor.
#include <nanobind/stl/complex.h>

#include <memory>

#include "numeric/numeric.hpp"
#include "testing.hpp"

namespace gs {
namespace {

template <class N> struct Held {
  Dtype dtype;
  idx n;
  std::shared_ptr<N> numeric;

  auto numbers(nb::handle given) const { return numbers_in<nb::ndim<1>, nb::c_contig>(given, dtype); }
};
using Columns = Held<ColumnNumeric>;
using Fronts = Held<FrontNumeric>;

Columns make_columns(const std::string& dtype, In<off> ptr, In<idx> ind, In<idx> row_perm, In<idx> col_perm,
                     In<idx> block_ptr, In<double> row_scale, In<double> col_scale) {
  Symbolic symbolic;
  const PatternView A = pattern_view(ptr, ind);
  symbolic.n = A.n;
  set_permutations(symbolic, row_perm, col_perm, row_scale, col_scale);
  symbolic.block_ptr = to_vector(block_ptr);
  return {dtype_named(dtype), A.n, make_column_lu(dtype_named(dtype), symbolic, A)};
}

Fronts make_fronts(const std::string& dtype, const Symbolic& structure, In<idx> row_perm, In<idx> col_perm,
                   In<double> row_scale, In<double> col_scale, In<off> ptr, In<idx> ind) {
  auto symbolic = std::make_shared<Symbolic>(structure);
  set_permutations(*symbolic, row_perm, col_perm, row_scale, col_scale);
  const PatternView A = pattern_view(ptr, ind);
  return {dtype_named(dtype), A.n, make_front_factor(dtype_named(dtype), std::move(symbolic), A, true)};
}

// b is Fortran-ordered n x nrhs, flat.
template <class N> nb::object solve_with(const Held<N>& self, nb::handle given, const std::string& trans) {
  const auto b = self.numbers(given);
  Values x = zeros(self.dtype, b.size());
  const Trans op = trans_of(trans);
  without_gil([&] { self.numeric->solve(op, self.n ? (idx)(b.size() / self.n) : 0, b.data(), data_of(x)); });
  return to_numpy(std::move(x));
}

template <class N> nb::class_<Held<N>> bind_held(nb::module_& m, const char* name) {
  using H = Held<N>;
  return nb::class_<H>(m, name)
      .def("solve", &solve_with<N>, "b"_a, "trans"_a = "N")
      .def("lower", [](const H& f) { return matrix_tuple(without_gil([&] { return f.numeric->lower(); })); })
      .def("upper", [](const H& f) { return matrix_tuple(without_gil([&] { return f.numeric->upper(); })); })
      .def("row_perm", [](const H& f) { return to_numpy(f.numeric->row_perm()); })
      .def("col_perm", [](const H& f) { return to_numpy(f.numeric->col_perm()); })
      .def("diagonal", [](const H& f) { return to_numpy(f.numeric->diagonal()); })
      .def_prop_ro("nnz_lower", [](const H& f) { return f.numeric->nnz_lower(); })
      .def_prop_ro("nnz_upper", [](const H& f) { return f.numeric->nnz_upper(); });
}

}  // namespace

void bind_numeric(nb::module_& m) {
  bind_held<ColumnNumeric>(m, "ColumnLU")
      .def(
          "factor",
          [](Columns& lu, nb::handle given, double pivot_threshold) {
            const auto values = lu.numbers(given);
            return to_dict(without_gil([&] { return lu.numeric->factor(values.data(), {pivot_threshold}); }));
          },
          "values"_a, "pivot_threshold"_a = 0.1)
      .def("refactor", [](Columns& lu, nb::handle given) {
        const auto values = lu.numbers(given);
        return to_dict(without_gil([&] { return lu.numeric->refactor(values.data()); }));
      });
  m.def("column_lu", &make_columns);
  bind_held<FrontNumeric>(m, "FrontFactor")
      .def(
          "factor",
          [](Fronts& fronts, nb::handle given, double perturb_below, double tiny_below) {
            const auto values = fronts.numbers(given);
            const PivotRule rule{perturb_below, tiny_below};
            return to_dict(without_gil([&] { return fronts.numeric->factor(values.data(), rule); }));
          },
          "values"_a, "perturb_below"_a = 0.0, "tiny_below"_a = 0.0);
  m.def("front_factor", &make_fronts);
}

}  // namespace gs
