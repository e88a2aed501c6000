#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "analysis/analyze.hpp"
#include "analysis/block_triangular.hpp"
#include "analysis/selection.hpp"
#include "base/stopwatch.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/factor_spec.hpp"

namespace gs {
namespace {

MethodChoice method_of(const std::string& name) {
  if (name == "auto") return MethodChoice::automatic;
  if (name == "column") return MethodChoice::column;
  if (name == "front") return MethodChoice::front;
  throw nb::value_error(("method must be 'auto', 'column' or 'front', got '" + name + "'").c_str());
}

AnalyzeOptions options_of(PatternView A, const Costs& costs, bool cholesky, const std::string& ordering,
                          const std::optional<In<idx>>& perm, bool matching) {
  if (perm) require_permutation(*perm, A.n, "perm");
  AnalyzeOptions options(costs.cpu);
  options.cholesky = cholesky;
  options.ordering = perm ? "user" : ordering_of(ordering);
  options.user_perm = perm ? perm->data() : nullptr;
  options.matching = matching;
  return options;
}

using Candidates = std::vector<std::shared_ptr<Symbolic>>;

// Runs `analyze` without the GIL and returns its result with the time that it took.
template <class Analyze> Candidates timed(Analyze&& analyze) {
  return without_gil([&] {
    const Stopwatch watch;
    Candidates candidates;
    for (Symbolic& s : analyze()) candidates.push_back(std::make_shared<Symbolic>(std::move(s)));
    const double seconds = watch.seconds();
    for (auto& candidate : candidates) candidate->seconds = seconds;
    return candidates;
  });
}

template <class T> std::shared_ptr<Symbolic> analyze_binding(In<off> ptr, In<idx> ind, In<T> values, const Costs& costs,
                                                             bool cholesky, bool ldlt, const std::string& ordering,
                                                             std::optional<In<idx>> perm, const std::string& method,
                                                             bool matching, bool symmetric, double refactorizations) {
  require(!(cholesky && ldlt), "an analysis is for one kind of factorization");
  const PatternView A = matrix_view(ptr, ind, values);
  AnalyzeOptions options = options_of(A, costs, cholesky, ordering, perm, matching);
  options.refactorizations = refactorizations;
  options.ldlt = ldlt, options.symmetric = symmetric;
  options.method = method_of(method);
  return without_gil([&] {
    const Stopwatch watch;
    auto symbolic = std::make_shared<Symbolic>(analyze(A, values.data(), options));
    symbolic->seconds = watch.seconds();
    return symbolic;
  });
}

template <class T> Candidates analyze_fronts_binding(In<off> ptr, In<idx> ind, In<T> values, const Costs& costs,
                                                     bool cholesky, bool ldlt, const std::string& ordering,
                                                     std::optional<In<idx>> perm, bool matching) {
  require(!(cholesky && ldlt), "an analysis is for one kind of factorization");
  const PatternView A = matrix_view(ptr, ind, values);
  AnalyzeOptions options = options_of(A, costs, cholesky, ordering, perm, matching);
  options.ldlt = ldlt;
  return timed([&] { return analyze_fronts(A, values.data(), options); });
}

template <class T> Candidates analyze_columns_binding(In<off> ptr, In<idx> ind, In<T> values, const Costs& costs,
                                                      const std::string& ordering, std::optional<In<idx>> perm,
                                                      bool matching) {
  const PatternView A = matrix_view(ptr, ind, values);
  const AnalyzeOptions options = options_of(A, costs, false, ordering, perm, matching);
  return timed([&] { return analyze_columns(A, values.data(), options); });
}

template <class T> void bind_analyze_of(nb::module_& m) {
  m.def("analyze_columns", &analyze_columns_binding<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "costs"_a,
        nb::kw_only(), "ordering"_a = "auto", "perm"_a = nb::none(), "matching"_a = true,
        "One Symbolic of method 'column' for every ordering worth considering; see core/analysis/analyze.hpp.");
  m.def("analyze_fronts", &analyze_fronts_binding<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "costs"_a,
        nb::kw_only(), "cholesky"_a = false, "ldlt"_a = false, "ordering"_a = "auto", "perm"_a = nb::none(),
        "matching"_a = true,
        "One Symbolic of method 'front' for every ordering worth considering; see core/analysis/analyze.hpp.");
  m.def("analyze", &analyze_binding<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "costs"_a, nb::kw_only(),
        "cholesky"_a = false, "ldlt"_a = false, "ordering"_a = "auto", "perm"_a = nb::none(), "method"_a = "auto",
        "matching"_a = true, "symmetric"_a = false, "refactorizations"_a = AnalyzeOptions({}).refactorizations,
        "Order and analyse a canonical CSC matrix; see core/analysis/analyze.hpp.");
}

}  // namespace

void bind_analyze(nb::module_& m) {
  m.def(
      "fronts_like",
      [](std::shared_ptr<const Symbolic> columns, const Canonical& canonical, const Costs& costs,
         const std::string& ordering, std::optional<In<idx>> perm) {
        const PatternView A = canonical.pattern.view();
        require(columns->n == A.n && columns->nnz == A.nnz() && !columns->one_triangle(),
                "the analysis is not an LU analysis of this pattern");
        AnalyzeOptions options = options_of(A, costs, false, ordering, perm, true);
        options.method = MethodChoice::front;
        return without_gil([&] { return std::make_shared<Symbolic>(fronts_like(*columns, A, options)); });
      },
      "columns"_a, "canonical"_a, "costs"_a, nb::kw_only(), "ordering"_a = "auto", "perm"_a = nb::none(),
      "Fronts, by the matching and the scales of an analysis by columns; see core/analysis/analyze.hpp.");
  m.def(
      "is_triangular",
      [](const Canonical& canonical) { return without_gil([&] { return is_triangular(canonical.pattern.view()); }); },
      "canonical"_a, "Whether the matrix is triangular in some order of its rows and of its columns.");
  nb::list orderings;
  for (const std::string_view known : ordering_names()) orderings.append(nb::str(known.data(), known.size()));
  m.attr("ORDERINGS") = nb::tuple(orderings);
  m.attr("BOTH_ORDERINGS_FROM") = both_orderings_from;
  m.attr("NEIGHBOURS_IN_SPACE") = neighbours_in_space;
  for_scalars([&]<class T>(const char*) { bind_analyze_of<T>(m); });
}

}  // namespace gs
