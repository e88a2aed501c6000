#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/ladder_options.hpp"
#include "matrix/canonical.hpp"
#include "numeric/lockstep_factor.hpp"

namespace gs {
namespace {

template <class T> using InRows = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

// What Python holds: the canonical pattern stays alive with the factor that points into it.
template <class T> struct LockstepBinding {
  nb::object canonical;
  std::unique_ptr<LockstepFactor<T>> factor;
  off nvalues;  // that the caller has of a system

  ~LockstepBinding() {
    if (factor && factor->abandoned()) (void)factor.release();
  }
};

template <class T> LockstepBinding<T>* make_binding(const Symbolic& symbolic, nb::object canonical, idx count, In<T>,
                                                    In<double> merging, const std::string& refine) {
  const Canonical& given = nb::cast<const Canonical&>(canonical);
  const PatternView A = given.pattern.view();
  require_analysis_of(A, symbolic);
  require(symbolic.nnz == A.nnz(), "the analysis is of another pattern");
  require(count > 0, "count must be positive");
  SupernodeCosts costs;
  require(take_numbers(merging, costs), "merging must be as many constants as there are, finite and not negative");
  const Ladder ladder(eps<T>, Pivoting::automatic, refine_of(refine), 0);
  auto factor = without_gil([&] { return std::make_unique<LockstepFactor<T>>(symbolic, A, count, costs, ladder); });
  const off nvalues = given.nvalues;
  return new LockstepBinding<T>{std::move(canonical), std::move(factor), nvalues};
}

template <class T>
void refactor_binding(LockstepBinding<T>& self, InRows<T> values, const std::optional<In<off>>& source) {
  LockstepFactor<T>& factor = *self.factor;
  require(values.ndim() == 2, "values must have two dimensions");
  require((off)values.shape(0) == factor.count(), "values must have a row for each system");
  require((off)values.shape(1) >= (source ? self.nvalues : factor.nnz()), "a system has too few values");
  if (source) require_entries(*source, factor.nnz(), "source");
  nb::gil_scoped_release release;
  factor.refactor(values.data(), (off)values.shape(1), source ? source->data() : nullptr);
}

template <class T> nb::ndarray<nb::numpy, T> solve_binding(LockstepBinding<T>& self, InRows<T> b, int trans) {
  LockstepFactor<T>& factor = *self.factor;
  require(b.ndim() == 2 || b.ndim() == 3, "b must have two dimensions or three");
  require((off)b.shape(0) == factor.count(), "b must have a row for each system");
  require((off)b.shape(1) == factor.n(), "a right-hand side has another order than the matrix");
  require(trans >= 0 && trans <= 2, "trans must be 0, 1 or 2");
  const size_t nrhs = b.ndim() == 2 ? 1 : b.shape(2);
  const size_t shape[] = {b.shape(0), b.shape(1), nrhs};
  auto* x = new T[shape[0] * shape[1] * nrhs + 1];
  nb::capsule owner(x, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  if (nrhs) without_gil([&] { factor.solve((Trans)trans, (idx)nrhs, b.data(), x); });
  return nb::ndarray<nb::numpy, T>(x, b.ndim(), shape, owner);
}

template <class T> Tuple<NumPy<T>, NumPy<double>> slogdet_binding(const LockstepBinding<T>& self) {
  std::vector<T> sign(self.factor->count());
  std::vector<double> log_modulus(sign.size());
  without_gil([&] { self.factor->slogdet(sign.data(), log_modulus.data()); });
  return nb::make_tuple(to_numpy(std::move(sign)), to_numpy(std::move(log_modulus)));
}

template <class T> NumPy<std::uint8_t> report_binding(const LockstepBinding<T>& self) {
  const std::vector<LockstepReport> reports = without_gil([&] { return self.factor->report(); });
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(reports.data());
  return to_numpy(std::vector<std::uint8_t>(bytes, bytes + reports.size() * sizeof(LockstepReport)));
}

template <class T> void bind_lockstep_of(nb::module_& m, const char* name) {
  using Self = LockstepBinding<T>;
  nb::class_<Self>(m, name, "Systems of one pattern in lockstep; see core/numeric/lockstep_factor.hpp.")
      .def("refactor", &refactor_binding<T>, "values"_a.noconvert(), "source"_a = nb::none(),
           "Values (count, nnz) in canonical order, or with `source` the caller's.")
      .def("solve", &solve_binding<T>, "b"_a.noconvert(), "trans"_a = 0, "b: (count, n) or (count, n, nrhs).")
      .def("report", &report_binding<T>, "Bytes of a LockstepReport for each system.")
      .def("errors", [](const Self& self) { return to_numpy(self.factor->errors()); })
      .def("steps", [](const Self& self) { return to_numpy(self.factor->steps()); })
      .def("slogdet", &slogdet_binding<T>)
      .def_prop_ro("count", [](const Self& self) { return self.factor->count(); })
      .def_prop_ro("n", [](const Self& self) { return self.factor->n(); })
      .def_prop_ro("nnz", [](const Self& self) { return self.factor->nnz(); })
      .def_prop_ro("nbytes", [](const Self& self) { return self.factor->bytes(); })
      .def_prop_ro("flops", [](const Self& self) { return self.factor->plan().flops; })
      .def_prop_ro("factor_size", [](const Self& self) { return self.factor->plan().factor_size; });
  m.def("lockstep", &make_binding<T>, "symbolic"_a, "canonical"_a, "count"_a, "like"_a.noconvert(), "merging"_a,
        nb::kw_only(), "refine"_a = "auto",
        "Room for `count` systems with this canonical pattern, by an analysis of method 'front', of the dtype of `like`. "
        "merging: SupernodeCosts.");
}

}  // namespace

void bind_lockstep(nb::module_& m) {
  bind_lockstep_of<double>(m, "LockstepF64");
  bind_lockstep_of<float>(m, "LockstepF32");
  bind_lockstep_of<std::complex<float>>(m, "LockstepC64");
  bind_lockstep_of<std::complex<double>>(m, "LockstepC128");
}

}  // namespace gs
