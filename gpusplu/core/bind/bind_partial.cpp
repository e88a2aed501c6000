#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>

#include "analysis/symbolic.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "matrix/canonical.hpp"
#include "numeric/partial_factor.hpp"

namespace gs {
namespace {

template <class T> using Complement = std::optional<NumPy<T>>;
template <class T> using InColumns = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T> using OutColumns = nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

template <class T> using PartialBinding = Bound<PartialFactor<T>>;

template <class T> std::shared_ptr<Symbolic> with_interface_binding(const Symbolic& interior,
                                                                    const Canonical& canonical, In<T> values,
                                                                    In<idx> interface) {
  const PatternView A = canonical.pattern.view();
  const idx count = (idx)interface.shape(0);
  require_entries(values, A.nnz(), "values");
  require(count > 0 && interior.n == A.n - count && interior.method == Method::front &&
              (off)interior.row_perm.size() == interior.n && interior.n_interface == 0,
          "the analysis is not one by fronts of the unknowns beside the interface");
  std::vector<char> seen(A.n, 0);
  for (idx t = 0; t < count; t++) {
    const idx i = interface.data()[t];
    require(i >= 0 && i < A.n && !seen[i], "unknowns of the interface repeat or are out of range");
    seen[i] = 1;
  }
  return without_gil(
      [&] { return std::make_shared<Symbolic>(with_interface(interior, A, values.data(), interface.data(), count)); });
}

template <class T> PartialBinding<T>* make_partial(std::shared_ptr<const Symbolic> symbolic, nb::object canonical,
                                                   In<T>, const std::string& pivoting, const std::string& refine,
                                                   bool hermitian) {
  const PatternView A = nb::cast<const Canonical&>(canonical).pattern.view();
  require(symbolic->n == A.n && symbolic->nnz == A.nnz() && symbolic->n_interface > 0,
          "the analysis has no interface, or is of another matrix");
  FactorOptions options;
  options.pivoting = pivoting_of(pivoting), options.refine = refine_of(refine), options.hermitian = hermitian;
  auto factor = without_gil([&] { return std::make_unique<PartialFactor<T>>(std::move(symbolic), A, options); });
  return new PartialBinding<T>{std::move(canonical), std::move(factor)};
}

template <class T> Complement<T> factor_partial(PartialBinding<T>& self, In<T> values) {
  require_entries(values, self.nnz(), "values");
  auto complement = without_gil([&] { return self.factor->factor(values.data()); });
  if (!complement) return std::nullopt;
  return to_numpy(std::move(*complement));
}

template <class T> void require_rows(const T& array, idx n, size_t columns) {
  require((off)array.shape(0) == n && array.shape(1) == columns, "arrays must have n rows, and as many columns");
}

template <class T> void condense_binding(const PartialBinding<T>& self, InColumns<T> b, OutColumns<T> halfway) {
  const idx n = self.factor->n(), nrhs = (idx)b.shape(1);
  require_rows(b, n, nrhs), require_rows(halfway, n, nrhs);
  without_gil([&] { self.factor->condense(nrhs, b.data(), halfway.data()); });
}

template <class T>
void expand_binding(const PartialBinding<T>& self, InColumns<T> b, InColumns<T> halfway, OutColumns<T> x) {
  const idx n = self.factor->n(), nrhs = (idx)b.shape(1);
  require_rows(b, n, nrhs), require_rows(halfway, n, nrhs), require_rows(x, n, nrhs);
  const bool good = without_gil([&] { return self.factor->expand(nrhs, b.data(), halfway.data(), x.data()); });
  if (!good) warn(inaccurate_solve);
}

template <class T> void bind_partial_of(nb::module_& m, const char* name) {
  using Self = PartialBinding<T>;
  nb::class_<Self>(m, name, "The factor of all unknowns but an interface; see core/numeric/partial_factor.hpp.")
      .def("factor", &factor_partial<T>, "values"_a.noconvert(),
           "The Schur complement by columns, of canonical values; None where fronts have no pivots that are fit.")
      .def("condense", &condense_binding<T>, "b"_a.noconvert(), "halfway"_a.noconvert(), "Writes `halfway`.")
      .def("expand", &expand_binding<T>, "b"_a.noconvert(), "halfway"_a.noconvert(), "x"_a.noconvert(), "Writes `x`.");
  m.def("with_interface", &with_interface_binding<T>, "interior"_a, "canonical"_a, "values"_a.noconvert(),
        "interface"_a.noconvert(), "The analysis of a whole matrix, by one for fronts of its interior.");
  m.def("partial_factor", &make_partial<T>, "symbolic"_a, "canonical"_a, "like"_a.noconvert(), nb::kw_only(),
        "pivoting"_a = "auto", "refine"_a = "auto", "hermitian"_a = true,
        "Room for the factor of a matrix but its interface, of the dtype of `like`.");
}

}  // namespace

void bind_partial(nb::module_& m) {
  for_scalars([&]<class T>(const char* dtype) { bind_partial_of<T>(m, ("Partial_" + std::string(dtype)).c_str()); });
}

}  // namespace gs
