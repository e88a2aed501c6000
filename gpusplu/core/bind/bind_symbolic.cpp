#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <numeric>
#include <tuple>

#include "analysis/graph.hpp"
#include "analysis/structure.hpp"
#include "analysis/symbolic.hpp"
#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "matrix/canonical.hpp"
#include "numeric/peak_memory.hpp"

namespace gs {
namespace {

std::shared_ptr<const Symbolic> with_scales_of_dtype(std::shared_ptr<Symbolic> symbolic, const std::string& dtype) {
  return with_scalar(dtype_named(dtype), [&]<class T>(T) { return with_scales_of<real_t<T>>(std::move(symbolic)); });
}

// The analysis with the LDL^T pivots that a factorization chose: their order, and the positions in it at which pivots
// of order 2 begin.
std::shared_ptr<Symbolic> with_pivots(const Symbolic& symbolic, const In<idx>& order, const In<idx>& pairs) {
  require(symbolic.ldlt, "pivots are those of an analysis for LDL^T");
  require_permutation(order, symbolic.n, "order");
  auto out = std::make_shared<Symbolic>(symbolic);
  out->pivot_order.assign(order.data(), order.data() + symbolic.n);
  out->partner.resize(symbolic.n);
  std::iota(out->partner.begin(), out->partner.end(), 0);
  idx end = 0;  // end of the previous pair
  for (std::size_t p = 0; p < pairs.shape(0); p++) {
    const idx k = pairs.data()[p];
    require(k >= end && k + 1 < symbolic.n, "pairs must ascend and not overlap");
    const idx i = order.data()[k], j = order.data()[k + 1];
    out->partner[i] = j, out->partner[j] = i;
    end = k + 2;
  }
  return out;
}

const char* method_name(Method method) { return method == Method::column ? "column" : "front"; }

// The fields of Symbolic that Python sees; a pickle has the method before them and the costs after them.
using S = Symbolic;
using Fields =
    Members<&S::n, &S::nnz, &S::cholesky, &S::ldlt, &S::row_perm, &S::col_perm, &S::row_scale, &S::col_scale,
            &S::pivot_order, &S::partner, &S::keeps_diagonal, &S::block_ptr, &S::parent, &S::col_count, &S::super_ptr,
            &S::super_parent, &S::row_ptr, &S::row_ind, &S::rel_ind, &S::n_interface, &S::ordering, &S::lnz, &S::flops,
            &S::structural_rank, &S::column_levels, &S::super_levels, &S::critical_path, &S::seconds>;

template <class T> void append(nb::list& state, const std::vector<T>& v) { state.append(to_numpy(std::vector<T>(v))); }
template <class T> void append(nb::list& state, const T& v) { state.append(v); }
template <class T> void restore(nb::handle item, std::vector<T>& v) { v = to_vector(nb::cast<In<T>>(item, false)); }
template <class T> void restore(nb::handle item, T& v) { v = nb::cast<T>(item, false); }
State get_state(const Symbolic& symbolic) {
  nb::list state;
  state.append(method_name(symbolic.method));
  Fields::visit([&]<auto field>() { append(state, symbolic.*field); });
  state.append(numbers_of(symbolic.costs));
  return nb::tuple(state);
}

Method stored_method(const std::string& name) {
  require(name == "column" || name == "front", "a pickled analysis is damaged: its method is unknown");
  return name == "column" ? Method::column : Method::front;
}

void set_state(Symbolic& symbolic, const State& state) {
  Symbolic restored;
  require(state.size() == Fields::count + 2, "a pickled analysis is damaged: it has another number of fields");
  try {
    restored.method = stored_method(nb::cast<std::string>(state[0]));
    std::size_t k = 1;
    Fields::visit([&]<auto field>() { restore(state[k++], restored.*field); });
    require(take_numbers(nb::cast<In<double>>(state[k], false), restored.costs),
            "a pickled analysis is damaged: its constants are no such numbers");
  } catch (const nb::cast_error&) {
    throw std::invalid_argument("a pickled analysis is damaged: a field has another type");
  }
  validate(restored);
  new (&symbolic) Symbolic(std::move(restored));
}

}  // namespace

void bind_symbolic(nb::module_& m) {
  nb::class_<S> symbolic(m, "Symbolic", "The result of analysis; all arrays are read-only views.");
  Fields::define(symbolic)
      .def_prop_ro("nsuper", &S::nsuper)
      .def_prop_ro("kind", [](const S& s) { return s.cholesky ? "cholesky"
                                                   : s.ldlt   ? "ldlt"
                                                              : "lu"; })
      .def_prop_ro("method", [](const S& s) { return method_name(s.method); })
      .def("with_scales_of", &with_scales_of_dtype, "dtype"_a,
           "The same with scales in the range of this dtype, which another dtype's analysis may have left.")
      .def(
          "peak_bytes",
          [](const S& s, const std::string& dtype, int threads) {
            require(threads > 0, "threads must be positive");
            return without_gil([&] { return peak_bytes(s, dtype_named(dtype), threads); });
          },
          "dtype"_a, "threads"_a,
          "Predicted bytes of a first factorization by the CPU engine at its peak, beside the analysis and the "
          "pattern.")
      .def(
          "analysis_bytes",
          [](const S& s, int threads) {
            require(threads > 0, "threads must be positive");
            return analysis_bytes(s, threads);
          },
          "threads"_a, "About the bytes that the analysis needed at its peak, beside its result and the pattern.")
      .def("with_pivots", &with_pivots, "order"_a, "pairs"_a,
           "The same with pivots of LDL^T: columns in their order, and where in it pivots of order 2 begin.")
      .def_prop_ro(
          "costs", [](const S& s) { return numbers_of(s.costs); }, nb::rv_policy::move)
      .def_prop_ro("stages",
                   [](const S& s) -> nb::typed<nb::dict, nb::str, double> {
                     nb::dict stages;
                     for (const auto& [name, seconds] : s.stages) stages[name] = seconds;
                     return stages;
                   })
      .def_prop_ro(
          "considered",
          [](const S& s) -> nb::typed<nb::list, nb::typed<nb::tuple, nb::str, nb::str, double>> {
            nb::list considered;
            for (const Considered& c : s.considered)
              considered.append(nb::make_tuple(c.ordering, c.ldlt ? "ldlt" : method_name(c.method), c.seconds));
            return considered;
          })
      .def("__getstate__", &get_state)
      .def("__setstate__", &set_state);
  m.def(
      "one_supernode",
      [](idx n) {
        require(n > 0, "n must be positive");
        return one_supernode(n);
      },
      "n"_a, "The analysis of a dense matrix for fronts.");
  m.def(
      "parity",
      [](In<idx> perm) {
        for (std::size_t k = 0; k < perm.shape(0); k++)
          require(perm.data()[k] >= 0 && (std::size_t)perm.data()[k] < perm.shape(0), "perm is no permutation");
        return parity(to_vector(perm));
      },
      "perm"_a, "1 for an even permutation, -1 for an odd one.");
  m.def(
      "validate",
      [](const Symbolic& symbolic, const Canonical& canonical) {
        without_gil([&] { validate(symbolic, canonical.pattern.view()); });
      },
      "symbolic"_a, "canonical"_a, "Raises ValueError if the analysis, both unpickled, is not of this pattern.");
}

}  // namespace gs
