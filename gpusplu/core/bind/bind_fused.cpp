// From a caller's matrix to a factor in one call: canonicalization, the pattern cache, analysis and factorization.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <numeric>
#include <optional>

#include "analysis/analyze.hpp"
#include "base/stopwatch.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/options.hpp"
#include "bind/patterns.hpp"
#include "matrix/symmetry.hpp"
#include "matrix/values.hpp"
#include "numeric/factor.hpp"

namespace gs {
namespace {

// Kind and options of a factorization, and the format of the matrix. Immutable.
struct FactorSpec {
  enum class Kind { lu, cholesky, ldlt } kind = Kind::lu;
  Format format = Format::columns;
  std::string_view ordering = "auto";  // one of ordering_names
  std::vector<idx> perm = {};          // the caller's own column order, gather; empty: none
  bool matching = true;
  double refactorizations = 5;  // that are expected
  FactorOptions options = {};   // own_order and compared are set for each matrix
  // The part of it that an analysis depends on, which the pattern cache compares; None: nothing is cached.
  nb::object tag = nb::none();

  bool by_one_triangle() const { return kind != Kind::lu; }
  AnalyzeOptions analysis(const CpuCosts& costs) const {
    AnalyzeOptions analysis(costs);
    analysis.cholesky = kind == Kind::cholesky, analysis.ldlt = kind == Kind::ldlt;
    analysis.symmetric = options.symmetric;
    analysis.ordering = perm.empty() ? ordering : "user";
    analysis.user_perm = perm.empty() ? nullptr : perm.data();
    analysis.matching = matching;
    analysis.refactorizations = refactorizations;
    if (options.pivoting == Pivoting::partial) analysis.method = MethodChoice::column;
    return analysis;
  }
};

// Ratio of entries of L with and without delayed columns above which other values do not begin with the delays.
constexpr double most_fill_of_delays = 1.5;

// What LDL^T factorizations of a pattern led to, for later ones: the analysis with the columns that were delayed to
// fronts of parents, and how many pivots were perturbed even so. If the caller wanted LU, also the
// analysis of the LU that replaced LDL^T (`factor_matrix` keeps that one for LU, and no delays). Python reads and
// writes it with the GIL.
struct Delays {
  std::shared_ptr<const Symbolic> symbolic;  // null: the original analysis
  idx perturbed = 0;
};

// The caller's values in canonical order: themselves, or gathered into `memory`. Null if one is not finite.
template <class T> const T* canonical_values(const Canonical& canonical, const T* values, std::vector<T>& memory) {
  if (!canonical.identity) {
    memory.resize(canonical.pattern.view().nnz());
    gather_values(canonical, values, memory.data());
    values = memory.data();
  }
  return all_finite(values, canonical.pattern.view().nnz()) ? values : nullptr;
}

// The canonical matrix with both triangles for a kind that needs them, and its values; null if the values are too few,
// not finite, or not Hermitian or symmetric.
template <class T>
const T* read_values(const FactorSpec& spec, Canonical& canonical, const In<T>& data, std::vector<T>& memory) {
  if ((off)data.shape(0) < canonical.nvalues) return nullptr;
  const T* values = canonical_values(canonical, data.data(), memory);
  if (!values || !spec.by_one_triangle()) return values;
  const bool hermitian = spec.options.hermitian;
  if (const Triangle triangle = stored_triangle(canonical.pattern.view()); triangle != Triangle::full) {
    canonical = mirror_triangle(canonical, triangle, hermitian);
    values = canonical_values(canonical, data.data(), memory);
    if (!is_complex<T>) return values;
  }
  return are_symmetric(canonical.pattern.view(), values, hermitian) ? values : nullptr;
}

// An LU, Cholesky or LDL^T factor of canonical values by this analysis. Fronts renumber columns, so natural order needs
// an analysis by columns.
std::unique_ptr<Factor> factor_by(const FactorSpec& spec, const Canonical& canonical,
                                  std::shared_ptr<const Symbolic> symbolic, Dtype dtype, const void* values) {
  const PatternView A = canonical.pattern.view();
  FactorOptions options = spec.options;
  if (symbolic->one_triangle() && !options.symmetric) options.compared = &canonical;
  if (!spec.perm.empty()) {
    options.own_order = spec.perm;
  } else if (spec.ordering == "natural") {
    options.own_order.resize(A.n);
    std::iota(options.own_order.begin(), options.own_order.end(), 0);
    if (symbolic->method == Method::front && !symbolic->one_triangle()) {
      AnalyzeOptions natural(symbolic->costs);
      natural.ordering = "natural";
      symbolic = with_scalar(
          dtype, [&]<class T>(T) { return std::make_shared<Symbolic>(analyze(A, (const T*)values, natural)); });
    }
  }
  return std::make_unique<Factor>(dtype, std::move(symbolic), A, values, options);
}

// What later factorizations should begin with after LDL^T; null in it: with the original analysis.
Delays delays_of(const Factor& factor, const Symbolic& before) {
  const FactorSummary now = factor.summary();
  if (now.symbolic.get() == &before || factor.stats().n_repivoted > 0) return {};
  const bool too_large = now.symbolic->ldlt && (double)now.symbolic->lnz > most_fill_of_delays * (double)before.lnz;
  return too_large ? Delays{} : Delays{now.symbolic, now.info.n_perturbed};
}

// `factor_by`; LDL^T begins with the columns where earlier factorizations moved them. Other values may be worse off
// with that placement, with more perturbed pivots than those that it was found for, or without LDL^T: then the original
// analysis is tried.
std::unique_ptr<Factor> factor_with_delays(const FactorSpec& spec, const Canonical& canonical,
                                           const std::shared_ptr<const Symbolic>& symbolic, Dtype dtype,
                                           const void* values, Delays& delays) {
  if (!symbolic->ldlt) return factor_by(spec, canonical, symbolic, dtype, values);
  std::unique_ptr<Factor> factor;
  if (delays.symbolic) {
    factor = factor_by(spec, canonical, delays.symbolic, dtype, values);
    const FactorSummary now = factor->summary();
    const bool as_good = now.symbolic->ldlt && now.info.n_perturbed <= delays.perturbed;
    if (!as_good && spec.kind == FactorSpec::Kind::ldlt) factor = nullptr;
  }
  if (!factor) factor = factor_by(spec, canonical, symbolic, dtype, values);
  delays = delays_of(*factor, *symbolic);
  return factor;
}

nb::object held_by_python(nb::object canonical, std::unique_ptr<Factor> factor) {
  return nb::cast(new Bound<Factor>{std::move(canonical), std::move(factor)}, nb::rv_policy::take_ownership);
}

// Factors valid canonical values on an analysed pattern.
nb::object factor_canonical(const FactorSpec& spec, nb::object canonical, std::shared_ptr<const Symbolic> symbolic,
                            Delays& delays, AnyIn values) {
  const Dtype dtype = type_of(values);
  const Canonical& pattern = nb::cast<const Canonical&>(canonical);
  require_entries(values, pattern.pattern.view().nnz(), "values");
  require_analysis_of(pattern.pattern.view(), *symbolic);
  Delays now = delays;
  auto factor = without_gil([&] { return factor_with_delays(spec, pattern, symbolic, dtype, values.data(), now); });
  delays = now;
  return held_by_python(std::move(canonical), std::move(factor));
}

// (canonical, symbolic, delays, factor, seconds of canonicalization, of analysis, cached pattern or None, call)
//
// The last is the call with a cached analysis that was not usable, or 0.
using Made = Tuple<Canonical, Symbolic, Delays, nb::object, double, double, std::optional<Known>, std::int64_t>;

// What the cache holds for a pattern: (canonical, symbolic, delays).
struct Entry {
  explicit Entry(const Known& known) : tuple(nb::cast<nb::tuple>(known.value)) {}
  nb::object canonical_object() const { return tuple[0]; }
  const Canonical& canonical() const { return nb::cast<const Canonical&>(tuple[0]); }
  std::shared_ptr<Symbolic> symbolic() const { return nb::cast<std::shared_ptr<Symbolic>>(tuple[1]); }
  Delays& delays() const { return nb::cast<Delays&>(tuple[2]); }
  nb::tuple tuple;
};

// Where LU began as LDL^T: the analysis that later factorizations should use, with the columns that were delayed, or of
// the LU that replaced it. Null if it did not change.
std::shared_ptr<Symbolic> analysis_to_keep(const FactorSpec& spec, const Factor& factor, const Symbolic& before) {
  if (spec.kind != FactorSpec::Kind::lu || !before.ldlt || factor.stats().n_repivoted > 0) return nullptr;
  const auto now = factor.summary().symbolic;
  return now.get() == &before ? nullptr : std::const_pointer_cast<Symbolic>(now);
}

// A factor of the values by the cached analysis of their pattern: a factor that no caller holds, refactored, or a new
// one. Empty if the values are not valid, the analysis is not compatible with them, or it leads to no factor.
template <class T> std::optional<Made> with_known(const FactorSpec& spec, const std::shared_ptr<Known>& known,
                                                  const In<T>& data, bool borrow) {
  const Stopwatch watch;
  const Entry entry(*known);
  const Canonical& canonical = entry.canonical();
  if ((off)data.shape(0) < canonical.nvalues) return std::nullopt;
  const auto symbolic = entry.symbolic();
  nb::object result = borrow ? known->take() : nb::none();
  auto* const left = nb::isinstance<Bound<Factor>>(result) ? nb::cast<Bound<Factor>*>(result) : nullptr;
  const PatternView A = canonical.pattern.view();
  std::unique_ptr<Factor> factor;
  Delays delays = entry.delays();
  const bool by_sizes = spec.options.symmetric || !symbolic->row_scale.empty() ||
                        (symbolic->ordering == "natural" && spec.ordering != "natural");
  const auto make = [&] {
    std::vector<T> gathered;
    const T* const values = canonical_values(canonical, data.data(), gathered);
    if (!values) return false;
    if (spec.by_one_triangle() && !are_symmetric(A, values, spec.options.hermitian)) return false;
    if (left) {
      left->factor->refactor(values, nullptr, spec.by_one_triangle());
    } else {
      if (by_sizes && !analysis_is_compatible(A, values, *symbolic, spec.options.symmetric)) return false;
      factor = spec.kind == FactorSpec::Kind::ldlt
                   ? factor_with_delays(spec, canonical, symbolic, dtype_of<T>, values, delays)
                   : factor_by(spec, canonical, symbolic, dtype_of<T>, values);
    }
    return true;
  };
  try {
    if (!without_gil(make)) return std::nullopt;
  } catch (const NotPositiveDefinite&) {
    throw;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  if (factor) {
    entry.delays() = delays;
    if (auto led_to = analysis_to_keep(spec, *factor, *symbolic))
      known->replace(nb::make_tuple(entry.tuple[0], led_to, entry.tuple[2]), bytes_of(canonical) + bytes_of(*led_to));
    result = held_by_python(entry.canonical_object(), std::move(factor));
  }
  const nb::tuple held = nb::cast<nb::tuple>(known->value);
  return Made(nb::make_tuple(held[0], held[1], held[2], result, watch.seconds(), 0.0, known, 0));
}

// A matrix, canonicalized, checked and analysed.
template <class T> struct Begun {
  std::unique_ptr<Canonical> canonical = std::make_unique<Canonical>();
  std::shared_ptr<Symbolic> symbolic;
  std::vector<T> gathered;
  const T* values = nullptr;  // canonical ones
  double seconds = 0;         // before the analysis

  // False if the values are not valid. Runs without the GIL; the arrays must have been checked.
  template <class I> bool begin(const FactorSpec& spec, idx n, const In<I>& first, const In<I>& second,
                                const In<T>& data, const Costs& costs) {
    const Stopwatch watch;
    *canonical = canonical_of(spec.format, n, first.data(), second.data(), (off)second.shape(0));
    values = read_values(spec, *canonical, data, gathered);
    if (!values) return false;
    seconds = watch.seconds();
    symbolic = std::make_shared<Symbolic>(analyze(canonical->pattern.view(), values, spec.analysis(costs.cpu)));
    symbolic->seconds = watch.seconds() - seconds;
    return true;
  }
};

// The whole way. None if the values are not valid: the caller then words the error.
template <class T, class I> std::optional<Made> factor_matrix(Patterns* patterns, const FactorSpec& spec, idx n,
                                                              In<I> first, In<I> second, In<T> data, const Costs& costs,
                                                              bool borrow) {
  require(spec.perm.empty() || (off)spec.perm.size() == n, "the order of the columns has another length");
  require_indices(spec.format, n, first, second);
  if (spec.tag.is_none()) patterns = nullptr;
  PatternKey key{spec.tag, index_arrays(n, form_of<T, I>, first, second)};
  std::int64_t dropped = 0;
  if (const auto known = patterns ? patterns->find(key) : nullptr) {
    if (auto made = with_known<T>(spec, known, data, borrow)) return made;
    patterns->miss();
    dropped = known->call;
  }
  Begun<T> begun;
  std::shared_ptr<Symbolic>& symbolic = begun.symbolic;
  std::unique_ptr<Factor> factor;
  Delays delays;
  const auto make = [&] {
    if (!begun.begin(spec, n, first, second, data, costs)) return false;
    factor = spec.kind == FactorSpec::Kind::ldlt
                 ? factor_with_delays(spec, *begun.canonical, symbolic, dtype_of<T>, begun.values, delays)
                 : factor_by(spec, *begun.canonical, symbolic, dtype_of<T>, begun.values);
    if (auto led_to = analysis_to_keep(spec, *factor, *symbolic))
      led_to->seconds = symbolic->seconds, symbolic = led_to;
    return true;
  };
  if (!without_gil(make)) {
    if (patterns) patterns->retract_miss();
    return std::nullopt;
  }
  const double analyze_seconds = symbolic->seconds;
  const off bytes = bytes_of(*begun.canonical) + bytes_of(*symbolic);
  const nb::object canonical = nb::cast(begun.canonical.release(), nb::rv_policy::take_ownership);
  const nb::object result = held_by_python(canonical, std::move(factor));
  const nb::tuple analysed = nb::make_tuple(canonical, std::move(symbolic), std::move(delays));
  if (patterns) patterns->keep(key, analysed, bytes);
  return Made(nb::make_tuple(analysed[0], analysed[1], analysed[2], result, begun.seconds, analyze_seconds, nb::none(),
                             dropped));
}

template <class T, class I> void bind_matrix_of(nb::module_& m) {
  m.def(
      "factor_matrix", &factor_matrix<T, I>, "patterns"_a.none(), "spec"_a, "n"_a, "first"_a.noconvert(),
      "second"_a.noconvert(), "data"_a.noconvert(), "costs"_a, "borrow"_a,
      "(canonical, symbolic, delays, factor, seconds, seconds, known pattern or None, call) of a matrix in the format "
      "of `spec`; None if the values are not valid. With `borrow` the factor may be one that was left to the pattern; "
      "without `patterns` nothing is cached.");
}

FactorSpec::Kind kind_of(const std::string& name) {
  using Kind = FactorSpec::Kind;
  return option_of<Kind>("kind", name, {{"lu", Kind::lu}, {"cholesky", Kind::cholesky}, {"ldlt", Kind::ldlt}});
}

void make_spec(FactorSpec* self, const std::string& kind, const std::string& format, nb::object tag,
               const std::string& ordering, const std::optional<In<idx>>& perm, bool matching, bool symmetric,
               double refactorizations, double pivot_threshold, const std::string& pivoting, const std::string& refine,
               bool hermitian) {
  require(pivot_threshold >= 0 && pivot_threshold <= 1, "pivot_threshold must be between 0 and 1");
  if (perm) require_permutation(*perm, (idx)perm->shape(0), "perm");
  new (self) FactorSpec{kind_of(kind),
                        format_of(format),
                        ordering_of(ordering),
                        perm ? to_vector(*perm) : std::vector<idx>(),
                        matching,
                        refactorizations,
                        FactorOptions{.pivot_threshold = pivot_threshold,
                                      .pivoting = pivoting_of(pivoting),
                                      .refine = refine_of(refine),
                                      .hermitian = hermitian,
                                      .symmetric = symmetric},
                        std::move(tag)};
}

}  // namespace

void bind_fused(nb::module_& m) {
  nb::class_<FactorSpec>(m, "FactorSpec")
      .def("__init__", &make_spec, "kind"_a, "format"_a, "tag"_a.none(), nb::kw_only(), "ordering"_a = "auto",
           "perm"_a = nb::none(), "matching"_a = true, "symmetric"_a = false,
           "refactorizations"_a = FactorSpec{}.refactorizations, "pivot_threshold"_a = 0.1, "pivoting"_a = "auto",
           "refine"_a = "auto", "hermitian"_a = true);
  nb::class_<Delays>(m, "Delays").def(nb::init<>()).def_prop_ro("symbolic", [](const Delays& d) { return d.symbolic; });
  m.def("factor", &factor_canonical, "spec"_a, "canonical"_a, "symbolic"_a, "delays"_a, "values"_a.noconvert(),
        "Factor canonical values that are valid.");
  for_scalars([&]<class T>(const char*) {
    bind_matrix_of<T, std::int32_t>(m);
    bind_matrix_of<T, std::int64_t>(m);
  });
  // Arrays with other number types or memory layouts: this overload makes checks by the caller unnecessary.
  m.def(
      "factor_matrix", [](nb::args) { return nb::none(); }, nb::sig("def factor_matrix(*args: object) -> None"));
}

}  // namespace gs
