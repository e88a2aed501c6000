#include "numeric/front_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/children.hpp"
#include "base/threads.hpp"

namespace gs {
namespace {

constexpr double kLeafTask = 20e3;       // smallest leaf task worth its bookkeeping [ns]
constexpr double kTasks = 512;           // leaf tasks of a large problem, about
constexpr double kTeamFront = 400e3;     // smallest front worth the whole team [ns]
constexpr double kTeamShare = 1.0 / 96;  // and its share of the total

// Time of one front on one thread: overhead, entries moved, arithmetic [ns].
double front_work(const FrontShape& front, bool cholesky) {
  const double W = front.W, H = front.H, R = front.R;
  const double multiply_adds = W * (W * W / 3 + W * H + H * H) * (cholesky ? 1 : 2);
  return 150 + 0.7 * R * R * (cholesky ? 0.5 : 1) + multiply_adds / 20;
}

// Exponents of powers of two.
std::vector<std::int16_t> exponents(const std::vector<double>& scale) {
  std::vector<std::int16_t> e(scale.size());
  for (std::size_t i = 0; i < scale.size(); i++) e[i] = (std::int16_t)std::ilogb(scale[i]);
  return e;
}

// Everything place_entries needs to classify an entry.
struct Placement {
  const Symbolic& symbolic;
  PatternView A;
  std::vector<idx> row_inverse, super_of;
  std::vector<std::int16_t> row_exponent, col_exponent;
  int lowest_exponent = 0;

  Placement(const Symbolic& symbolic, PatternView A) : symbolic(symbolic), A(A), row_inverse(A.n), super_of(A.n) {
    for (idx i = 0; i < A.n; i++) row_inverse[symbolic.row_perm[i]] = i;
    for (idx s = 0; s < symbolic.nsuper(); s++)
      std::fill(super_of.begin() + symbolic.super_ptr[s], super_of.begin() + symbolic.super_ptr[s + 1], s);
  }

