// The column LU by itself, for tests and benchmarks; users reach it through factor.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "numeric/column_lu.hpp"
#include "testing.hpp"

namespace gs {
namespace {

template <class T> ColumnLU<T> make(In<off> ptr, In<idx> ind, In<idx> row_perm, In<idx> col_perm, In<idx> block_ptr,
                                    In<double> row_scale, In<double> col_scale) {
  Symbolic symbolic;
  const PatternView A = pattern_view(ptr, ind);
  symbolic.n = A.n;
  set_permutations(symbolic, row_perm, col_perm, row_scale, col_scale);
  symbolic.block_ptr = to_vector(block_ptr);
  return ColumnLU<T>(symbolic, A);
}

template <class T> nb::dict factor_columns(ColumnLU<T>& lu, In<T> values, double pivot_threshold) {
  return to_dict(without_gil([&] { return lu.factor(values.data(), {pivot_threshold}); }));
}

template <class T> nb::dict refactor(ColumnLU<T>& lu, In<T> values) {
  return to_dict(without_gil([&] { return lu.refactor(values.data()); }));
}

// b: (nrhs, n), one right-hand side a row.
template <class T>
void solve_columns(const ColumnLU<T>& lu, nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> b,
                   nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> x, const std::string& trans) {
  const Trans op = trans_of(trans);
  nb::gil_scoped_release release;
  lu.solve(op, (idx)b.shape(0), b.data(), x.data());
}

template <class T> void bind_column_lu_of(nb::module_& m, const char* name) {
  using LU = ColumnLU<T>;
  nb::class_<LU>(m, name)
      .def(
          "__init__",
          [](LU* self, In<off> ptr, In<idx> ind, In<idx> row_perm, In<idx> col_perm, In<idx> block_ptr,
             In<double> row_scale, In<double> col_scale) {
            new (self) LU(make<T>(ptr, ind, row_perm, col_perm, block_ptr, row_scale, col_scale));
          },
          "ptr"_a, "ind"_a, "row_perm"_a, "col_perm"_a, "block_ptr"_a, "row_scale"_a, "col_scale"_a)
      .def("factor", &factor_columns<T>, "values"_a, "pivot_threshold"_a = 0.1)
      .def("refactor", &refactor<T>, "values"_a)
      .def("solve", &solve_columns<T>, "b"_a, "x"_a, "trans"_a = "N")
      .def("row_perm", [](const LU& lu) { return to_numpy(lu.row_perm()); })
      .def("col_perm", [](const LU& lu) { return to_numpy(lu.col_perm()); })
      .def(
          "lower", [](const LU& lu) { return matrix_tuple(without_gil([&] { return lu.lower(); })); },
          "(ptr, ind, values) of L.")
      .def(
          "upper", [](const LU& lu) { return matrix_tuple(without_gil([&] { return lu.upper(); })); },
          "(ptr, ind, values) of U.")
      .def("diagonal", [](const LU& lu) { return to_numpy(lu.diagonal()); })
      .def_prop_ro("nnz_lower", [](const LU& lu) { return lu.nnz_lower(); })
      .def_prop_ro("nnz_upper", [](const LU& lu) { return lu.nnz_upper(); });
}

}  // namespace

void bind_column_lu(nb::module_& m) {
  for_scalars(
      [&]<class T>(const char* scalar) { bind_column_lu_of<T>(m, (std::string("ColumnLU_") + scalar).c_str()); });
}

}  // namespace gs
