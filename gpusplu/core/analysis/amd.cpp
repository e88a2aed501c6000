// Approximate minimum degree: Amestoy, Davis, Duff, "An approximate minimum degree ordering algorithm", SIAM J. Matrix
// Anal. Appl. 17(4), 1996. Quotient graph, approximate external degrees (sec. 4), element absorption, aggressive too
// (sec. 5), mass elimination and indistinguishable variables found by hashing (sec. 3.3).
//
// Nodes are variables (not eliminated yet) and elements (eliminated pivots). The list of a variable holds its elements
// first, then the variables that no element connects it to; the list of an element holds its variables.
// Invariant: the lists of the live nodes fit in the space of the original pattern, so nnz + n entries are enough.
//
// Hubs are variables with many neighbours, as supplies and clocks of circuits are. Searching the list of a hub whenever
// a neighbour is eliminated takes quadratic time. So the list of a hub holds its elements only; its variables are
// stored separately, not read before the hub is eliminated, and their columns are counted: a variable that leaves finds
// the hub in its own list, and bits mark the hubs that are still neighbours.
#include "analysis/amd.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "analysis/shrinking_graph.hpp"
#include "base/operation.hpp"

namespace gs {
namespace {

// A graph by bits, and a set of its vertices.
class BitGraph {
 public:
  void resize(idx n) {
    words_ = (n + 63) / 64;
    rows_.assign((std::size_t)n * words_, 0);
    mask_.assign(words_, 0);
  }
  void add(idx i, idx j) { row(i)[j / 64] |= bit(j); }
  bool take(idx i, idx j) {
    const bool present = row(i)[j / 64] & bit(j);
    row(i)[j / 64] &= ~bit(j);
    return present;
  }
  void clear_mask() { std::fill(mask_.begin(), mask_.end(), 0); }
  void mask(idx i) { mask_[i / 64] |= bit(i); }
  // Takes the edges from i to the set, and calls taken(j) for each.
  template <class F> void take_masked(idx i, F&& taken) {
    for (idx w = 0; w < words_; ++w) {
      std::uint64_t both = row(i)[w] & mask_[w];
      row(i)[w] &= ~both;
      for (; both; both &= both - 1) taken(64 * w + (idx)std::countr_zero(both));
    }
  }

 private:
  static std::uint64_t bit(idx j) { return std::uint64_t(1) << (j % 64); }
  std::uint64_t* row(idx i) { return rows_.data() + (std::size_t)i * words_; }

