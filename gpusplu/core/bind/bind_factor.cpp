#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <cstring>
#include <memory>
#include <optional>

#include "base/host_memory.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/options.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

using FactorBinding = Bound<Factor>;

FactorSummary summary_of(const FactorBinding& self) { return asked<&Factor::summary>(self); }

nb::ndarray<nb::numpy> solve_binding(FactorBinding& self, nb::handle right_hand_sides, int trans) {
  const Factor& factor = *self.factor;
  const auto b = numbers_in<nb::f_contig>(right_hand_sides, factor.dtype());
  const idx n = factor.n();
  require(b.ndim() == 1 || b.ndim() == 2, "b must have one dimension or two");
  require_length(b, n, "a right-hand side");
  require(trans >= 0 && trans <= 2, "trans must be 0, 1 or 2");
  const size_t nrhs = b.ndim() == 1 ? 1 : b.shape(1);
  auto* x = new std::byte[(size_t)n * nrhs * b.itemsize() + 1];
  nb::capsule owner(x, [](void* p) noexcept { delete[] static_cast<std::byte*>(p); });
  const bool finite =
      nrhs == 0 || without_gil([&] { return self.factor->solve((Trans)trans, (idx)nrhs, b.data(), x); });
  if (!finite) warn(inaccurate_solve);
  const size_t shape[] = {(size_t)n, nrhs};
  const int64_t strides[] = {1, n};
  return nb::ndarray<nb::numpy>(x, b.ndim(), shape, owner, strides, numpy_type(factor.dtype()));
}

// C in compressed columns; rows of a column ascend. False if C C^H has entries outside of A's pattern.
bool update_binding(FactorBinding& self, In<off> ptr, In<idx> ind, nb::handle of_C, bool subtract) {
  const auto values = numbers_in<nb::ndim<1>, nb::c_contig>(of_C, self.factor->dtype(), false);
  const off columns = (off)ptr.shape(0) - 1;
  require(columns >= 0 && ptr.data()[0] == 0 && columns <= std::numeric_limits<idx>::max(), "ptr is of no columns");
  Pattern C;
  C.n = (idx)columns;
  C.ptr.assign(ptr.data(), ptr.data() + columns + 1);
  require(std::is_sorted(C.ptr.begin(), C.ptr.end()), "ptr must not descend");
  require_length(ind, C.ptr.back(), "ind"), require_length(values, C.ptr.back(), "values");
  C.ind.assign(ind.data(), ind.data() + ind.shape(0));
  for (idx r = 0; r < C.n; r++)
    for (off p = C.ptr[r]; p < C.ptr[r + 1]; p++)
      require(C.ind[p] >= 0 && C.ind[p] < self.factor->n() && (p == C.ptr[r] || C.ind[p - 1] < C.ind[p]),
              "rows of C must ascend and be those of A");
  require(summary_of(self).symbolic->cholesky, "only Cholesky factors are updated");
  Values copied = zeros(self.factor->dtype(), values.size());
  if (values.size() > 0) std::memcpy(data_of(copied), values.data(), values.nbytes());
  const AnyMatrix matrix(std::move(C), std::move(copied));
  return without_gil([&] { return self.factor->update(matrix, subtract ? -1 : 1); });
}

Factor::InverseEntries inverse_of(FactorBinding& self, const Factor::InverseOf& of = {}) {
  auto entries = without_gil([&] { return self.factor->inverse(of); });
  if (!entries.accurate) warn(inaccurate_inverse);
  return entries;
}

Tuple<NumPy<off>, NumPy<idx>, nb::ndarray<nb::numpy, nb::ndim<1>>> inverse_on_factors_binding(FactorBinding& self) {
  auto entries = inverse_of(self, {.factors = true});
  if (entries.pattern.ptr.empty()) {
    const PatternView A = self.pattern().pattern.view();
    entries.pattern = {A.n, {A.ptr, A.ptr + A.n + 1}, {A.ind, A.ind + A.nnz()}};
  }
  return matrix_tuple(AnyMatrix(std::move(entries.pattern), std::move(entries.values)));
}

// Entries (rows[k], columns[k]) of the inverse, and the k of those that the factors cannot give.
Tuple<nb::ndarray<nb::numpy, nb::ndim<1>>, NumPy<off>> inverse_at_binding(FactorBinding& self, In<idx> rows,
                                                                          In<idx> columns) {
  const off count = (off)rows.shape(0);
  require_length(columns, count, "columns");
  const Canonical wanted =
      without_gil([&] { return canonical_from_coordinates(self.factor->n(), columns.data(), rows.data(), count); });
  const auto entries = inverse_of(self, {.more = wanted.pattern.view()});
  const PatternView P = entries.on(self.pattern().pattern.view());
  std::vector<off> places(count), missing;  // places: -1 for none
  for (off k = 0; k < count; k++) {
    const idx i = columns.data()[k], j = rows.data()[k];
    const idx *end = P.ind + P.ptr[j + 1], *at = std::lower_bound(P.ind + P.ptr[j], end, i);
    places[k] = !entries.empty() && at < end && *at == i ? at - P.ind : -1;
    if (places[k] < 0) missing.push_back(k);
  }
  Values values = std::visit(
      [&]<class T>(const std::vector<T>& inverse) -> Values {
        std::vector<T> values(count);
        for (off k = 0; k < count; k++)
          if (places[k] >= 0) values[k] = inverse[places[k]];
        return values;
      },
      entries.values);
  return nb::make_tuple(to_numpy(std::move(values)), to_numpy(std::move(missing)));
}

Tuple<nb::any, double> slogdet_binding(const FactorBinding& self) {
  const auto [sign, log_modulus] = asked<&Factor::slogdet>(self);
  const bool is_complex = self.factor->dtype() >= Dtype::complex64;
  return nb::make_tuple(is_complex ? nb::cast(sign) : nb::cast(sign.real()), log_modulus);
}

