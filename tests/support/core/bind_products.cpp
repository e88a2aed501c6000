// Products and residuals by themselves.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "matrix/products.hpp"
#include "testing.hpp"

namespace gs {
namespace {

template <class T> NumPy<T> multiply_array(In<off> ptr, In<idx> ind, In<T> values, std::string trans, In<T> x) {
  const PatternView A = pattern_view(ptr, ind);
  const idx nrhs = columns_of(x, A.n, "x");
  std::vector<T> y(x.shape(0));
  multiply(A, values.data(), trans_of(trans), x.data(), y.data(), nrhs);
  return to_numpy(std::move(y));
}

// (r, [backward error of every right-hand side])
template <class T> std::pair<NumPy<T>, std::vector<double>> residual_array(In<off> ptr, In<idx> ind, In<T> values,
                                                                           std::string trans, In<T> x, In<T> b) {
  const PatternView A = pattern_view(ptr, ind);
  std::vector<ResidualNorms> norms(columns_of(x, A.n, "x"));
  const Trans op = trans_of(trans);
  std::vector<T> r(x.shape(0));
  std::vector<double> errors;
  {
    nb::gil_scoped_release release;
    residual(A, values.data(), op, x.data(), b.data(), r.data(), (idx)norms.size(), norms.data());
    const double norm = norm_inf(A, values.data(), op);
    for (const ResidualNorms& n : norms) errors.push_back(backward_error(n, norm));
  }
  return {to_numpy(std::move(r)), errors};
}

template <class T> void bind_products_of(nb::module_& m) {
  m.def("multiply", &multiply_array<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "trans"_a, "x"_a.noconvert());
  m.def("residual", &residual_array<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "trans"_a, "x"_a.noconvert(),
        "b"_a.noconvert());
  m.def(
      "norm_inf",
      [](In<off> ptr, In<idx> ind, In<T> values, std::string trans) {
        return norm_inf(pattern_view(ptr, ind), values.data(), trans_of(trans));
      },
      "ptr"_a, "ind"_a, "values"_a.noconvert(), "trans"_a);
}

}  // namespace

void bind_products(nb::module_& m) {
  for_scalars([&]<class T>(const char*) { bind_products_of<T>(m); });
}

}  // namespace gs
