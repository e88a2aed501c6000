// Subtrees for pipelines: phases by dynamic programming over bounds of the time that a subtree takes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/elimination_tree.hpp"
#include "plan/columns/glu_work.hpp"

namespace gs::gpu {
namespace {

constexpr double kMostUpdates = 2e7;  // stored flat, 16 bytes each
constexpr double kPipelines = 1000;   // that run at a time

// The elimination tree of the pattern of L + U and its transpose: every column that updates a column, or writes what it
// reads, is below it.
std::vector<idx> elimination_tree_of(const ColumnPlan& plan) {
  GrowingTree tree(plan.n);
  for (idx k = 0; k < plan.n; k++) {
    for (off p = plan.col_ptr[k]; p < plan.diag[k]; p++) tree.add_entry(k, plan.row[p]);
    for (off p = plan.row_ptr[k]; plan.col[p] < k; p++) tree.add_entry(k, plan.col[p]);
  }
  return std::move(tree.parent);
}

struct Tree {
  const GluWork& work;
  std::vector<idx> parent;
  std::vector<double> subtree;  // time of all columns of a subtree one after another
  std::vector<double> updates;  // and their multiply-adds

  Tree(const ColumnPlan& plan, const GluWork& work_)
      : work(work_), parent(elimination_tree_of(plan)), subtree(work.column), updates(plan.n) {
    for (idx j = 0; j < plan.n; j++) {
      updates[j] += (double)work.below[j] * (double)work.right[j];
      if (parent[j] < 0) continue;
      subtree[parent[j]] += subtree[j];
      updates[parent[j]] += updates[j];
    }
  }
  idx n() const { return (idx)parent.size(); }
  // The root of the largest subtree within `bound` that a column is in, -1: of none.
  std::vector<idx> roots(double bound) const {
    std::vector<idx> root(n(), -1);
    for (idx j = n() - 1; j >= 0; j--)
      if (subtree[j] <= bound) root[j] = parent[j] >= 0 && root[parent[j]] >= 0 ? root[parent[j]] : j;
    return root;
  }
  double updates_within(double bound) const {
    double sum = 0;
    for (idx j = 0; j < n(); j++)
      if (subtree[j] <= bound && (parent[j] < 0 || subtree[parent[j]] > bound)) sum += updates[j];
    return sum;
  }
  // Of a phase: subtrees within `bound` without those within `done`, a block each. Infinite if one needs more slots
  // than there are.
  double phase(double done, double bound, const std::vector<idx>& root, off capacity,
               std::vector<double>& times) const {
    times.assign(n(), 0);
    std::vector<off> slots(n());
    double longest = 0, sum = 0;
    off most = 0;
    for (idx j = 0; j < n(); j++)
      if (subtree[j] > done && subtree[j] <= bound) {
        sum += work.column[j];
        longest = std::max(longest, times[root[j]] += work.column[j]);
        most = std::max(most, slots[root[j]] += work.slots(j));
      }
    return most > capacity ? std::numeric_limits<double>::infinity() : work.costs.pipeline + longest + sum / kPipelines;
  }
};

// Bounds worth considering: from a few columns up to the whole, each some times the one before.
std::vector<double> bounds_of(const Tree& tree) {
  constexpr double least = 2, factor = 1.7;
  const double all = tree.n() ? *std::max_element(tree.subtree.begin(), tree.subtree.end()) : 0;
  std::vector<double> bounds = {0};
  for (double bound = least; bound < all; bound *= factor) bounds.push_back(bound);
  bounds.push_back(all);
  while (bounds.size() > 1 && tree.updates_within(bounds.back()) > kMostUpdates) bounds.pop_back();
  return bounds;
}

// Numbers the chains of the phases with these bounds, the longest of a phase first.
void number_chains(const Tree& tree, const std::vector<double>& bounds, GluForest& out) {
  std::vector<double> times;
  for (std::size_t p = 1; p < bounds.size(); p++) {
    const std::vector<idx> root = tree.roots(bounds[p]);
    tree.phase(bounds[p - 1], bounds[p], root, 0, times);
    std::vector<idx> found;
    for (idx j = 0; j < tree.n(); j++)
      if (times[j] > 0) found.push_back(j);
    std::stable_sort(found.begin(), found.end(), [&](idx a, idx b) { return times[a] > times[b]; });
    std::vector<idx> number(tree.n(), -1);
    for (std::size_t c = 0; c < found.size(); c++) number[found[c]] = out.phase_ptr.back() + (idx)c;
    for (idx j = 0; j < tree.n(); j++)
      if (tree.subtree[j] > bounds[p - 1] && tree.subtree[j] <= bounds[p]) out.chain[j] = number[root[j]];
    out.phase_ptr.push_back(out.phase_ptr.back() + (idx)found.size());
  }
}

}  // namespace

GluForest choose_forest(const ColumnPlan& plan, const GluWork& work, off capacity, bool all) {
  GluForest out{std::vector<idx>(plan.n, -1), {0}, 0};
  if (capacity == 0) return out;
  const Tree tree(plan, work);
  const std::vector<double> bounds = bounds_of(tree);
  const std::size_t m = bounds.size();
  std::vector<double> best(m, std::numeric_limits<double>::infinity()), times;
  std::vector<std::size_t> from(m, 0);
  best[0] = 0;
  std::size_t chosen = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < m; i++) {
    const std::vector<idx> root = tree.roots(bounds[i]);
    for (std::size_t a = 0; a < i; a++) {
      const double time = best[a] + tree.phase(bounds[a], bounds[i], root, capacity, times);
      if (time < best[i]) best[i] = time, from[i] = a;
    }
    std::vector<bool> left(plan.n);
    for (idx j = 0; j < plan.n; j++) left[j] = tree.subtree[j] > bounds[i];
    const double total = best[i] + (all ? 0 : choose_levels(plan, work, left, capacity).microseconds);
    if (std::isfinite(best[i]) && (total < least || all)) least = total, chosen = i;
  }
  std::vector<double> path;
  for (std::size_t i = chosen; i > 0; i = from[i]) path.push_back(bounds[i]);
  path.push_back(0);
  number_chains(tree, {path.rbegin(), path.rend()}, out);
  out.microseconds = best[chosen];
  return out;
}

}  // namespace gs::gpu
