// Which front every entry of A goes to, and where in it: entry (i, j) belongs to the front that owns plan position
// min(i, j). Two passes over the plan's columns, in parallel over ranges of fronts. An entry whose column belongs to
// its front finds its row in a map of that front; the column of any other is found by moving a cursor through the rows
// below of its front, because columns ascend. Cost: O(nnz + structure).
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/huge_pages.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/team.hpp"

namespace gs::gpu {
namespace {

// A range of fronts whose columns one thread goes through.
struct Part {
  idx begin = 0, end = 0;
  std::vector<off> next;           // where each front's entries continue
  std::vector<idx> cursor;         // 1 + place among the rows below of the last column met; 0: none yet
  RawVector<std::uint16_t> local;  // plan position -> row of the front at hand
};

class Placement {
 public:
  Placement(PatternView A, Plan& plan) : A_(A), plan_(plan), row_position_(plan.n), front_of_(plan.n) {
    over_range(plan.n, plan.n, [&](idx begin, idx end) {
      for (idx k = begin; k < end; k++) row_position_[plan.row_perm[k]] = k;
    });
    over_range(plan.nf, plan.n, [&](idx begin, idx end) {
      for (idx f = begin; f < end; f++) std::fill_n(front_of_.begin() + plan.first[f], plan.width[f], f);
    });
  }

  void count(Part& part) const {
    part.next.assign(plan_.nf, 0);
    for_entries(
        part, [](idx) {}, [&](idx f, off, idx, idx) { part.next[f]++; });
  }

  void write(Part& part) {
    part.cursor.assign(plan_.nf, 0), part.local.resize(plan_.n);
    const auto map_rows = [&](idx f) {
      std::uint16_t row = 0;
      for (idx k = 0; k < plan_.width[f]; k++) part.local[plan_.first[f] + k] = row++;
      for (off p = plan_.below_ptr[f]; p < plan_.below_ptr[f + 1]; p++) part.local[plan_.below[p]] = row++;
    };
    for_entries(part, map_rows, [&](idx f, off k, idx i, idx j) {
      const off to = part.next[f]++;
      const bool own = j < plan_.first[f] + plan_.width[f];
      const std::uint32_t row = own ? part.local[i] : (std::uint32_t)(i - plan_.first[f]);
      const std::uint32_t column = own ? (std::uint32_t)(j - plan_.first[f]) : column_below(part, f, j);
      plan_.entry_source[to] = (idx)k;
      plan_.entry_place[to] = row | column << 16;
      if (!plan_.entry_scale.empty())
        plan_.entry_scale[to] = plan_.row_scale[A_.ind[k]] * plan_.col_scale[plan_.col_perm[j]];
    });
  }

 private:
  // visit(f, k, i, j): entry k of A, which is (i, j) in the plan, goes to front f. enter(f) before f's own columns.
  template <class Enter, class Visit> void for_entries(const Part& part, Enter&& enter, Visit&& visit) const {
    for (idx own = part.begin; own < part.end; own++) {
      const idx first = plan_.first[own];
      enter(own);
      for (idx j = first; j < first + plan_.width[own]; j++) {
        const idx column = plan_.col_perm[j];
        for (off k = A_.ptr[column]; k < A_.ptr[column + 1]; k++) {
          const idx i = row_position_[A_.ind[k]];
          if (plan_.cholesky && i < j) continue;
          visit(i >= first ? own : front_of_[i], k, i, j);
        }
      }
    }
  }

  std::uint32_t column_below(Part& part, idx f, idx j) const {
    const idx* rows = plan_.below.data() + plan_.below_ptr[f];
    idx& at = part.cursor[f];
    if (at == 0) at = (idx)(std::lower_bound(rows, rows + plan_.height(f), j) - rows) + 1;
    while (rows[at - 1] < j) at++;
    return (std::uint32_t)(plan_.width[f] + at - 1);
  }

  const PatternView A_;
  Plan& plan_;
  RawVector<idx> row_position_, front_of_;
};

// Fronts cut into parts with about equal numbers of columns.
std::vector<Part> divide(const Plan& plan, int n_parts) {
  std::vector<Part> parts(n_parts);
  for (int p = 1; p < n_parts; p++) {
    const idx position = (idx)((off)plan.n * p / n_parts);
    parts[p].begin = (idx)(std::lower_bound(plan.first.begin(), plan.first.end(), position) - plan.first.begin());
    parts[p - 1].end = parts[p].begin;
  }
  parts.back().end = plan.nf;
  return parts;
}

}  // namespace

void place_entries(PatternView A, Plan& plan) {
  if (A.nnz() > std::numeric_limits<idx>::max()) throw std::length_error("the matrix has more than 2147483647 entries");
  Placement placement(A, plan);
  const int n_parts = std::min({threads_for(A.nnz()), num_threads(), 16});
  std::vector<Part> parts = divide(plan, n_parts);
  const auto for_parts = [&](auto&& body) { over_tasks(n_parts, n_parts, [&](idx p) { body(parts[p]); }); };
  for_parts([&](Part& part) { placement.count(part); });
  plan.entry_ptr.resize((std::size_t)plan.nf + 1);
  over_range(plan.nf, (off)plan.nf * n_parts, [&](idx begin, idx end) {
    for (idx f = begin; f < end; f++)
      for (const Part& part : parts) plan.entry_ptr[f + 1] += part.next[f];
  });
  for (idx f = 0; f < plan.nf; f++) plan.entry_ptr[f + 1] += plan.entry_ptr[f];
  over_range(plan.nf, (off)plan.nf * n_parts, [&](idx begin, idx end) {
    for (idx f = begin; f < end; f++) {
      off at = plan.entry_ptr[f];
      for (Part& part : parts) at += std::exchange(part.next[f], at);
    }
  });
  const off total = plan.entry_ptr[plan.nf];
  plan.entry_source.resize(total), plan.entry_place.resize(total);
  plan.entry_scale.resize(plan.row_scale.empty() ? 0 : total);
  prefer_huge_pages(plan.entry_source), prefer_huge_pages(plan.entry_place), prefer_huge_pages(plan.entry_scale);
  for_parts([&](Part& part) { placement.write(part); });
}

}  // namespace gs::gpu