  idx words_ = 0;
  std::vector<std::uint64_t> rows_, mask_;
};

// Number of neighbours from which on a vertex is a hub: so large that few vertices are hubs.
constexpr idx many_neighbours = 24, many_hubs = 1024;

struct Hubs {
  idx least;    // neighbours
  off entries;  // of all hubs
};

Hubs find_degree_of_hubs(PatternView graph) {
  for (idx least = many_neighbours;; least *= 2) {
    idx count = 0;
    off entries = 0;
    for (idx i = 0; i < graph.n && count <= many_hubs; ++i)
      if (const off degree = graph.ptr[i + 1] - graph.ptr[i]; degree >= least) ++count, entries += degree;
    if (count <= many_hubs) return {least, entries};
  }
}

// Offset is 32 bits where the workspace permits: the lists are scattered and the offsets are read with them.
// `graph`: without rows that are dense.
template <class Offset> class MinimumDegree {
 public:
  explicit MinimumDegree(PatternView graph)
      : n_(graph.n),
        list_size_((Offset)(graph.nnz() + graph.n)),
        hash_mask_(std::bit_floor((std::uint32_t)graph.n) - 1) {
    const std::size_t n = n_;
    const Hubs hubs = find_degree_of_hubs(graph);
    node_.resize(n), link_.resize(2 * n), arena_.resize(3 * n + list_size_ + 2 * hubs.entries);
    idx* next_free = arena_.data();
    for (idx** array : {&size_, &bucket_, &pivots_, &list_}) {
      *array = next_free;
      next_free += n;
    }
    load(graph, hubs.least);
  }

  std::vector<idx> order() {
    while (n_eliminated_ < n_) {
      while (link_[n_ + min_degree_].next >= n_) ++min_degree_;
      const idx pivot = link_[n_ + min_degree_].next;
      eliminate(pivot);
      pace_.go_on(64 + 8 * (off)node_[pivot].length);
    }
    return expand();
  }

  // Of the factor, once ordered.
  FactorSize size() const { return factor_; }

 private:
  // Fields that are read together are stored together: one cache line per node.
  struct Node {
    Offset start = 0;    // where its list starts
    idx length = 0;      // of the list
    idx n_elements = 0;  // variable: elements at the front of the list; element: -1
    idx degree = 0;      // variable: approximate external degree; element: columns in its list
    idx stamp = 0;       // element: 0 dead, else stamp_now_ + |Le \ Lp| once seen at this pivot
    idx parent = 0;      // the node that absorbed it; before that -1, for hub h: -2 - h
  };
  struct Hub {
    Offset start;  // variables stored separately
    idx count;
    idx left;  // columns of those that no element connects it to
    idx vertex;
  };
  struct Link {
    idx next, prev;  // variable: list of equal degree; in the current element, hash chain and hash
  };

  // Lists of equal degree are rings through head n_ + degree, so that no operation needs a branch.
  void push(idx i, idx degree) {
    const idx head = n_ + degree, first = link_[head].next;
    link_[i] = {first, head};
    link_[first].prev = i;
    link_[head].next = i;
  }
  void unlink(idx i) {
    const auto [next, prev] = link_[i];
    link_[prev].next = next;
    link_[next].prev = prev;
  }

  bool is_hub(idx i) const { return node_[i].parent < -1; }
  idx hub_number(idx i) const { return -2 - node_[i].parent; }
  Hub& hub(idx i) { return hubs_[hub_number(i)]; }

  // The lists of hubs get space for all their neighbours, as elements, and as much for the variables stored separately.
  void find_hubs(idx least_degree) {
    Offset end = list_size_;
    for (idx i = 0; i < n_; ++i) {
      Node& node = node_[i];
      if (node.degree < least_degree) continue;
      node.start = end;
      node.parent = -2 - (idx)hubs_.size();
      hubs_.push_back({end + node.degree, 0, 0, i});
      end += 2 * node.degree;
    }
    adjacent_.resize((idx)hubs_.size());
  }

  void load(PatternView graph, idx hub_degree) {
    for (idx i = 0; i < n_; ++i) {
      node_[i] = {.degree = (idx)(graph.ptr[i + 1] - graph.ptr[i]), .stamp = 1, .parent = -1};
      size_[i] = 1;
    }
    find_hubs(hub_degree);
    for (idx head = n_; head < 2 * n_; ++head) link_[head] = {head, head};
    std::fill_n(bucket_, n_, -1);
    stamp_now_ = 2;
    longest_element_ = 2;
    for (idx i = 0; i < n_; ++i) load_list(i, graph);
  }

  void load_list(idx i, PatternView graph) {
    Node& node = node_[i];
    Hub* const own = is_hub(i) ? &hub(i) : nullptr;
    if (!own) node.start = list_end_;
    idx* const list = list_ + node.start;
    idx length = 0;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
      const idx j = graph.ind[p];
      if (j == i) continue;
      if (own) list_[own->start + own->count++] = j;
      else list[length++] = j;
      if (own && is_hub(j)) adjacent_.add(hub_number(i), hub_number(j));
    }
    if (own) own->left = own->count;
    else list_end_ += length;
    node.length = length;
    node.degree = own ? own->count : length;
    push(i, node.degree);
  }

  void eliminate(idx pivot) {
    unlink(pivot);
    pivots_[n_pivots_++] = pivot;
    form_element(pivot);
    count_outside(pivot);
    update_degrees(pivot);
    merge_indistinguishable(pivot);
    finish_element(pivot);
  }

  // Appends the variables of a list to Lp: marks them by a negative size and takes them out of the degree lists.
  Offset gather(Offset from, idx count, Offset to) {
    idx columns = 0;
    for (Offset p = from; p < from + count; ++p) {
      const idx i = list_[p], size = size_[i];
      if (size <= 0) continue;
      columns += size;
      size_[i] = -size;
      list_[to++] = i;
      unlink(i);
    }
    element_degree_ += columns;
    return to;
  }

  // The pivot is no neighbour of hubs any more.
  void leave_hubs(idx pivot) {
    const Node& variable = node_[pivot];
    const idx* const list = list_ + variable.start;
    for (idx p = variable.n_elements; p < variable.length; ++p)
      if (is_hub(list[p])) hub(list[p]).left -= pivot_size_;
  }

