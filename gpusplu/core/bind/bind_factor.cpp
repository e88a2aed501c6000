#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>

#include "bind/accuracy_options.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/factor_binding.hpp"
#include "numeric/slogdet.hpp"

namespace gs {
namespace {

template <class T> using InFortran = nb::ndarray<const T, nb::f_contig, nb::device::cpu>;

// Queries the factor. Runs without the GIL: a thread that changes the factor holds its lock and takes the GIL now and
// then.
template <class T, class Query> auto queried(const FactorBinding<T>& self, Query&& query) {
  return without_gil([&] { return query(*self.factor); });
}
template <class T> FactorSummary summary_of(const FactorBinding<T>& self) {
  return queried(self, [](const Factor<T>& f) { return f.summary(); });
}

template <class T> FactorBinding<T>* factor_binding(std::shared_ptr<const Symbolic> symbolic, nb::object canonical,
                                                    In<T> values, double pivot_threshold, const std::string& pivoting,
                                                    const std::string& refine, bool hermitian, bool any_values,
                                                    const std::optional<In<idx>>& own_order) {
  const Canonical& given = nb::cast<const Canonical&>(canonical);
  const PatternView A = given.pattern.view();
  require_entries(values, A.nnz(), "values");
  require_analysis_of(A, *symbolic);
  require(pivot_threshold >= 0 && pivot_threshold <= 1, "pivot_threshold must be between 0 and 1");
  const bool compares = symbolic->one_triangle() && !any_values;
  FactorOptions options{pivot_threshold, pivoting_of(pivoting),      refine_of(refine), hermitian,
                        any_values,      compares ? &given : nullptr};
  if (own_order) {
    require_permutation(*own_order, A.n, "own_order");
    options.own_order = to_vector(*own_order);
  }
  auto factor =
      without_gil([&] { return std::make_unique<Factor<T>>(std::move(symbolic), A, values.data(), options); });
  const off nvalues = given.nvalues;
  return new FactorBinding<T>{std::move(canonical), std::move(factor), A.nnz(), nvalues};
}

template <class T> nb::ndarray<nb::numpy, T> solve_binding(FactorBinding<T>& self, InFortran<T> b, int trans) {
  const idx n = self.factor->n();
  require(b.ndim() == 1 || b.ndim() == 2, "b must have one dimension or two");
  require_length(b, n, "a right-hand side");
  require(trans >= 0 && trans <= 2, "trans must be 0, 1 or 2");
  const size_t nrhs = b.ndim() == 1 ? 1 : b.shape(1);
  const size_t size = (size_t)n * nrhs;
  auto* x = new T[size + 1];
  nb::capsule owner(x, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  const bool finite =
      nrhs == 0 || without_gil([&] { return self.factor->solve((Trans)trans, (idx)nrhs, b.data(), x); });
  if (!finite) warn(inaccurate_solve);
  const size_t shape[] = {(size_t)n, nrhs};
  const int64_t strides[] = {1, n};
  return nb::ndarray<nb::numpy, T>(x, b.ndim(), shape, owner, strides);
}

// C in compressed columns; rows of a column ascend. False if C C^H has entries outside of A's pattern.
template <class T> bool update_binding(FactorBinding<T>& self, In<off> ptr, In<idx> ind, In<T> values, bool subtract) {
  const off columns = (off)ptr.shape(0) - 1;
  require(columns >= 0 && ptr.data()[0] == 0 && columns <= std::numeric_limits<idx>::max(), "ptr is of no columns");
  Matrix<T> C;
  C.pattern.n = (idx)columns;
  C.pattern.ptr.assign(ptr.data(), ptr.data() + columns + 1);
  require(std::is_sorted(C.pattern.ptr.begin(), C.pattern.ptr.end()), "ptr must not descend");
  require_length(ind, C.pattern.ptr.back(), "ind"), require_length(values, C.pattern.ptr.back(), "values");
  C.pattern.ind.assign(ind.data(), ind.data() + ind.shape(0));
  C.values.assign(values.data(), values.data() + values.shape(0));
  for (idx r = 0; r < C.pattern.n; r++)
    for (off p = C.pattern.ptr[r]; p < C.pattern.ptr[r + 1]; p++)
      require(C.pattern.ind[p] >= 0 && C.pattern.ind[p] < self.factor->n() &&
                  (p == C.pattern.ptr[r] || C.pattern.ind[p - 1] < C.pattern.ind[p]),
              "rows of C must ascend and be those of A");
  require(summary_of(self).symbolic->cholesky, "only Cholesky factors are updated");
  return without_gil([&] { return self.factor->update(C, subtract ? -1 : 1); });
}

template <class T>
typename Factor<T>::InverseEntries inverse_of(FactorBinding<T>& self, const typename Factor<T>::InverseOf& of = {}) {
  auto entries = without_gil([&] { return self.factor->inverse(of); });
  if (!entries.accurate) warn(inaccurate_inverse);
  return entries;
}

template <class T> Tuple<NumPy<off>, NumPy<idx>, NumPy<T>> inverse_on_factors_binding(FactorBinding<T>& self) {
  auto entries = inverse_of(self, {.factors = true});
  if (entries.pattern.ptr.empty()) {
    const PatternView A = nb::cast<const Canonical&>(self.canonical).pattern.view();
    entries.pattern = {A.n, {A.ptr, A.ptr + A.n + 1}, {A.ind, A.ind + A.nnz()}};
  }
  return matrix_tuple(Matrix<T>{std::move(entries.pattern), std::move(entries.values)});
}

// Entries (rows[k], columns[k]) of the inverse, and the k of those that the factors cannot give.
template <class T>
Tuple<NumPy<T>, NumPy<off>> inverse_at_binding(FactorBinding<T>& self, In<idx> rows, In<idx> columns) {
  const off count = (off)rows.shape(0);
  require_length(columns, count, "columns");
  const Canonical wanted =
      without_gil([&] { return canonical_from_coordinates(self.factor->n(), columns.data(), rows.data(), count); });
  const auto entries = inverse_of(self, {.more = wanted.pattern.view()});
  const PatternView P = entries.on(nb::cast<const Canonical&>(self.canonical).pattern.view());
  std::vector<T> values(count);
  std::vector<off> missing;
  for (off k = 0; k < count; k++) {
    const idx i = columns.data()[k], j = rows.data()[k];
    const idx *end = P.ind + P.ptr[j + 1], *at = std::lower_bound(P.ind + P.ptr[j], end, i);
    if (!entries.values.empty() && at < end && *at == i) values[k] = entries.values[at - P.ind];
    else missing.push_back(k);
  }
  return nb::make_tuple(to_numpy(std::move(values)), to_numpy(std::move(missing)));
}

template <class T> Tuple<T, double> slogdet_binding(const FactorBinding<T>& self) {
  const auto [sign, log_modulus] = queried(self, [](const Factor<T>& f) { return slogdet(f); });
  return nb::make_tuple(sign, log_modulus);
}

template <class T> Tuple<bool, bool, idx, idx, double> inertia_binding(const FactorBinding<T>& self) {
  const Inertia found = without_gil([&] { return self.factor->inertia(); });
  return nb::make_tuple(found.held, found.certain, found.positive, found.negative, found.distance);
}

template <class T> Dict stats_binding(const FactorBinding<T>& self) {
  const FactorStats s = queried(self, [](const Factor<T>& f) { return f.stats(); });
  const FactorSummary summary = summary_of(self);
  const FactorInfo& i = summary.info;
  nb::dict d;
  d["n_refactor"] = s.n_refactor;
  d["n_updated"] = s.n_updated;
  d["n_delayed"] = s.n_delayed;
  d["n_reanalyzed"] = s.n_reanalyzed;
  d["n_repivoted"] = s.n_repivoted;
  d["n_refinement"] = s.n_refinement;
  d["factor_seconds"] = s.factor_seconds;
  d["refactor_seconds"] = s.refactor_seconds;
  d["solve_seconds"] = s.solve_seconds;
  d["n_perturbed"] = i.n_perturbed;
  d["n_off_diagonal"] = i.n_off_diagonal;
  d["min_pivot"] = i.min_pivot;
  d["max_pivot"] = i.max_pivot;
  d["max_multiplier"] = i.max_multiplier;
  d["pivot_growth"] = i.pivot_growth;
  d["flops"] = i.flops;
  d["bytes"] = summary.bytes;
  d["error_bound"] = summary.error_bound;
  return d;
}

template <class T> void bind_factor_of(nb::module_& m, const char* name) {
  using Self = FactorBinding<T>;
  const auto order_of = [](std::vector<idx> (Factor<T>::*order)() const) {
    return
        [order](const Self& self) { return to_numpy(queried(self, [&](const Factor<T>& f) { return (f.*order)(); })); };
  };
  nb::class_<Self>(m, name)
      .def(
          "refactor",
          [](Self& self, In<T> values, std::optional<In<off>> source, bool checked) {
            require_entries(values, source ? self.nvalues : self.nnz, "values");
            if (source) require_entries(*source, self.nnz, "source");
            const off* const places = source ? source->data() : nullptr;
            return without_gil([&] { return self.factor->refactor(values.data(), places, checked); });
          },
          "values"_a, "source"_a = nb::none(), "checked"_a = false,
          "Position of a NaN or Inf, or -1. Values that are not symmetric raise NotSymmetric where one triangle is "
          "factored, unless the caller has `checked` them.")
      .def("solve", &solve_binding<T>, "b"_a, "trans"_a = 0)
      .def("update", &update_binding<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "subtract"_a = false,
           "The Cholesky factor of A + C C^H, C in compressed columns; False if A's pattern has no room for that.")
      .def("lower", [](const Self& self) { return matrix_tuple(without_gil([&] { return self.factor->lower(); })); })
      .def("upper", [](const Self& self) { return matrix_tuple(without_gil([&] { return self.factor->upper(); })); })
      .def("inverse_on_pattern", [](Self& self) { return to_numpy(inverse_of(self).values); })
      .def("inverse_on_factors", &inverse_on_factors_binding<T>)
      .def("inverse_at", &inverse_at_binding<T>, "rows"_a, "columns"_a,
           "Entries (rows[k], columns[k]) of the inverse, and for which k the factors do not give them.")
      .def("slogdet", &slogdet_binding<T>)
      .def(
          "pivots",
          [](const Self& self) {
            auto [d, e] = queried(self, [](const Factor<T>& f) { return f.pivots(); });
            return Tuple<NumPy<T>, NumPy<T>>(nb::make_tuple(to_numpy(std::move(d)), to_numpy(std::move(e))));
          },
          "D of LDL^T: its diagonal, and what is below.")
      .def("inertia", &inertia_binding<T>,
           "(whether there are factors by LDL^T, whether it is certain, positive, negative, distance)")
      .def("rcond", [](const Self& self) { return without_gil([&] { return self.factor->reciprocal_condition(); }); })
      .def("stats", &stats_binding<T>)
      .def_prop_ro("row_perm", order_of(&Factor<T>::row_perm), nb::rv_policy::automatic)
      .def_prop_ro("col_perm", order_of(&Factor<T>::col_perm), nb::rv_policy::automatic)
      .def_prop_ro("pivot_rows", order_of(&Factor<T>::pivot_rows), nb::rv_policy::automatic)
      .def_prop_ro("pivot_columns", order_of(&Factor<T>::pivot_columns), nb::rv_policy::automatic)
      .def_prop_ro(
          "has_accurate_triangles",
          [](const Self& self) { return queried(self, [](const Factor<T>& f) { return f.has_accurate_triangles(); }); })
      .def_prop_ro("symbolic", [](const Self& self) { return summary_of(self).symbolic; })
      .def_prop_ro(
          "backward_error",
          [](const Self& self) { return queried(self, [](const Factor<T>& f) { return f.stats(); }).backward_error; })
      .def_prop_ro("method",
                   [](const Self& self) { return summary_of(self).method == Method::column ? "column" : "front"; })
      .def("values",
           [](const Self& self) { return to_numpy(queried(self, [](const Factor<T>& f) { return f.values(); })); })
      .def_prop_ro("hermitian", [](const Self& self) { return summary_of(self).hermitian; })
      .def_prop_ro("n", [](const Self& self) { return self.factor->n(); })
      .def_prop_ro("nnz", [](const Self& self) { return summary_of(self).nnz; })
      .def_prop_ro("bytes", [](const Self& self) { return summary_of(self).bytes; });
  m.def("factor", &factor_binding<T>, "symbolic"_a, "canonical"_a, "values"_a.noconvert(), nb::kw_only(),
        "pivot_threshold"_a = 0.1, "pivoting"_a = "auto", "refine"_a = "auto", "hermitian"_a = true,
        "any_values"_a = false, "own_order"_a = nb::none(),
        "Factor a matrix with this canonical pattern by what `analyze` found; see core/numeric/factor.hpp.");
}

}  // namespace

void bind_factor(nb::module_& m) {
  nb::exception<SingularError>(m, "SingularError", PyExc_RuntimeError);
  nb::exception<NotSymmetric>(m, "NotSymmetric", PyExc_ValueError);
  nb::dict attributes;  // of a raised error: the column and the pivot
  attributes["column"] = -1, attributes["pivot"] = 0.0;
  const nb::str name = nb::str("{}.NotPositiveDefinite").format(m.attr("__name__"));
  static PyObject* not_positive_definite = PyErr_NewException(name.c_str(), PyExc_ArithmeticError, attributes.ptr());
  m.attr("NotPositiveDefinite") = nb::handle(not_positive_definite);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const NotPositiveDefinite& e) {
      nb::object error = nb::handle(not_positive_definite)(e.what());
      error.attr("column") = e.column;
      error.attr("pivot") = e.pivot;
      PyErr_SetObject(not_positive_definite, error.ptr());
    }
  });
  bind_factor_of<double>(m, "FactorF64");
  bind_factor_of<float>(m, "FactorF32");
  bind_factor_of<std::complex<float>>(m, "FactorC64");
  bind_factor_of<std::complex<double>>(m, "FactorC128");
}

}  // namespace gs
