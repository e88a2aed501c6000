#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "analysis/analyze.hpp"
#include "analysis/block_triangular.hpp"
#include "base/stopwatch.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "bind/options.hpp"
#include "shared/costs.hpp"

namespace gs {
namespace {

// `named`: fields of AnalyzeOptions.
AnalyzeOptions options_of(PatternView A, const Costs& costs, const std::string& ordering,
                          const std::optional<In<idx>>& perm, const std::string& method, const nb::kwargs& named) {
  using Options = AnalyzeOptions;
  if (perm) require_permutation(*perm, A.n, "perm");
  Options options(costs.cpu);
  options.ordering = perm ? "user" : ordering_of(ordering);
  options.user_perm = perm ? perm->data() : nullptr;
  options.method = option_of<MethodChoice>(
      "method", method,
      {{"auto", MethodChoice::automatic}, {"column", MethodChoice::column}, {"front", MethodChoice::front}});
  set_members<&Options::cholesky, &Options::ldlt, &Options::symmetric, &Options::matching, &Options::refactorizations>(
      options, named);
  require(!(options.cholesky && options.ldlt), "an analysis is for one kind of factorization");
  return options;
}

using Candidates = std::vector<std::shared_ptr<Symbolic>>;

// Runs `analyze` without the GIL and returns its results with the time that it took.
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
                                                             const std::string& ordering,
                                                             const std::optional<In<idx>>& perm,
                                                             const std::string& method, const nb::kwargs& named) {
  const PatternView A = matrix_view(ptr, ind, values);
  const AnalyzeOptions options = options_of(A, costs, ordering, perm, method, named);
  return timed([&] {
    std::vector<Symbolic> only;
    only.push_back(analyze(A, values.data(), options));
    return only;
  })[0];
}

template <class T> Candidates candidates_binding(In<off> ptr, In<idx> ind, In<T> values, const Costs& costs,
                                                 const std::string& ordering, const std::optional<In<idx>>& perm,
                                                 const std::string& method, const nb::kwargs& named) {
  const PatternView A = matrix_view(ptr, ind, values);
  const AnalyzeOptions options = options_of(A, costs, ordering, perm, method, named);
  require(options.method != MethodChoice::automatic, "candidates are of one method");
  return timed([&] {
    return options.method == MethodChoice::front ? analyze_fronts(A, values.data(), options)
                                                 : analyze_columns(A, values.data(), options);
  });
}

}  // namespace

void bind_analyze(nb::module_& m) {
  nb::class_<Costs>(m, "Costs", "Constants of predicted seconds; see kernels/shared/costs.hpp.")
      .def(
          "__init__",
          [](Costs* self, In<double> constants) {
            require(take_numbers(constants, *self), "constants must be as many as there are, finite and not negative");
          },
          "constants"_a);
  m.def(
      "fronts_like",
      [](std::shared_ptr<const Symbolic> columns, const Canonical& canonical, const Costs& costs,
         const std::string& ordering, std::optional<In<idx>> perm) {
        const PatternView A = canonical.pattern.view();
        require(columns->n == A.n && columns->nnz == A.nnz() && !columns->one_triangle(),
                "the analysis is not an LU analysis of this pattern");
        const AnalyzeOptions options = options_of(A, costs, ordering, perm, "front", {});
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
  for_scalars([&]<class T>(const char*) {
    m.def("analyze", &analyze_binding<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "costs"_a, nb::kw_only(),
          "ordering"_a = "auto", "perm"_a = nb::none(), "method"_a = "auto", "options"_a,
          "Order and analyse a canonical CSC matrix; options: fields of AnalyzeOptions, core/analysis/analyze.hpp.");
    m.def("analyze_candidates", &candidates_binding<T>, "ptr"_a, "ind"_a, "values"_a.noconvert(), "costs"_a,
          nb::kw_only(), "ordering"_a = "auto", "perm"_a = nb::none(), "method"_a, "options"_a,
          "One Symbolic of this method for every ordering worth considering; see core/analysis/analyze.hpp.");
  });
}

}  // namespace gs