  // The neighbours of a hub that is eliminated, without those that were eliminated before it.
  Hub open_hub(idx pivot) {
    Hub own = hub(pivot);
    const idx number = hub_number(pivot), count = std::exchange(own.count, 0);
    for (idx k = 0; k < count; ++k) {
      const idx i = list_[own.start + k];
      if (node_[i].n_elements < 0) continue;
      list_[own.start + own.count++] = i;
      if (is_hub(i) && adjacent_.take(hub_number(i), number)) hub(i).left -= pivot_size_;
    }
    node_[pivot].parent = -1;
    return own;
  }

  // Lp = (variables of the pivot) + (variables of its elements), which the new element absorbs.
  void form_element(idx pivot) {
    Node& element = node_[pivot];
    pivot_size_ = size_[pivot];
    n_eliminated_ += pivot_size_;
    size_[pivot] = -pivot_size_;
    element_degree_ = 0;
    Hub own_hub{};
    if (is_hub(pivot)) own_hub = open_hub(pivot);
    else if (!hubs_.empty()) leave_hubs(pivot);
    if (element.n_elements == 0 && element.start < list_size_) {
      element.length = (idx)(gather(element.start, element.length, element.start) - element.start);
      return;
    }
    off needed = element.length - element.n_elements + own_hub.count;
    for (idx k = 0; k < element.n_elements; ++k) needed += node_[list_[element.start + k]].length;
    if (std::min<off>(needed, n_ - n_eliminated_) > (off)(list_size_ - list_end_)) compress_lists();
    const Offset own = element.start;
    Offset end = list_end_;
    for (idx k = 0; k < element.n_elements; ++k) {
      Node& absorbed = node_[list_[own + k]];
      end = gather(absorbed.start, absorbed.length, end);
      absorbed.parent = pivot;
      absorbed.stamp = 0;
    }
    end = gather(own + element.n_elements, element.length - element.n_elements, end);
    end = gather(own_hub.start, own_hub.count, end);
    element.start = list_end_;
    element.length = (idx)(end - list_end_);
  }

  // Leaves stamp - stamp_now_ = |Le \ Lp| for every element e next to the new one (the paper's algorithm 2), and the
  // hubs of the new one.
  void count_outside(idx pivot) {
    raise_stamp(0);
    hubs_of_element_.clear();
    const idx now = stamp_now_;
    const idx* const member = list_ + node_[pivot].start;
    for (idx k = 0, length = node_[pivot].length; k < length; ++k) {
      const Node& variable = node_[member[k]];
      if (variable.parent < -1) hubs_of_element_.push_back(member[k]);
      const idx* const elements = list_ + variable.start;
      const idx size = -size_[member[k]];
      for (idx p = 0; p < variable.n_elements; ++p) {
        Node& e = node_[elements[p]];
        const idx stamp = e.stamp, fresh = stamp ? e.degree + now - size : 0;
        e.stamp = stamp >= now ? stamp - size : fresh;
      }
    }
  }

  void update_degrees(idx pivot) {
    const idx* const member = list_ + node_[pivot].start;
    const idx length = node_[pivot].length;
    if (hubs_of_element_.empty()) {
      for (idx k = 0; k < length; ++k) update_degree(member[k], pivot, 0);
    } else {
      for (idx k = 0; k < length; ++k) {
        const idx i = member[k];
        if (is_hub(i)) continue;
        const idx* const list = list_ + node_[i].start;
        for (idx p = node_[i].n_elements; p < node_[i].length; ++p)
          if (size_[list[p]] < 0 && is_hub(list[p])) hub(list[p]).left += size_[i];
        update_degree(i, pivot, 0);
      }
      part_hubs();
      for (const idx i : hubs_of_element_) update_degree(i, pivot, hub(i).left);
    }
    node_[pivot].degree = element_degree_;
  }

  // Hubs of the new element are neighbours through it from now on.
  void part_hubs() {
    adjacent_.clear_mask();
    for (const idx i : hubs_of_element_)
      if (hub(i).left > 0) adjacent_.mask(hub_number(i));
    for (const idx i : hubs_of_element_)
      if (hub(i).left > 0) adjacent_.take_masked(hub_number(i), [&](idx h) { hub(i).left += size_[hubs_[h].vertex]; });
  }

