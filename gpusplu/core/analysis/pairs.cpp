
#include <algorithm>
#include <cmath>

#include "analysis/matching.hpp"
#include "analysis/symbolic.hpp"
#include "base/types.hpp"
#include "matrix/modulus.hpp"

namespace gs {
namespace {

constexpr double good_diagonal = 0.01;  // relative to the scaled entries off the diagonal: accepted as a pivot

template <class T> std::vector<double> diagonal_moduli(PatternView A, const T* values) {
  std::vector<double> diagonal(A.n, 0.0);
  for (idx j = 0; j < A.n; j++)
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++)
      if (A.ind[p] == j) diagonal[j] = modulus(values[p]);
  return diagonal;
}

// Whether |a_ij|^2 is never much more than |a_ii a_jj|; no scaling changes that.
template <class T> bool is_diagonal_good(PatternView A, const T* values, const std::vector<double>& diagonal) {
  for (idx j = 0; j < A.n; j++) {
    if (!(diagonal[j] > 0)) return false;
    const double root = std::sqrt(diagonal[j]);
    for (off p = A.ptr[j]; p < A.ptr[j + 1]; p++) {
      const idx i = A.ind[p];
      if (i > j && std::sqrt(good_diagonal) * modulus(values[p]) > root * std::sqrt(diagonal[i])) return false;
    }
  }
  return true;
}

template <class T> double power_of_two(double exponent) {
  const int most = largest_scale_exponent<T>;
  return std::ldexp(1.0, std::clamp((int)std::lround(exponent), -most, most));
}

// Cuts a cycle c_0 -> c_1 -> ... into pairs of neighbours; of odd ones the column with the best diagonal is left over.
void pair_cycle(std::vector<idx>& cycle, const std::vector<double>& diagonal, std::vector<idx>& partner) {
  if (cycle.size() % 2) {
    const auto best =
        std::max_element(cycle.begin(), cycle.end(), [&](idx i, idx j) { return diagonal[i] < diagonal[j]; });
    std::rotate(cycle.begin(), best, cycle.end());
  }
  for (std::size_t k = cycle.size() % 2; k < cycle.size(); k += 2) {
    const idx i = cycle[k], j = cycle[k + 1];
    if (std::min(diagonal[i], diagonal[j]) >= good_diagonal) continue;
    partner[i] = j, partner[j] = i;
  }
}

// `diagonal` is scaled.
std::vector<idx> pairs_of(const std::vector<idx>& row_of_col, const std::vector<double>& diagonal) {
  const idx n = (idx)row_of_col.size();
  std::vector<idx> partner(n), cycle;
  std::vector<char> seen(n, 0);
  for (idx j = 0; j < n; j++) partner[j] = j;
  for (idx j = 0; j < n; j++) {
    cycle.clear();
    for (idx i = j; !seen[i]; i = row_of_col[i]) seen[i] = 1, cycle.push_back(i);
    if (cycle.size() > 1) pair_cycle(cycle, diagonal, partner);
  }
  return partner;
}

// Scales and pairs of a matching of all columns.
void take_pairs(const Matching& matching, std::vector<double>& diagonal, SymmetricMatching& out) {
  for (std::size_t j = 0; j < diagonal.size(); j++) {
    const int twice = std::ilogb(matching.row_scale[j]) + std::ilogb(matching.col_scale[j]);
    out.scale[j] = std::ldexp(1.0, twice >> 1);
    diagonal[j] = diagonal[j] * out.scale[j] * out.scale[j];
  }
  out.partner = pairs_of(matching.row_of_col, diagonal);
}

}  // namespace

template <class T> SymmetricMatching match_symmetric(PatternView A, const T* values, std::optional<Matching>* found) {
  SymmetricMatching out;
  std::vector<double> diagonal = diagonal_moduli(A, values);
  out.structural_rank = A.n;
  out.scale.resize(A.n);
  if (is_diagonal_good(A, values, diagonal)) {
    for (idx j = 0; j < A.n; j++) out.scale[j] = power_of_two<T>(-0.5 * std::log2(diagonal[j]));
    return out;
  }
  Matching matching = max_product_matching(A, values);
  out.structural_rank = matching.structural_rank;
  if (out.structural_rank == A.n) take_pairs(matching, diagonal, out);
  if (found) *found = std::move(matching);
  return out;
}

PairedGraph merge_pairs(PatternView graph, const std::vector<idx>& partner) {
  PairedGraph out;
  std::vector<idx> vertex(graph.n);
  for (idx j = 0; j < graph.n; j++) {
    if (partner[j] < j) {
      vertex[j] = vertex[partner[j]];
      continue;
    }
    vertex[j] = (idx)out.first.size();
    out.first.push_back(j);
  }
  Pattern& merged = out.graph;
  merged.n = (idx)out.first.size();
  merged.ptr.push_back(0);
  std::vector<idx> last_seen(merged.n, -1);
  for (idx v = 0; v < merged.n; v++) {
    const off begin = (off)merged.ind.size();
    last_seen[v] = v;
    const auto add = [&](idx j) {
      for (off p = graph.ptr[j]; p < graph.ptr[j + 1]; p++) {
        const idx u = vertex[graph.ind[p]];
        if (std::exchange(last_seen[u], v) != v) merged.ind.push_back(u);
      }
    };
    const idx j = out.first[v];
    add(j);
    if (partner[j] != j) add(partner[j]);
    std::sort(merged.ind.begin() + begin, merged.ind.end());
    merged.ptr.push_back((off)merged.ind.size());
  }
  return out;
}

Pattern split_pairs(const PairedGraph& paired, const std::vector<idx>& partner) {
  const PatternView merged = paired.graph.view();
  const idx n = (idx)partner.size();
  std::vector<idx> vertex(n);
  for (idx v = 0; v < merged.n; v++) vertex[paired.first[v]] = vertex[partner[paired.first[v]]] = v;
  Pattern out;
  out.n = n;
  out.ptr.push_back(0);
  for (idx j = 0; j < n; j++) {
    const off begin = (off)out.ind.size();
    const auto add = [&](idx i) {
      if (i != j) out.ind.push_back(i);
    };
    const auto add_vertex = [&](idx first) {
      add(first);
      if (partner[first] != first) add(partner[first]);
    };
    add_vertex(paired.first[vertex[j]]);
    for (off p = merged.ptr[vertex[j]]; p < merged.ptr[vertex[j] + 1]; p++) add_vertex(paired.first[merged.ind[p]]);
    std::sort(out.ind.begin() + begin, out.ind.end());
    out.ptr.push_back((off)out.ind.size());
  }
  return out;
}

std::vector<idx> split_order(const PairedGraph& paired, const std::vector<idx>& partner,
                             const std::vector<idx>& order) {
  std::vector<idx> out;
  out.reserve(partner.size());
  for (const idx v : order) {
    const idx j = paired.first[v];
    out.push_back(j);
    if (partner[j] != j) out.push_back(partner[j]);
  }
  return out;
}

#define GS_INSTANTIATE(T) template SymmetricMatching match_symmetric(PatternView, const T*, std::optional<Matching>*);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
