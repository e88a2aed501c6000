#include <nanobind/stl/tuple.h>

#include <stdexcept>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "matrix/canonical.hpp"
#include "matrix/products.hpp"
#include "matrix/symmetry.hpp"
#include "matrix/values.hpp"
#include "shared/values.hpp"

namespace gs {
namespace {

template <class T> NumPy<T> gather(const Canonical& canonical, In<T> values) {
  require_entries(values, canonical.nvalues, "values");
  std::vector<T> out(canonical.pattern.view().nnz());
  without_gil([&] { gather_values(canonical, values.data(), out.data()); });
  return to_numpy(std::move(out));
}

const char* triangle_name(Triangle triangle) {
  return triangle == Triangle::full ? "full" : triangle == Triangle::lower ? "lower" : "upper";
}

State canonical_state(const Canonical& c) {
  return nb::make_tuple(c.pattern.n, c.nvalues, c.identity, to_numpy(std::vector<off>(c.pattern.ptr)),
                        to_numpy(RawVector<idx>(c.pattern.ind)), to_numpy(std::vector<off>(c.source)),
                        to_numpy(std::vector<off>(c.source_ptr)));
}
void set_canonical_state(Canonical& c, std::tuple<idx, off, bool, In<off>, In<idx>, In<off>, In<off>> state) {
  const auto& [n, nvalues, identity, ptr, ind, source, source_ptr] = state;
  Canonical restored{{n, to_vector(ptr), {ind.data(), ind.data() + ind.shape(0)}},
                     to_vector(source),
                     to_vector(source_ptr),
                     nvalues,
                     identity};
  validate(restored);
  new (&c) Canonical(std::move(restored));
}

template <class T> Dict symmetry_dict(In<off> ptr, In<idx> ind, In<T> values) {
  return dict_of<&SymmetryTraits::pattern_symmetry, &SymmetryTraits::symmetric_error, &SymmetryTraits::hermitian_error,
                 &SymmetryTraits::positive_diagonal, &SymmetryTraits::diagonally_dominant>(
      symmetry_traits(matrix_view(ptr, ind, values), values.data()));
}

template <class T> double rowwise_error_array(In<off> ptr, In<idx> ind, In<T> values, std::string trans, In<T> x,
                                              In<T> b, In<double> scale) {
  const PatternView A = matrix_view(ptr, ind, values);
  const idx nrhs = columns_of(x, A.n, "x");
  if (x.shape(0) != b.shape(0)) throw std::invalid_argument("x and b must have the same length");
  if (scale.shape(0) && (idx)scale.shape(0) != A.n) throw std::invalid_argument("scale must have n entries, or none");
  const Trans op = trans_of(trans);
  std::vector<T> r(x.shape(0));
  std::vector<ResidualNorms> norms(nrhs);
  return without_gil([&] {
    residual(A, values.data(), op, x.data(), b.data(), r.data(), nrhs, norms.data());
    return rowwise_error(A, values.data(), op, x.data(), b.data(), r.data(), scale.shape(0) ? scale.data() : nullptr,
                         nrhs);
  });
}

template <class T> Tuple<NumPy<T>, NumPy<double>> residual_array(In<off> ptr, In<idx> ind, In<T> values,
                                                                 std::string trans, In<T> x, In<T> b) {
  const PatternView A = matrix_view(ptr, ind, values);
  const idx nrhs = columns_of(x, A.n, "x");
  require_length(b, (off)x.shape(0), "b");
  const Trans op = trans_of(trans);
  std::vector<T> r(x.shape(0));
  std::vector<double> sizes(x.shape(0));
  std::vector<ResidualNorms> norms(nrhs);
  without_gil([&] {
    residual(A, values.data(), op, x.data(), b.data(), r.data(), nrhs, norms.data());
    for (off k = 0; k < nrhs; k++)
      row_sizes(A, values.data(), op, x.data() + k * A.n, b.data() + k * A.n, sizes.data() + k * A.n);
  });
  return nb::make_tuple(to_numpy(std::move(r)), to_numpy(std::move(sizes)));
}

template <class T>
void solve_triangle_array(bool lower, In<off> ptr, In<idx> ind, In<T> values, std::string trans, InOut<T> x) {
  const PatternView triangle = matrix_view(ptr, ind, values);
  const idx nrhs = columns_of(x, triangle.n, "x");
  for (off p = 0; p < triangle.nnz(); p++)
    require(triangle.ind[p] >= 0 && triangle.ind[p] < triangle.n, "a row is outside of the triangle");
  const Trans op = trans_of(trans);
  without_gil([&] {
    solve_triangle(lower ? TriangleSide::lower : TriangleSide::upper, triangle, values.data(), op, nrhs, x.data());
  });
}

// Python's object: it keeps the canonical pattern alive along with its pairs.
struct PairsBinding {
  nb::object canonical;
  SymmetricPairs pairs;
};

PairsBinding make_pairs(nb::object canonical, bool hermitian, bool complex) {
  const Canonical& given = nb::cast<const Canonical&>(canonical);
  return {std::move(canonical), without_gil([&] { return SymmetricPairs(given, hermitian, complex); })};
}

template <class T> bool pairs_hold(const PairsBinding& self, In<T> values) {
  const PatternView A = nb::cast<const Canonical&>(self.canonical).pattern.view();
  require_entries(values, A.nnz(), "values");
  return without_gil([&] { return are_symmetric(self.pairs, A, values.data(), largest_part(values.data(), A.nnz())); });
}

template <class T> bool symmetric_array(In<off> ptr, In<idx> ind, In<T> values, bool hermitian) {
  const PatternView A = matrix_view(ptr, ind, values);
  return without_gil([&] { return are_symmetric(A, values.data(), hermitian); });
}

template <class I> void bind_indices(nb::module_& m) {
  m.def(
      "canonical",
      [](const std::string& format, idx n, In<I> first, In<I> second) {
        const Format known = format_of(format);
        require_indices(known, n, first, second);
        const off count = (off)second.shape(0);
        return without_gil([&] { return canonical_of(known, n, first.data(), second.data(), count); });
      },
      "format"_a, "n"_a, "first"_a.noconvert(), "second"_a.noconvert(),
      "Of pointers and indices ('csc', 'csr'), or of rows and columns ('coo').");
}

template <class T> void bind_values(nb::module_& m, nb::class_<Canonical>& canonical, nb::class_<PairsBinding>& pairs) {
  pairs.def("hold", &pairs_hold<T>, "values"_a.noconvert(), "Whether canonical values, finite, are so up to rounding.");
  m.def("are_symmetric", &symmetric_array<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "hermitian"_a,
        "Whether both triangles are of a Hermitian or a symmetric matrix up to rounding.");
  canonical.def("gather", &gather<T>, "values"_a.noconvert(), "The canonical values from the caller's.");
  m.def(
      "all_finite",
      [](In<T> values) { return without_gil([&] { return all_finite(values.data(), (off)values.shape(0)); }); },
      "values"_a.noconvert());
  m.def("symmetry_traits", &symmetry_dict<T>, "ptr"_a, "ind"_a, "values"_a.noconvert());
  m.def("solve_triangle", &solve_triangle_array<T>, "lower"_a, "ptr"_a, "ind"_a, "values"_a.noconvert(), "trans"_a,
        "x"_a.noconvert(), "op(T) x = x in place, columns one after the other; see core/matrix/products.hpp.");
  m.def("rowwise_error", &rowwise_error_array<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "trans"_a,
        "x"_a.noconvert(), "b"_a.noconvert(), "scale"_a, "The largest |b - op(A) x|_i / (|op(A)| |x| + |b|)_i.");
  m.def("residual", &residual_array<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "trans"_a, "x"_a.noconvert(),
        "b"_a.noconvert(), "b - op(A) x, and |op(A)| |x| + |b|; columns one after the other.");
}

}  // namespace

void bind_matrix(nb::module_& m) {
  nb::class_<Canonical> canonical(m, "Canonical", "Canonical columns and the map of the caller's values to them.");
  def_members<&Canonical::source, &Canonical::source_ptr, &Canonical::nvalues, &Canonical::identity>(canonical)
      .def_prop_ro("n", [](const Canonical& c) { return c.pattern.n; })
      .def_prop_ro("nnz", [](const Canonical& c) { return c.pattern.view().nnz(); })
      .def_prop_ro("ptr", &view_of<&Canonical::pattern, &Pattern::ptr>)
      .def_prop_ro("ind", &view_of<&Canonical::pattern, &Pattern::ind>)
      .def_prop_ro("triangle", [](const Canonical& c) { return triangle_name(stored_triangle(c.pattern.view())); })
      .def(
          "mirrored",
          [](const Canonical& c, bool hermitian) {
            return without_gil([&] { return mirror_triangle(c, stored_triangle(c.pattern.view()), hermitian); });
          },
          "hermitian"_a = true, "The Hermitian matrix, or the symmetric one, of which this is one triangle.")
      .def("__getstate__", &canonical_state)
      .def("__setstate__", &set_canonical_state);
  m.def(
      "backward_error",
      [](double residual, double x, double b, double norm_of_A) {
        return backward_error({residual, x, b}, norm_of_A);
      },
      "residual"_a, "x"_a, "b"_a, "norm_of_A"_a, "Normwise, from largest moduli and the norm of op(A).");
  bind_indices<std::int32_t>(m);
  bind_indices<std::int64_t>(m);
  nb::class_<PairsBinding> pairs(m, "SymmetricPairs",
                                 "Entries of a pattern that have to be conjugates, or equal; see "
                                 "core/matrix/symmetry.hpp.");
  pairs
      .def(
          "__init__",
          [](PairsBinding* self, nb::object canonical, bool hermitian, bool complex) {
            new (self) PairsBinding(make_pairs(std::move(canonical), hermitian, complex));
          },
          "canonical"_a, "hermitian"_a, "complex"_a)
      .def_prop_ro("first", &view_of<&PairsBinding::pairs, &SymmetricPairs::first>)
      .def_prop_ro("second", &view_of<&PairsBinding::pairs, &SymmetricPairs::second>);
  m.attr("NO_ENTRY") = SymmetricPairs::none;
  m.attr("SYMMETRY_UNITS") = gpu::SYMMETRY_UNITS;
  for_scalars([&]<class T>(const char*) { bind_values<T>(m, canonical, pairs); });
}

}  // namespace gs