  // Shortens the list of a variable of the new element, bounds its degree outside of the element (eq. 4.1), and files
  // it by a hash of its list. Elements inside the new one are absorbed, variables with nothing outside are eliminated
  // too. `excluded`: columns of its variables that are not in the list, because it is a hub.
  void update_degree(idx i, idx pivot, idx excluded) {
    const idx now = stamp_now_;
    Node& variable = node_[i];
    idx* const list = list_ + variable.start;
    idx kept = 0, degree = excluded;
    std::uint32_t hash = 0;
    for (idx p = 0; p < variable.n_elements; ++p) {
      Node& e = node_[list[p]];
      const idx outside = e.stamp - now, keep = outside > 0;
      degree += keep ? outside : 0;
      hash += keep ? (std::uint32_t)list[p] : 0;
      list[kept] = list[p];
      kept += keep;
      if (outside == 0) {
        e.parent = pivot;
        e.stamp = 0;
      }
    }
    const idx elements = kept;
    for (idx p = variable.n_elements; p < variable.length; ++p) {
      const idx j = list[p], size = size_[j], keep = size > 0;
      degree += keep ? size : 0;
      hash += keep ? (std::uint32_t)j : 0;
      list[kept] = j;
      kept += keep;
    }
    if (kept == 0 && excluded == 0) {
      variable.parent = pivot;
      pivot_size_ -= size_[i];
      element_degree_ += size_[i];
      n_eliminated_ -= size_[i];
      size_[i] = 0;
      return;
    }
    // The element goes first: at least one entry (the pivot or an absorbed element) has just left this list, or a hub's
    // has space.
    list[kept] = list[elements];
    list[elements] = list[0];
    list[0] = pivot;
    variable.n_elements = elements + 1;
    variable.length = kept + 1;
    variable.degree = std::min(variable.degree, degree);
    const idx h = (idx)(hash & hash_mask_);
    link_[i] = {bucket_[h], h};
    if (excluded == 0) bucket_[h] = i;  // otherwise its list is incomplete
  }

  // Variables with equal lists stay together for good: one supervariable. Only those of equal hash are compared.
  void merge_indistinguishable(idx pivot) {
    longest_element_ = std::max(longest_element_, element_degree_);
    raise_stamp(longest_element_);
    const idx* const member = list_ + node_[pivot].start;
    for (idx k = 0; k < node_[pivot].length; ++k) {
      if (size_[member[k]] >= 0) continue;
      idx i = std::exchange(bucket_[link_[member[k]].prev], -1);
      for (; i >= 0 && link_[i].next >= 0; i = link_[i].next) merge_chain(i);
    }
  }

  // Merges into i those variables of its hash chain that come after it and have the same list.
  void merge_chain(idx i) {
    const Node& first = node_[i];
    const idx *const list = list_ + first.start, now = stamp_now_++;
    for (idx p = 1; p < first.length; ++p) node_[list[p]].stamp = now;
    idx last = i;
    for (idx j = link_[i].next; j >= 0; j = link_[j].next) {
      const idx* const other = list_ + node_[j].start;
      bool equal = node_[j].length == first.length && node_[j].n_elements == first.n_elements;
      for (idx p = 1; equal && p < first.length; ++p) equal = node_[other[p]].stamp == now;
      if (equal) {
        node_[j].parent = i;
        size_[i] += size_[j];
        size_[j] = 0;
        link_[last].next = link_[j].next;
      } else {
        last = j;
      }
    }
  }

  // Gives the variables that are left their new degrees and drops the others from the element.
  void finish_element(idx pivot) {
    Node& element = node_[pivot];
    const idx left = n_ - n_eliminated_;
    idx* const member = list_ + element.start;
    idx kept = 0;
    for (idx k = 0; k < element.length; ++k) {
      const idx i = member[k], size = -size_[i];
      if (size <= 0) continue;
      size_[i] = size;
      const idx degree = std::min(node_[i].degree + element_degree_ - size, left - size);
      node_[i].degree = degree;
      push(i, degree);
      min_degree_ = std::min(min_degree_, degree);
      member[kept++] = i;
    }
    size_[pivot] = pivot_size_;
    factor_.add(element_degree_ + pivot_size_, pivot_size_);
    element.length = kept;
    if (kept == 0) element.stamp = 0;
    element.n_elements = -1;
    if (element.start == list_end_) list_end_ += kept;
  }

