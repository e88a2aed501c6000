// From a caller's matrix to a factor in one call.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>

#include "analysis/compatibility.hpp"
#include "base/scalars.hpp"
#include "base/stopwatch.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/factor_binding.hpp"
#include "bind/fused.hpp"
#include "bind/patterns.hpp"

namespace gs {
namespace {

// Factors the caller's values with the options of an LU analysis for any values. Null, which becomes None, if the
// number of values differs from the matrix's or one is not finite.
template <class T>
FactorBinding<T>* factor_of_given(std::shared_ptr<const Symbolic> symbolic, nb::object canonical, In<T> values) {
  const Canonical& given = nb::cast<const Canonical&>(canonical);
  const PatternView A = given.pattern.view();
  if ((off)values.shape(0) != given.nvalues) return nullptr;
  require_analysis_of(A, *symbolic);
  auto factor = without_gil([&]() -> std::unique_ptr<Factor<T>> {
    std::vector<T> gathered;
    const T* const ordered = canonical_values(given, values.data(), gathered);
    return ordered ? std::make_unique<Factor<T>>(std::move(symbolic), A, ordered, FactorOptions{}) : nullptr;
  });
  if (!factor) return nullptr;
  return new FactorBinding<T>{std::move(canonical), std::move(factor), A.nnz(), given.nvalues};
}

// (canonical, symbolic, factor, seconds of the first two, the cached pattern or None, cached call)
//
// The last is the call with a cached analysis that was not usable, or 0.
template <class T> using Made =
    Tuple<Canonical, Symbolic, FactorBinding<T>, double, double, std::optional<Known>, std::int64_t>;

const FactorOptions of_any_values{.any_values = true};

// The analysis that later factorizations should use after LDL^T in place of LU: with the columns that were delayed, or
// the analysis of the LU that replaced it. Null if it did not change or did not begin as LDL^T.
template <class T>
std::shared_ptr<Symbolic> analysis_to_keep(const Factor<T>& factor, const std::shared_ptr<Symbolic>& before) {
  const auto now = factor.summary().symbolic;
  if (!before->ldlt || now == before || factor.stats().n_repivoted > 0) return nullptr;
  return std::const_pointer_cast<Symbolic>(now);
}

// A factor of the values with the cached analysis of their pattern: the cached factor, refactored, or a new one. Empty
// if the analysis is not compatible with the values or factorization fails.
template <class T>
std::optional<Made<T>> with_known(const std::shared_ptr<Known>& known, const T* values, bool borrow) {
  const Stopwatch watch;
  const nb::tuple analysed = nb::cast<nb::tuple>(known->value);
  const Canonical& canonical = nb::cast<const Canonical&>(analysed[0]);
  const auto symbolic = nb::cast<std::shared_ptr<Symbolic>>(analysed[1]);
  nb::object lu = borrow ? known->take() : nb::none();
  auto* const left = nb::isinstance<FactorBinding<T>>(lu) ? nb::cast<FactorBinding<T>*>(lu) : nullptr;
  const PatternView A = canonical.pattern.view();
  std::unique_ptr<Factor<T>> factor;
  const auto make = [&] {
    std::vector<T> gathered;
    values = canonical_values(canonical, values, gathered);
    if (!values) return false;
    if (left) {
      left->factor->refactor(values, nullptr);
    } else {
      if (!analysis_is_compatible(A, values, *symbolic, true)) return false;
      factor = std::make_unique<Factor<T>>(symbolic, A, values, of_any_values);
    }
    return true;
  };
  try {
    if (!without_gil(make)) return std::nullopt;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  if (factor) {
    if (auto led_to = analysis_to_keep(*factor, symbolic)) known->value = nb::make_tuple(analysed[0], led_to);
    lu = nb::cast(new FactorBinding<T>{analysed[0], std::move(factor), A.nnz(), canonical.nvalues},
                  nb::rv_policy::take_ownership);
  }
  return Made<T>(nb::make_tuple(analysed[0], nb::cast<nb::tuple>(known->value)[1], lu, watch.seconds(), 0.0, known, 0));
}

// Canonicalization, analysis and factorization with default options. None if a value is not finite. Without `patterns`
// nothing is cached.
template <class T, class I> std::optional<Made<T>> lu_binding(Patterns* patterns, idx n, In<I> ptr, In<I> ind,
                                                              In<T> values, const Costs& costs, bool borrow) {
  require_pointers(ptr, n);
  PatternKey key{nb::none(), index_arrays(n, form_of<T, I>, ptr, ind)};
  std::int64_t dropped = 0;
  if (const auto known = patterns ? patterns->find(key) : nullptr) {
    require_entries(values, nb::cast<const Canonical&>(nb::cast<nb::tuple>(known->value)[0]).nvalues, "data");
    if (auto made = with_known<T>(known, values.data(), borrow)) return made;
    patterns->miss();
    dropped = known->call;
  }
  Begun<T> begun;
  std::shared_ptr<Symbolic>& symbolic = begun.symbolic;
  std::unique_ptr<Factor<T>> factor;
  const auto make = [&] {
    AnalyzeOptions options(costs.cpu);
    options.symmetric = true;
    if (!begun.begin(n, ptr, ind, values, options)) return false;
    factor = std::make_unique<Factor<T>>(symbolic, begun.canonical->pattern.view(), begun.values, of_any_values);
    if (auto led_to = analysis_to_keep(*factor, symbolic)) led_to->seconds = symbolic->seconds, symbolic = led_to;
    return true;
  };
  if (!without_gil(make)) return std::nullopt;
  const double analyze_seconds = symbolic->seconds;
  const off bytes = bytes_of(*begun.canonical) + bytes_of(*symbolic);
  const nb::object owner = nb::cast(begun.canonical.release(), nb::rv_policy::take_ownership);
  const Canonical& kept = nb::cast<const Canonical&>(owner);
  const nb::object lu =
      nb::cast(new FactorBinding<T>{owner, std::move(factor), kept.pattern.view().nnz(), kept.nvalues},
               nb::rv_policy::take_ownership);
  const nb::tuple analysed = nb::make_tuple(owner, std::move(symbolic));
  if (patterns) patterns->keep(key, analysed, bytes);
  return Made<T>(nb::make_tuple(analysed[0], analysed[1], lu, begun.seconds, analyze_seconds, nb::none(), dropped));
}

template <class T> void bind_fused_of(nb::module_& m) {
  m.def(
      "factor_given", &factor_of_given<T>, nb::rv_policy::take_ownership, "symbolic"_a, "canonical"_a,
      "values"_a.noconvert(),
      "Factor a caller's values by default options; None where they are not as many as the matrix had, or not finite.");
  m.def("splu", &lu_binding<T, std::int32_t>, "patterns"_a.none(), "n"_a, "indptr"_a.noconvert(),
        "indices"_a.noconvert(), "data"_a.noconvert(), "costs"_a, "borrow"_a,
        "(canonical, symbolic, factor, seconds, seconds, known pattern or None) of compressed columns, or None. With "
        "`lent` the factor may be one that was left to the pattern; without `patterns` nothing is remembered.");
  m.def("splu", &lu_binding<T, std::int64_t>, "patterns"_a.none(), "n"_a, "indptr"_a.noconvert(),
        "indices"_a.noconvert(), "data"_a.noconvert(), "costs"_a, "borrow"_a);
}

}  // namespace

void bind_fused(nb::module_& m) {
#define GS_BIND(T) bind_fused_of<T>(m);
  GS_FOR_SCALARS(GS_BIND)
#undef GS_BIND
  // For all other argument types: these overloads make checks by the caller unnecessary.
  m.def("factor_given", [](nb::handle, nb::handle, nb::handle) { return nb::none(); });
  m.def("splu",
        [](nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle) { return nb::none(); });
}

}  // namespace gs
