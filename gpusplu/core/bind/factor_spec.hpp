// What a caller wants of a factorization, read once from Python's options.
#pragma once
#include <string>
#include <vector>

#include "analysis/analyze.hpp"
#include "analysis/selection.hpp"
#include "bind/bind.hpp"
#include "numeric/factor.hpp"

namespace gs {

inline std::string_view ordering_of(const std::string& name) {
  for (const std::string_view known : ordering_names())
    if (name == known) return known;
  throw nb::value_error(("ordering='" + name + "' is unknown").c_str());
}

// The caller's matrix: compressed columns, compressed rows, or coordinates.
enum class Format { columns, rows, coordinates };

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

}  // namespace gs