Tuple<bool, bool, idx, idx, double> inertia_binding(const FactorBinding& self) {
  const Inertia found = asked<&Factor::inertia>(self);
  return nb::make_tuple(found.held, found.certain, found.positive, found.negative, found.distance);
}

Dict stats_binding(const FactorBinding& self) {
  const FactorStats s = asked<&Factor::stats>(self);
  const FactorSummary summary = summary_of(self);
  Dict stats = dict_of<&FactorStats::n_refactor, &FactorStats::n_updated, &FactorStats::n_delayed,
                       &FactorStats::n_reanalyzed, &FactorStats::n_repivoted, &FactorStats::n_refinement,
                       &FactorStats::factor_seconds, &FactorStats::refactor_seconds, &FactorStats::solve_seconds>(s);
  stats.update(
      dict_of<&FactorInfo::n_perturbed, &FactorInfo::n_off_diagonal, &FactorInfo::min_pivot, &FactorInfo::max_pivot,
              &FactorInfo::max_multiplier, &FactorInfo::pivot_growth, &FactorInfo::flops>(summary.info));
  stats.update(dict_of<&FactorSummary::bytes, &FactorSummary::error_bound>(summary));
  return stats;
}

void bind_factor_class(nb::module_& m) {
  using Self = FactorBinding;
  nb::class_<Self>(m, "Factor", "A factor of one matrix of any number type; see core/numeric/factor.hpp.")
      .def(
          "refactor",
          [](Self& self, nb::handle given, std::optional<In<off>> source, bool checked) {
            const auto values = numbers_in<nb::ndim<1>, nb::c_contig>(given, self.factor->dtype());
            require_entries(values, source ? self.nvalues() : self.nnz(), "values");
            if (source) require_entries(*source, self.nnz(), "source");
            const off* const places = source ? source->data() : nullptr;
            return without_gil([&] { return self.factor->refactor(values.data(), places, checked); });
          },
          "values"_a, "source"_a = nb::none(), "checked"_a = false,
          "Position of a NaN or Inf, or -1. Values that are not symmetric raise NotSymmetric where one triangle is "
          "factored, unless the caller has `checked` them.")
      .def("solve", &solve_binding, "b"_a, "trans"_a = 0)
      .def("update", &update_binding, "ptr"_a, "ind"_a, "values"_a, "subtract"_a = false,
           "The Cholesky factor of A + C C^H, C in compressed columns; False if A's pattern has no room for that.")
      .def(
          "host_factor", [](const Self& self) { return &self; }, nb::rv_policy::reference)
      .def("lower", &asked<&Factor::lower>)
      .def("upper", &asked<&Factor::upper>)
      .def("inverse_on_pattern", [](Self& self) { return to_numpy(inverse_of(self).values); })
      .def("inverse_on_factors", &inverse_on_factors_binding)
      .def("inverse_at", &inverse_at_binding, "rows"_a, "columns"_a,
           "Entries (rows[k], columns[k]) of the inverse, and for which k the factors do not give them.")
      .def("slogdet", &slogdet_binding)
      .def(
          "pivots",
          [](const Self& self) {
            auto [d, e] = asked<&Factor::pivots>(self);
            return nb::make_tuple(to_numpy(std::move(d)), to_numpy(std::move(e)));
          },
          "D of LDL^T: its diagonal, and what is below.")
      .def("inertia", &inertia_binding,
           "(whether there are factors by LDL^T, whether it is certain, positive, negative, distance)")
      .def("rcond", &asked<&Factor::reciprocal_condition>)
      .def("stats", &stats_binding)
      .def_prop_ro("row_perm", &asked<&Factor::row_perm>, nb::rv_policy::automatic)
      .def_prop_ro("col_perm", &asked<&Factor::col_perm>, nb::rv_policy::automatic)
      .def_prop_ro("pivot_rows", &asked<&Factor::pivot_rows>, nb::rv_policy::automatic)
      .def_prop_ro("pivot_columns", &asked<&Factor::pivot_columns>, nb::rv_policy::automatic)
      .def_prop_ro("has_accurate_triangles", &asked<&Factor::has_accurate_triangles>)
      .def_prop_ro("symbolic", [](const Self& self) { return summary_of(self).symbolic; })
      .def_prop_ro("backward_error", [](const Self& self) { return asked<&Factor::stats>(self).backward_error; })
      .def_prop_ro("method",
                   [](const Self& self) { return summary_of(self).method == Method::column ? "column" : "front"; })
      .def("values", &asked<&Factor::values>)
      .def_prop_ro("hermitian", [](const Self& self) { return summary_of(self).hermitian; })
      .def_prop_ro("n", [](const Self& self) { return self.factor->n(); })
      .def_prop_ro("nnz", [](const Self& self) { return summary_of(self).nnz; })
      .def_prop_ro("bytes", [](const Self& self) { return summary_of(self).bytes; });
}

}  // namespace

void bind_factor(nb::module_& m) {
  nb::exception<SingularError>(m, "SingularError", PyExc_RuntimeError);
  nb::exception<NotSymmetric>(m, "NotSymmetric", PyExc_ValueError);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const NotPositiveDefinite& e) {
      const nb::object type = nb::module_::import_("gpusplu.errors").attr("NotPositiveDefiniteError");
      PyErr_SetObject(type.ptr(), type(e.column, e.pivot).ptr());
    } catch (const HostMemoryShort& e) {
      const nb::object type = nb::module_::import_("gpusplu.errors").attr("HostMemoryError");
      PyErr_SetObject(type.ptr(), type(e.needed, e.free, false).ptr());
    }
  });
  bind_factor_class(m);
}

}  // namespace gs