  // Compacts the live lists, except those of hubs. During the sweep the head of each is replaced by its owner.
  void compress_lists() {
    for (idx i = 0; i < n_; ++i) {
      if (!size_[i] || !node_[i].length || !node_[i].stamp || node_[i].start >= list_size_) continue;
      const Offset head = std::exchange(node_[i].start, (Offset)list_[node_[i].start]);
      list_[head] = -i - 1;
    }
    Offset to = 0;
    for (Offset from = 0; from < list_end_;) {
      const idx i = -list_[from] - 1;
      if (i < 0) {
        ++from;
        continue;
      }
      const idx length = node_[i].length;
      list_[to] = (idx)std::exchange(node_[i].start, to);
      std::memmove(list_ + to + 1, list_ + from + 1, sizeof(idx) * (length - 1));
      to += length;
      from += length;
    }
    list_end_ = to;
  }

  // Makes all older stamps smaller than stamp_now_; starts over before they overflow.
  void raise_stamp(idx by) {
    if (stamp_now_ < std::numeric_limits<idx>::max() - by - 2 * n_ - 2) {
      stamp_now_ += by;
      return;
    }
    for (idx i = 0; i < n_; ++i) node_[i].stamp = node_[i].stamp != 0;
    stamp_now_ = 2;
  }

  // Pivots in elimination order, each followed by the variables that went with it.
  std::vector<idx> expand() {
    std::vector<idx> perm(n_);
    idx* const place = bucket_;
    idx end = 0;
    for (idx k = 0; k < n_pivots_; ++k) {
      const idx i = pivots_[k];
      perm[end] = i;
      place[i] = end + 1;
      end += size_[i];
    }
    for (idx i = 0; i < n_; ++i) {
      if (size_[i] || node_[i].parent < 0) continue;
      idx root = node_[i].parent;
      while (!size_[root]) root = node_[root].parent;
      for (idx j = i; j != root;) j = std::exchange(node_[j].parent, root);
      perm[place[root]++] = i;
    }
    return perm;
  }

  const idx n_;
  FactorSize factor_;
  RawVector<Node> node_;
  RawVector<Link> link_;
  std::vector<Hub> hubs_;
  std::vector<idx> hubs_of_element_;  // in the current element
  BitGraph adjacent_;                 // hubs
  RawVector<idx> arena_;
  idx* list_;                        // the lists; after them those of hubs, which do not move
  Offset list_size_, list_end_ = 0;  // without hubs
  idx* size_;    // columns a supervariable or pivot stands for; 0 absorbed; negative in the current element
  idx* bucket_;  // hash -> chain of variables
  idx *pivots_, n_pivots_ = 0;  // in elimination order
  idx n_eliminated_ = 0, min_degree_ = 0, stamp_now_ = 1, longest_element_ = 0;
  std::uint32_t hash_mask_;
  idx pivot_size_ = 0, element_degree_ = 0;  // of the current pivot
  Pace pace_;
};

constexpr idx longest = 512;   // longest list that is searched; neighbours of longer hubs stay where they are
constexpr double few = 0.125;  // of the vertices

bool are_many(std::size_t low, idx n) { return (double)low > few * n; }

// Leaves out dense rows and the diagonal and eliminates vertices where there are many of low degree: those with no
// neighbour or one first, again and again, as they cause no fill; then those with two in rounds, in which no two have a
// common neighbour, so that trees stay low. Each is replaced by an edge between its neighbours. Minimum degree would
// take them in some such order too. Cost: O(nnz), and the searches for such vertices in the lists of their neighbours.
class LowDegreeElimination : ShrinkingGraph {
 public:
  explicit LowDegreeElimination(PatternView graph)
      : ShrinkingGraph(
            graph, graph.n, [](idx v) { return v; }, [](idx u) { return u; }) {}

  ReducedGraph run(FactorSize& size) {
    postpone_dense(n / 4);
    for (idx i = 0; i < n; i++)
      if (is_in(i) && vertex[i].degree <= 1) leaves_.push_back(i);
    for (idx i = n; i-- > 0;)
      if (vertex[i].degree == 2) pairs_.push_back(i);
    if (!are_many(leaves_.size() + pairs_.size(), n)) leaves_.clear(), pairs_.clear();
    strip_leaves();
    for (idx round = 1; !pairs_.empty(); round++)
      for (const idx v : std::exchange(pairs_, {})) eliminate_pair(round, v);
    size = size_;
    return reduce();
  }

