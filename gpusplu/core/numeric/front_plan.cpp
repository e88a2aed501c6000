#include "numeric/front_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/elimination_tree.hpp"
#include "analysis/entry_places.hpp"

namespace gs {
namespace {

constexpr double kTasks = 512;  // approximate number of leaf tasks of a large problem

}  // namespace

FrontWork front_work(const Symbolic& symbolic, idx s) {
  const FrontShape front(symbolic, s);
  const bool one_triangle = symbolic.one_triangle();
  const double W = symbolic.is_interface(s) ? 0 : front.W, H = front.H, R = front.R;
  const double multiply_adds = W * (W * W / 3 + W * H + H * H) * (one_triangle ? 1 : 2);
  const TaskCosts& costs = symbolic.costs.tasks;
  return {costs.fronts + costs.entries * R * R * (one_triangle ? 0.5 : 1), costs.multiply_adds * multiply_adds};
}

FrontPlan::FrontPlan(const Symbolic& symbolic, PatternView A) : FrontPlan(symbolic) { place_entries(symbolic, A); }

FrontPlan::FrontPlan(const Symbolic& symbolic) {
  place_panels(symbolic);
  Children children(symbolic.super_parent);
  child_ptr = std::move(children.ptr), child = std::move(children.list);
  cut_tree(symbolic);
}

void FrontPlan::place_panels(const Symbolic& symbolic) {
  const idx nsuper = symbolic.nsuper();
  panel_ptr.resize(nsuper + 1);
  for (idx s = 0; s < nsuper; s++) {
    const FrontShape front(symbolic, s);
    const off size = off(front.R + (symbolic.one_triangle() ? 0 : front.H)) * front.W;
    if (size > std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("a front has more than 4294967295 entries: the fill of this matrix is too large");
    panel_ptr[s + 1] = panel_ptr[s] + size;
  }
}

void FrontPlan::place_entries(const Symbolic& symbolic, PatternView A) {
  if (A.nnz() > (off)std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the matrix has more than 4294967295 entries");
  EntryPlaces<idx> places(columns_of_fronts(symbolic, symbolic.one_triangle()), A);
  entry_ptr = places.count();
  const off total = entry_ptr.back();
  entry_source.resize(total), entry_target.resize(total);
  if (!symbolic.row_scale.empty()) entry_scale.resize(total);
  places.write([&](off to, idx s, off k, idx j, idx row, idx column) {
    const FrontShape front(symbolic, s);
    const off target = column < front.W ? row + off(column) * front.R
                                        : off(front.R) * front.W + (column - front.W) + off(row) * front.H;
    entry_source[to] = (std::uint32_t)k;
    entry_target[to] = (std::uint32_t)target;
    if (!entry_scale.empty()) entry_scale[to] = symbolic.row_scale[A.ind[k]] * symbolic.col_scale[symbolic.col_perm[j]];
  });
}

void FrontPlan::cut_tree(const Symbolic& symbolic) {
  const idx nsuper = symbolic.nsuper();
  std::vector<double> work(nsuper), subtree(nsuper);
  std::vector<idx> first(nsuper);  // first front of the subtree
  for (idx s = 0; s < nsuper; s++) {
    work[s] = front_work(symbolic, s).total();
    subtree[s] = work[s], first[s] = s;
    for (idx c = child_ptr[s]; c < child_ptr[s + 1]; c++) subtree[s] += subtree[child[c]];
    if (child_ptr[s] < child_ptr[s + 1]) first[s] = first[child[child_ptr[s]]];
    total_work += work[s];
  }

  // Visits the fronts above the cut in postorder, each after the leaf tasks among its children; front nsuper stands for
  // the parent of the roots.
  const double grain = std::max(symbolic.costs.threads.leaf, total_work / kTasks);
  std::vector<idx> task_of(nsuper, -1);  // of fronts above the cut
  for (idx s = 0; s <= nsuper; s++) {
    if (s < nsuper && subtree[s] <= grain) continue;
    const std::size_t first_leaf = tasks.size();
    double open = 0;  // work of the leaf task being collected; 0: none
    idx n_dependencies = 0;
    for (idx c = child_ptr[s]; c < child_ptr[s + 1]; c++) {
      const idx root = child[c];
      if (task_of[root] >= 0) {
        open = 0, n_dependencies++;
      } else if (open > 0 && open + subtree[root] <= grain) {
        tasks.back().last = root, tasks.back().work = open += subtree[root];
      } else {
        tasks.push_back({first[root], root, -1, 0, false, subtree[root]});
        open = subtree[root], n_dependencies++;
      }
    }
    if (s == nsuper) break;
    task_of[s] = (idx)tasks.size();
    for (std::size_t t = first_leaf; t < tasks.size(); t++) tasks[t].parent = task_of[s];
    for (idx c = child_ptr[s]; c < child_ptr[s + 1]; c++)
      if (const idx t = task_of[child[c]]; t >= 0) tasks[t].parent = task_of[s];
    tasks.push_back({s, s, -1, n_dependencies, work[s] >= symbolic.costs.threads.team, work[s]});
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
  return size(panel_ptr, entry_ptr, entry_source, entry_target, entry_scale, child_ptr, child, tasks, start_tasks,
              task_child_ptr, task_child, carry_ptr);
}

}  // namespace gs
