#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "bind/bind.hpp"
#include "bind/checks.hpp"
#include "plan/columns/groups.hpp"
#include "plan/columns/long_columns.hpp"

namespace gs {
namespace {

// Structs of 32-bit numbers as arrays of 32-bit numbers.
template <class T> auto flat(const std::vector<T>& structs) {
  const auto* numbers = reinterpret_cast<const std::int32_t*>(structs.data());
  return to_numpy(std::vector<std::int32_t>(numbers, numbers + structs.size() * (sizeof(T) / 4)));
}

}  // namespace

void bind_column_groups(nb::module_& m) {
  m.def(
      "column_groups",
      [](In<off> col_ptr, In<idx> row, In<off> diag, off leaf, off capacity, idx columns,
         std::optional<In<idx>> single) {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        const gpu::GroupLimits limits{leaf, capacity, columns, single ? to_vector(*single) : std::vector<idx>()};
        gpu::ColumnGroups groups = without_gil([&] { return gpu::make_column_groups(pattern, limits); });
        return std::make_pair(to_numpy(std::move(groups.range)), to_numpy(std::move(groups.level_ptr)));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "leaf"_a, "capacity"_a, "columns"_a, "single"_a = nb::none(),
      "(range, level_ptr): groups of columns for one block each; see core/plan/columns/groups.hpp.");
  m.def("flag_words", &gpu::flag_words, "columns"_a, "Words of shared memory for the flags of a group of columns.");
  m.def("bitmap_words", &gpu::bitmap_words, "n"_a, "Words of shared memory of a warp in the symbolic phase of sflu.");
  m.def(
      "columns_that_follow",
      [](In<off> col_ptr, In<idx> row, In<off> diag) {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        return to_numpy(without_gil([&] { return gpu::columns_that_follow(pattern); }));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "1 for columns of L with the rows of the column before but for its own.");
  m.def(
      "row_diagonals",
      [](In<off> col_ptr, In<idx> row, In<off> diag, In<off> row_ptr) {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        require_entries(row_ptr, (off)pattern.n + 1, "row_ptr");
        return to_numpy(without_gil([&] { return gpu::row_diagonals(pattern, row_ptr.data()); }));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "row_ptr"_a, "Where the diagonal lies in each row of L + U, by rows.");
  m.def(
      "choose_long_columns",
      [](In<off> col_ptr, In<idx> row, In<off> diag, In<idx> level, const Costs& costs, off most_listed) {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        require_entries(level, pattern.n, "level");
        return to_numpy(without_gil(
            [&] { return gpu::choose_long_columns(pattern, level.data(), costs.columns.longest, most_listed); }));
      },
      "col_ptr"_a, "row"_a, "diag"_a, "level"_a, "costs"_a, "most_listed"_a = 20'000'000,
      "Columns that are more than a warp's work; core/plan/columns/long_columns.hpp.");
  m.def(
      "long_columns",
      [](In<off> col_ptr, In<idx> row, In<off> diag, In<idx> columns, const Costs& costs) -> Dict {
        const gpu::ColumnPattern pattern = column_pattern(col_ptr, row, diag);
        for (const idx column : to_vector(columns))
          require(column >= 0 && column < pattern.n, "columns must be in 0 .. n - 1");
        gpu::LongColumns made =
            without_gil([&] { return gpu::make_long_columns(pattern, to_vector(columns), costs.columns.longest); });
        nb::dict out;
        out["parts"] = flat(made.parts);
        out["target"] = to_numpy(std::move(made.target));
        out["term_ptr"] = to_numpy(std::move(made.term_ptr));
        out["term"] = flat(made.term);
        out["level"] = to_numpy(std::move(made.level));
        out["rest"] = to_numpy(std::move(made.rest));
        out["shallow"] = to_numpy(std::move(made.shallow));
        return out;
      },
      "col_ptr"_a, "row"_a, "diag"_a, "columns"_a, "costs"_a,
      "Parts and terms of long columns; core/plan/columns/long_columns.hpp.");
}

}  // namespace gs