 private:
  void eliminate(idx v) {
    size_.add(vertex[v].degree + 1, 1);
    take(v);
  }

  // A neighbour of v has left.
  void lower(idx v) {
    const idx degree = --vertex[v].degree;
    if (degree == 1) leaves_.push_back(v);
    if (degree == 2) pairs_.push_back(v);
  }

  idx* find_neighbour(idx* from, idx v) {
    return std::find_if(from, end(v), [&](idx u) { return is_in(u); });
  }

  void strip_leaves() {
    for (std::size_t k = 0; k < leaves_.size(); k++) {
      const idx v = leaves_[k];
      if (!is_in(v)) continue;
      const idx above = vertex[v].degree > 0 ? *find_neighbour(begin(v), v) : -1;
      eliminate(v);
      if (above >= 0) lower(above);
    }
    leaves_.clear();
  }

  void eliminate_pair(idx round, idx v) {
    if (vertex[v].degree != 2) return;
    if (vertex[v].touched == round) return pairs_.push_back(v);
    idx *const a = find_neighbour(begin(v), v), *const b = find_neighbour(a + 1, v);
    const idx one = *a, other = *b;
    if (!bypass(v, one, other)) return;
    vertex[one].touched = vertex[other].touched = round;
    strip_leaves();
  }

  // Removes v, which has the neighbours a and b, and connects a with b. Returns false without a change where that would
  // be expensive.
  bool bypass(idx v, idx a, idx b) {
    if (vertex[a].length > vertex[b].length) std::swap(a, b);
    if (vertex[b].length > longest) return false;
    if (std::find(begin(a), end(a), b) != end(a)) {
      eliminate(v);
      lower(a), lower(b);
      return true;
    }
    idx *const v_in_a = std::find(begin(a), end(a), v), *const v_in_b = std::find(begin(b), end(b), v);
    if (v_in_a == end(a) || v_in_b == end(b)) return false;  // the pattern is not symmetric
    *v_in_a = b, *v_in_b = a;
    eliminate(v);
    return true;
  }

  std::vector<idx> leaves_, pairs_;  // vertices that have come down to at most one neighbour, to two
  FactorSize size_;                  // columns of the vertices that are eliminated
};

// Whether these steps are worth a copy of the graph (many such vertices) or are required (dense rows).
bool has_low_degrees(PatternView graph) {
  const double dense = dense_degree(graph.n);
  std::size_t low = 0;
  for (idx i = 0; i < graph.n; i++) {
    const idx* const begin = graph.ind + graph.ptr[i];
    const off length = graph.ptr[i + 1] - graph.ptr[i];
    if ((double)length > dense) return true;
    low += length <= 2 || (length == 3 && std::find(begin, begin + 3, i) != begin + 3);
  }
  return are_many(low, graph.n);
}

std::vector<idx> by_minimum_degree(PatternView graph, FactorSize& size) {
  if (graph.n == 0) return {};
  const auto order = [&size](auto&& quotient) {
    std::vector<idx> perm = quotient.order();
    size.lnz += quotient.size().lnz, size.flops += quotient.size().flops;
    return perm;
  };
  if (graph.n + 3 * graph.nnz() < std::numeric_limits<std::int32_t>::max())
    return order(MinimumDegree<std::int32_t>(graph));
  return order(MinimumDegree<off>(graph));
}

// No order can save much.
bool is_almost_complete(PatternView graph) {
  constexpr double almost = 0.9;  // of the entries
  constexpr idx least = 16;
  return graph.n >= least && (double)graph.nnz() >= almost * graph.n * (graph.n - 1.0);
}

}  // namespace

std::vector<idx> amd(PatternView graph, std::optional<FactorSize>* size) {
  if (is_almost_complete(graph)) {
    if (size) *size = std::nullopt;
    std::vector<idx> perm(graph.n);
    std::iota(perm.begin(), perm.end(), 0);
    return perm;
  }
  FactorSize all;
  ReducedGraph low;
  const bool reduces = has_low_degrees(graph);
  if (reduces) low = LowDegreeElimination(graph).run(all);
  std::vector<idx> perm = by_minimum_degree(reduces ? low.graph.view() : graph, all);
  if (size) *size = low.late.empty() ? std::optional(all) : std::nullopt;
  return reduces ? low.expand(perm) : perm;
}

}  // namespace gs
