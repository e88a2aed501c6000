// Heavy edge matching and contraction: Karypis, Kumar, SIAM J. Sci. Comput. 20 (1998), sections 3.1 and 5.1; the
// pairing of vertices with a common neighbour is from LaSalle, Karypis et al., IPDPS 2015 (two-hop matching).
#include "analysis/dissection/coarsen.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "analysis/dissection/tasks.hpp"
#include "base/operation.hpp"

namespace gs::nd {
namespace {

constexpr idx kWindow = 1024;   // vertices are visited in random order within windows: keeps locality of the numbering
constexpr off kRange = 100000;  // entries that are matched by themselves: smaller ranges cost up to 10 % fill
constexpr off kRows = 25000;    // entries that are contracted by one task
constexpr off kMostRanges = 16;
constexpr double kHeaviest = 1.5;  // a cluster weighs at most this many average vertices of the coarsest graph
constexpr double kStalled = 0.95;  // a coarse graph larger than this part of the finer one ends coarsening

// Clusters as lists: leader -> next -> ... -> -1.
struct Clusters {
  idx* leader;  // of each vertex; -1: free
  idx* next;
  idx* weight;  // at leaders
  idx* number;  // of each vertex's cluster in the coarse graph
};

// A range of vertices that one thread works on. The ranges depend on the graph only.
struct Range {
  idx begin, end;
  std::vector<idx> single;   // vertices that found no partner in the range
  std::vector<idx> hopeful;  // of these, those with a free neighbour beyond it
  idx first = 0, count = 0;  // numbers of the clusters with leaders in the range
  off at = 0, size = 0;      // where their rows are written: place, and space before, entries after contraction
};

std::vector<Range> ranges(const Graph& g, off entries) {
  const off count = std::clamp<off>(g.entries() / entries, 1, kMostRanges);
  std::vector<Range> out(count);
  for (off i = 0; i < count; i++) out[i].begin = (idx)(g.n * i / count), out[i].end = (idx)(g.n * (i + 1) / count);
  return out;
}

// begin .. end-1, shuffled within windows.
void visiting_order(idx begin, idx end, idx* order, Random& random) {
  for (; begin < end; begin += kWindow, order += kWindow) {
    const idx size = std::min(kWindow, end - begin);
    for (idx i = 0; i < size; i++) {
      const idx k = random.below(i + 1);
      order[i] = order[k];
      order[k] = begin + i;
    }
  }
}

// The free neighbour in the range over the heaviest edge, of those the lightest; without unpredictable branches.
template <bool weighted> idx heaviest_free(const Graph& g, const Clusters& c, const Range& range, idx v, idx limit) {
  idx best = -1;
  std::int64_t best_key = INT64_MIN;
  for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
    const idx u = g.adj[p], w = g.weight[u];
    const bool inside = (std::uint32_t)(u - range.begin) < (std::uint32_t)(range.end - range.begin);
    const bool fits = inside && (c.leader[u] < 0) & (w <= limit);
    const std::int64_t key = fits ? ((std::int64_t)(weighted ? g.edge_weight[p] : 1) << 32) - w : INT64_MIN;
    best = key > best_key ? u : best;
    best_key = key > best_key ? key : best_key;
  }
  return best;
}

// The first free neighbour in the range from a random start.
idx any_free(const Graph& g, const Clusters& c, const Range& range, idx v, idx limit, Random& random) {
  const off begin = g.ptr[v], end = g.ptr[v + 1];
  if (begin == end) return -1;
  const off start = begin + random.below(end - begin);
  auto fits = [&](idx u) { return u >= range.begin && u < range.end && c.leader[u] < 0 && g.weight[u] <= limit; };
  for (off p = start; p < end; p++)
    if (fits(g.adj[p])) return g.adj[p];
  for (off p = begin; p < start; p++)
    if (fits(g.adj[p])) return g.adj[p];
  return -1;
}

// Pairs v with a free neighbour in the range, if there is one.
template <bool weighted>
bool match(const Graph& g, Clusters& c, const Range& range, idx v, idx heaviest, Random& random) {
  const idx limit = heaviest - g.weight[v];
  const idx partner = weighted ? heaviest_free<true>(g, c, range, v, limit) : any_free(g, c, range, v, limit, random);
  if (partner < 0) return false;
  c.leader[v] = c.leader[partner] = v;
  c.next[v] = partner, c.next[partner] = -1;
  c.weight[v] = g.weight[v] + g.weight[partner];
  return true;
}

template <bool weighted>
void match_range(Workspace& ws, const Graph& g, Clusters& c, Range& range, idx heaviest, Random random) {
  ArenaScope scope(ws.arena);
  const idx size = range.end - range.begin;
  idx* order = ws.arena.get<idx>(size);
  visiting_order(range.begin, range.end, order, random);
  std::fill(c.leader + range.begin, c.leader + range.end, -1);
  for (idx i = 0; i < size; i++)
    if (c.leader[order[i]] < 0 && !match<weighted>(g, c, range, order[i], heaviest, random))
      range.single.push_back(order[i]);
}

// The remaining vertices after those without a partner in their range have searched beyond it. Which of them have a
// free neighbour at all is determined in parallel; there are fewer and fewer.
template <bool weighted> std::vector<idx> match_across(Workspace& ws, const Graph& g, Clusters& c,
                                                       std::vector<Range>& parts, idx heaviest, Random& random) {
  if (parts.size() == 1) return std::move(parts[0].single);
  const Range everywhere{0, g.n, {}, {}};
  for_each(ws, (int)parts.size(), true, [&](int i, Workspace&) {
    for (idx v : parts[i].single)
      if (heaviest_free<weighted>(g, c, everywhere, v, heaviest - g.weight[v]) >= 0) parts[i].hopeful.push_back(v);
  });
  for (const Range& range : parts)
    for (idx v : range.hopeful)
      if (c.leader[v] < 0) match<weighted>(g, c, everywhere, v, heaviest, random);
  std::vector<idx> single;
  for (const Range& range : parts)
    std::copy_if(range.single.begin(), range.single.end(), std::back_inserter(single),
                 [&](idx v) { return c.leader[v] < 0; });
  return single;
}

// The candidates of a vertex without a partner: the neighbouring pair over the heaviest edge, and the neighbour over
// the heaviest edge.
struct Outlook {
  idx pair = -1, hub = -1;
};

bool takes_third(const Clusters& c, idx pair, idx weight, idx heaviest) {
  return c.weight[pair] + weight <= heaviest && c.next[pair] >= 0 && c.next[c.next[pair]] < 0;
}

template <bool weighted> Outlook inspect_neighbours(const Graph& g, const Clusters& c, idx v, idx heaviest) {
  Outlook seen;
  idx pair_edge = 0, hub_edge = 0;
  for (off p = g.ptr[v]; p < g.ptr[v + 1]; p++) {
    const idx u = g.adj[p], edge = weighted ? g.edge_weight[p] : 1, leader = c.leader[u];
    if (edge > hub_edge) seen.hub = u, hub_edge = edge;
    if (edge > pair_edge && leader >= 0 && takes_third(c, leader, g.weight[v], heaviest))
      seen.pair = leader, pair_edge = edge;
  }
  return seen;
}

// Vertices without a partner join the neighbouring pair over the heaviest edge, or pair up over their heaviest
// neighbour (the leaves of a star would otherwise stay single at every level). In large graphs all vertices search in
// parallel, and search again when another thread took the candidate first.
template <bool weighted> void match_leftovers(Workspace& ws, const Graph& g, Clusters& c,
                                              const std::vector<idx>& single, idx heaviest, int n_parts) {
  const off count = (off)single.size();
  std::vector<Outlook> outlook(n_parts > 1 ? count : 0);
  if (n_parts > 1)
    for_each(ws, n_parts, true, [&](int i, Workspace&) {
      for (off k = count * i / n_parts; k < count * (i + 1) / n_parts; k++)
        outlook[k] = inspect_neighbours<weighted>(g, c, single[k], heaviest);
    });
  std::vector<idx>& waiting = ws.slot;  // by hub, plus one
  ws.list.clear();                      // hubs with a waiting vertex
  for (off k = 0; k < count; k++) {
    const idx v = single[k];
    Outlook seen = n_parts > 1 ? outlook[k] : inspect_neighbours<weighted>(g, c, v, heaviest);
    if (n_parts > 1 && seen.pair >= 0 && !takes_third(c, seen.pair, g.weight[v], heaviest))
      seen = inspect_neighbours<weighted>(g, c, v, heaviest);
    idx join = seen.pair;
    if (join < 0 && seen.hub >= 0) {
      const idx other = waiting[seen.hub] - 1;
      const bool fits = other >= 0 && c.next[other] < 0 && c.weight[other] + g.weight[v] <= heaviest;
      waiting[seen.hub] = fits ? 0 : v + 1;
      ws.list.push_back(seen.hub);
      if (fits) join = other;
    }
    if (join >= 0) {
      c.leader[v] = join;
      c.next[v] = c.next[join], c.next[join] = v;
      c.weight[join] += g.weight[v];
    } else {
      c.leader[v] = v;
      c.next[v] = -1;
      c.weight[v] = g.weight[v];
    }
  }
  for (idx hub : ws.list) waiting[hub] = 0;
}

// Numbers the clusters by their leaders. Returns their number.
idx number_clusters(Workspace& ws, const Graph& g, Clusters& c, std::vector<Range>& parts) {
  const bool parallel = parts.size() > 1;
  for_each(ws, (int)parts.size(), parallel, [&](int i, Workspace&) {
    Range& range = parts[i];
    for (idx v = range.begin; v < range.end; v++) {
      if (c.leader[v] != v) continue;
      range.count++;
      range.size++;  // a place for the cluster itself
      for (idx u = v; u >= 0; u = c.next[u]) range.size += g.ptr[u + 1] - g.ptr[u];
    }
  });
  idx count = 0;
  off at = 0;
  for (Range& range : parts) {
    range.first = count, range.at = at;
    count += range.count, at += range.size;
  }
  for_each(ws, (int)parts.size(), parallel, [&](int i, Workspace&) {
    idx number = parts[i].first;
    for (idx v = parts[i].begin; v < parts[i].end; v++) {
      if (c.leader[v] != v) continue;
      for (idx u = v; u >= 0; u = c.next[u]) c.number[u] = number;
      number++;
    }
  });
  return count;
}

// The rows of a range, from adj[range.at] on; ptr is relative to that. Parallel edges are merged through a table from
// coarse vertices to places in the row being built. The first place of each row collects the edges inside the cluster;
// the row's last entry is moved there in the end.
template <bool weighted> void contract_range(Workspace& ws, const Graph& g, const Clusters& c, Range& range, idx count,
                                             off* ptr, idx* weight, idx* adj, idx* edge_weight) {
  reserve_zeros(ws.slot, g.n);
  std::vector<idx>& place = ws.slot;  // minus `base`, plus one; of an earlier row if not above this row's beginning
  adj += range.at, edge_weight += range.at;
  off size = 0, base = 0;
  idx row = range.first;
  for (idx v = range.begin; v < range.end; v++) {
    if (c.leader[v] != v) continue;
    if (size - base > INT32_MAX - g.n - 1) {  // a row has at most n entries
      std::fill_n(place.data(), count, 0);
      base = size;
    }
    const idx start = (idx)(size - base);
    idx *row_adj = adj + base, *row_weight = edge_weight + base, k = start, total = 0;
    ptr[row] = size;
    row_adj[k] = row, row_weight[k] = 0;
    place[row] = ++k;
    for (idx u = v; u >= 0; u = c.next[u]) {
      total += g.weight[u];
      for (off p = g.ptr[u]; p < g.ptr[u + 1]; p++) {
        const idx to = c.number[g.adj[p]], known = place[to] - 1, edge = weighted ? g.edge_weight[p] : 1;
        const bool fresh = known < start;
        const idx at = fresh ? k : known;
        place[to] = at + 1;
        row_adj[at] = to;
        row_weight[at] = edge + (fresh ? 0 : row_weight[at]);
        k += fresh;
      }
    }
    k--;
    row_adj[start] = row_adj[k], row_weight[start] = row_weight[k];
    place[row_adj[k]] = start + 1, place[row] = 0;
    weight[row++] = total;
    size = base + k;
  }
  range.size = size;
  std::fill_n(place.data(), count, 0);
}

template <bool weighted>
Graph contract(Workspace& ws, const Graph& g, const Clusters& c, std::vector<Range>& parts, idx count) {
  off* ptr = ws.arena.get<off>((std::size_t)count + 1);
  idx* weight = ws.arena.get<idx>(count);
  const std::size_t bound = padded_bytes<idx>((std::size_t)(parts.back().at + parts.back().size) + 1) / sizeof(idx);
  idx* edge_weight = ws.arena.get<idx>(2 * bound);
  idx* adj = edge_weight + bound;
  for_each(ws, (int)parts.size(), parts.size() > 1, [&](int i, Workspace& own) {
    contract_range<weighted>(own, g, c, parts[i], count, ptr, weight, adj, edge_weight);
  });
  off size = 0;
  for (const Range& range : parts) size += range.size;
  const std::size_t used = padded_bytes<idx>((std::size_t)size) / sizeof(idx);
  auto close_gaps = [&](idx* from, idx* to) {
    for (const Range& range : parts) {
      if (from + range.at != to) std::memmove(to, from + range.at, (std::size_t)range.size * sizeof(idx));
      to += range.size;
    }
  };
  close_gaps(edge_weight, edge_weight);
  close_gaps(adj, edge_weight + used);
  off before = 0;
  for (const Range& range : parts) {
    for (idx row = range.first; row < range.first + range.count; row++) ptr[row] += before;
    before += range.size;
  }
  ptr[count] = size;
  ws.arena.shrink(edge_weight, used + (std::size_t)size);
  return Graph{count, ptr, edge_weight + used, weight, edge_weight, g.total_weight};
}

template <bool weighted> bool coarsen_level(Workspace& ws, Hierarchy& hierarchy, Random& random) {
  go_on();
  const Graph g = hierarchy.level.back();
  const idx heaviest = (idx)std::max(1.0, kHeaviest * (double)g.total_weight / kCoarsest);
  const Arena::Mark start = ws.arena.mark();
  Clusters c;
  c.number = ws.arena.get<idx>(g.n);
  if (ws.clusters.size() < 3 * (std::size_t)g.n) ws.clusters = RawVector<idx>(3 * (std::size_t)g.n);
  c.leader = ws.clusters.data(), c.next = c.leader + g.n, c.weight = c.next + g.n;
  std::vector<Range> parts = ranges(g, kRange), rows = ranges(g, kRows);
  const std::uint64_t seed = random.next();
  for_each(ws, (int)parts.size(), parts.size() > 1,
           [&](int i, Workspace& own) { match_range<weighted>(own, g, c, parts[i], heaviest, Random(mix(seed + i))); });
  match_leftovers<weighted>(ws, g, c, match_across<weighted>(ws, g, c, parts, heaviest, random), heaviest,
                            (int)parts.size());
  const idx count = number_clusters(ws, g, c, rows);
  if (count > kStalled * g.n) {
    ws.arena.release(start);
    return false;
  }
  hierarchy.level.push_back(contract<weighted>(ws, g, c, rows, count));
  hierarchy.cluster.push_back(c.number);
  return true;
}

}  // namespace

void coarsen(Workspace& ws, Hierarchy& hierarchy, idx target, Random& random) {
  bool smaller = true;
  while (smaller && hierarchy.level.back().n > target)
    smaller = hierarchy.level.back().edge_weight ? coarsen_level<true>(ws, hierarchy, random)
                                                 : coarsen_level<false>(ws, hierarchy, random);
}

}  // namespace gs::nd