  // Owner of the entry in permuted row i and column j, or -1 if it is not used.
  idx owner(idx i, idx j) const { return i >= j ? super_of[j] : symbolic.cholesky ? -1 : super_of[i]; }
};

// Calls visit(k, i, j) for the entries of permuted columns [begin, end).
template <class Visit> void for_entries(const Placement& place, idx begin, idx end, Visit&& visit) {
  for (idx j = begin; j < end; j++) {
    const idx column = place.symbolic.col_perm[j];
    for (off k = place.A.ptr[column]; k < place.A.ptr[column + 1]; k++) visit(k, place.row_inverse[place.A.ind[k]], j);
  }
}

// A range of whole fronts and what is needed to write its entries. Parts do not depend on the team, and their counts
// come first, so neither does the order of the entries.
struct Part {
  idx begin = 0, end = 0;   // permuted columns
  std::vector<off> next;    // where each front's entries continue
  std::vector<off> cursor;  // place in row_ind of the last column met among the rows of each front; -1: none yet
  std::vector<idx> local;   // row -> place in the front that is being written
};

// Columns ascend, so a column is found among the rows of an earlier front by moving that front's cursor on.
void write_entries(FrontPlan& plan, const Placement& place, Part& part) {
  const Symbolic& symbolic = place.symbolic;
  const idx* rows = symbolic.row_ind.data();
  idx mapped = -1;
  for_entries(place, part.begin, part.end, [&](off k, idx i, idx j) {
    const idx s = place.owner(i, j);
    if (s < 0) return;
    const FrontShape front(symbolic, s);
    const idx start = symbolic.super_ptr[s];
    off target;
    if (place.super_of[j] == s) {  // L panel, the diagonal block included
      if (mapped != s) {
        mapped = s;
        for (idx r = 0; r < front.H; r++) part.local[rows[symbolic.row_ptr[s] + r]] = front.W + r;
      }
      target = (i < symbolic.super_ptr[s + 1] ? i - start : part.local[i]) + off(j - start) * front.R;
    } else {
      off& c = part.cursor[s];
      if (c < 0) c = std::lower_bound(rows + symbolic.row_ptr[s], rows + symbolic.row_ptr[s + 1], j) - rows;
      while (rows[c] < j) c++;
      target = off(front.R) * front.W + (c - symbolic.row_ptr[s]) + off(i - start) * front.H;
    }
    const off p = part.next[s]++;
    plan.entry_source[p] = (std::uint32_t)k;
    plan.entry_target[p] = (std::uint32_t)target;
    if (!plan.entry_scale.empty())
      plan.entry_scale[p] = (std::uint16_t)(place.row_exponent[symbolic.row_perm[i]] +
                                            place.col_exponent[symbolic.col_perm[j]] - place.lowest_exponent);
  });
}

// Cuts the columns at fronts into parts with about as many entries each.
std::vector<Part> divide(const Symbolic& symbolic, PatternView A, int n_parts) {
  const idx nsuper = symbolic.nsuper();
  std::vector<Part> parts(n_parts);
  off entries = 0;
  int p = 0;
  for (idx s = 0; s < nsuper; s++) {
    for (idx j = symbolic.super_ptr[s]; j < symbolic.super_ptr[s + 1]; j++)
      entries += A.ptr[symbolic.col_perm[j] + 1] - A.ptr[symbolic.col_perm[j]];
    while (p < n_parts && entries * n_parts >= A.nnz() * (p + 1)) parts[p++].end = symbolic.super_ptr[s + 1];
  }
  while (p < n_parts) parts[p++].end = A.n;
  for (p = 0; p < n_parts; p++) {
    if (p) parts[p].begin = parts[p - 1].end;
    parts[p].next.resize(nsuper), parts[p].cursor.assign(nsuper, -1), parts[p].local.resize(A.n);
  }
  return parts;
}

}  // namespace

FrontPlan::FrontPlan(const Symbolic& symbolic, PatternView A) {
  place_panels(symbolic);
  place_entries(symbolic, A);
  list_children(symbolic);
  cut_tree(symbolic);
}

void FrontPlan::place_panels(const Symbolic& symbolic) {
  const idx nsuper = symbolic.nsuper();
  panel_ptr.resize(nsuper + 1);
  for (idx s = 0; s < nsuper; s++) {
    const FrontShape front(symbolic, s);
    const off size = off(front.R + (symbolic.cholesky ? 0 : front.H)) * front.W;
    if (size > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("a front has more than 4294967295 entries: the fill of this matrix is too large");
    panel_ptr[s + 1] = panel_ptr[s] + size;
  }
}

void FrontPlan::place_entries(const Symbolic& symbolic, PatternView A) {
  if (A.nnz() > (off)std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the matrix has more than 4294967295 entries");
  const idx nsuper = symbolic.nsuper();
  Placement place(symbolic, A);
  if (!symbolic.row_scale.empty()) {
    place.row_exponent = exponents(symbolic.row_scale), place.col_exponent = exponents(symbolic.col_scale);
    const auto [row_low, row_high] = std::minmax_element(place.row_exponent.begin(), place.row_exponent.end());
    const auto [col_low, col_high] = std::minmax_element(place.col_exponent.begin(), place.col_exponent.end());
    if (A.n) {
      place.lowest_exponent = *row_low + *col_low;
      for (int e = place.lowest_exponent; e <= *row_high + *col_high; e++) scale_table.push_back(std::ldexp(1.0, e));
    }
  }

  const int n_parts = (int)std::min<off>(std::min(num_threads(), 16), 1 + A.nnz() / 50000);
  std::vector<Part> parts = divide(symbolic, A, n_parts);
  run_team(n_parts, [&](const Team& team) {
    for (int p = team.rank; p < n_parts; p += team.size)
      for_entries(place, parts[p].begin, parts[p].end, [&](off, idx i, idx j) {
        if (const idx s = place.owner(i, j); s >= 0) parts[p].next[s]++;
      });
  });
  entry_ptr.resize(nsuper + 1);
  off total = 0;
  for (idx s = 0; s < nsuper; s++) {
    entry_ptr[s] = total;
    for (Part& part : parts) total += std::exchange(part.next[s], total);
  }
  entry_ptr[nsuper] = total;
  entry_source.resize(total), entry_target.resize(total);
  if (!scale_table.empty()) entry_scale.resize(total);
  run_team(n_parts, [&](const Team& team) {
    for (int p = team.rank; p < n_parts; p += team.size) write_entries(*this, place, parts[p]);
  });
}

void FrontPlan::list_children(const Symbolic& symbolic) {
  Children children(symbolic.super_parent);
  child_ptr = std::move(children.ptr), child = std::move(children.list);
}

void FrontPlan::cut_tree(const Symbolic& symbolic) {
  const idx nsuper = symbolic.nsuper();
  std::vector<double> work(nsuper), subtree(nsuper);
  std::vector<idx> first(nsuper);  // first front of the subtree
  for (idx s = 0; s < nsuper; s++) {
    work[s] = front_work(FrontShape(symbolic, s), symbolic.cholesky);
    subtree[s] = work[s], first[s] = s;
    for (idx c = child_ptr[s]; c < child_ptr[s + 1]; c++) subtree[s] += subtree[child[c]];
    if (child_ptr[s] < child_ptr[s + 1]) first[s] = first[child[child_ptr[s]]];
    total_work += work[s];
  }

  // Walk the fronts above the cut in postorder, each after the leaf tasks among its children; front nsuper stands for
  // the parent of the roots.
  const double grain = std::max(kLeafTask, total_work / kTasks);
  std::vector<idx> task_of(nsuper, -1);  // of fronts above the cut
  for (idx s = 0; s <= nsuper; s++) {
    if (s < nsuper && subtree[s] <= grain) continue;
    const std::size_t first_leaf = tasks.size();
    double open = 0;  // work of the leaf task being collected; 0: none
    idx n_dependencies = 0;
    bool whole_team = s < nsuper && work[s] >= std::max(kTeamFront, total_work * kTeamShare);
    for (idx c = child_ptr[s]; c < child_ptr[s + 1]; c++) {
      const idx root = child[c];
      if (task_of[root] >= 0) {
        open = 0, n_dependencies++;
        whole_team = whole_team || tasks[task_of[root]].whole_team;
      } else if (open > 0 && open + subtree[root] <= grain) {
        tasks.back().last = root, open += subtree[root];
      } else {
        tasks.push_back({first[root], root, -1, 0, false});
        open = subtree[root], n_dependencies++;
      }
    }
    if (s == nsuper) break;
    task_of[s] = (idx)tasks.size();
    for (std::size_t t = first_leaf; t < tasks.size(); t++) tasks[t].parent = task_of[s];
    for (idx c = child_ptr[s]; c < child_ptr[s + 1]; c++)
      if (const idx t = task_of[child[c]]; t >= 0) tasks[t].parent = task_of[s];
    tasks.push_back({s, s, -1, n_dependencies, whole_team && s < nsuper});
  }
  const idx n_tasks = (idx)tasks.size();
  for (idx t = 0; t < n_tasks; t++)
    if (tasks[t].n_dependencies == 0) start_tasks.push_back(t);

  std::vector<idx> task_parent(n_tasks);
  for (idx t = 0; t < n_tasks; t++) task_parent[t] = tasks[t].parent;
  Children children(task_parent);
  children.drop_roots();
  task_child_ptr = std::move(children.ptr), task_child = std::move(children.list);

  carry_ptr.assign(nsuper, -1);
  for (idx s = 0; s < nsuper; s++)
    if (const idx parent = symbolic.super_parent[s]; parent >= 0 && task_of[parent] >= 0) {
      carry_ptr[s] = carry_size;
      carry_size += symbolic.row_ptr[s + 1] - symbolic.row_ptr[s];
    }
}

off FrontPlan::bytes() const {
  auto size = [](const auto&... v) { return (off(v.size() * sizeof(v[0])) + ...); };
  return size(panel_ptr, entry_ptr, entry_source, entry_target, entry_scale, scale_table, child_ptr, child, tasks,
              start_tasks, task_child_ptr, task_child, carry_ptr);
}

}  // namespace gs
