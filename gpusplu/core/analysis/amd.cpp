// Approximate minimum degree: Amestoy, Davis, Duff, "An approximate minimum degree ordering algorithm", SIAM J. Matrix
// Anal. Appl. 17(4), 1996. Quotient graph, approximate external degrees (sec. 4), element absorption, aggressive too
// (sec. 5), mass elimination and indistinguishable variables found by hashing (sec. 3.3).
//
// Nodes are variables (not eliminated yet) and elements (eliminated pivots). The list of a variable holds its elements
// first, then the variables that no element connects it to; the list of an element holds its variables.
// Invariant: the lists of the live nodes fit in the space of the original pattern, so nnz + n entries are enough.
#include "analysis/amd.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

namespace gs {
namespace {

// Offset is 32 bits wherever the workspace allows: the lists are scattered and the offsets are read with them.
template <class Offset> class MinimumDegree {
 public:
  explicit MinimumDegree(PatternView graph);
  std::vector<idx> order();

 private:
  void load(PatternView graph);
  void remove_dense(PatternView graph);
  void strip_leaves(PatternView graph);
  void eliminate_independent(PatternView graph);
  void eliminate(idx pivot);
  void form_element(idx pivot);
  void count_outside(idx pivot);
  void update_degrees(idx pivot);
  void merge_indistinguishable(idx pivot);
  void finish_element(idx pivot);
  void compress_lists();
  void raise_stamp(idx by);
  std::vector<idx> expand() const;

  void push(idx i, idx degree) {
    const idx first = degree_head_[degree];
    if (first >= 0) prev_[first] = i;
    next_[i] = first;
    prev_[i] = -1;
    degree_head_[degree] = i;
  }
  void unlink(idx i) {
    const idx before = prev_[i], after = next_[i];
    if (after >= 0) prev_[after] = before;
    if (before >= 0) next_[before] = after;
    else degree_head_[degree_[i]] = after;
  }

  const idx n_;
  std::unique_ptr<idx[]> arena_;
  std::unique_ptr<Offset[]> start_;  // where the list of a node starts
  idx* list_;                        // the lists
  Offset list_size_, list_end_ = 0;
  idx *length_, *n_elements_;  // of a node's list; n_elements_ are the elements at the front of a variable's list
  idx* size_;    // columns a supervariable or pivot stands for; 0 absorbed; negative in the current element
  idx* degree_;  // variable: approximate external degree; element: columns in its list
  idx* stamp_;   // element: 0 dead, else stamp_now_ + |Le \ Lp| once seen at this pivot
  idx *degree_head_, *next_, *prev_;  // lists of variables by degree; at a pivot, next_ and prev_: hash chain and hash
  idx* bucket_;                       // hash -> chain of variables
  idx* parent_;                       // what absorbed this node
  idx *pivots_, n_pivots_ = 0;        // in elimination order; the first n_stripped_ cause no fill
  idx* dense_;
  idx n_dense_ = 0, n_stripped_ = 0;
  idx n_eliminated_ = 0, min_degree_ = 0, stamp_now_ = 1, longest_element_ = 0;
  idx pivot_size_ = 0, element_degree_ = 0;  // of the current pivot
};

template <class Offset> MinimumDegree<Offset>::MinimumDegree(PatternView graph)
    : n_(graph.n), list_size_((Offset)(graph.nnz() + graph.n)) {
  const std::size_t n = n_;
  arena_ = std::make_unique_for_overwrite<idx[]>(12 * n + list_size_);
  start_ = std::make_unique_for_overwrite<Offset[]>(n);
  idx* next_free = arena_.get();
  auto take = [&](std::size_t count) { return std::exchange(next_free, next_free + count); };
  for (idx** array : {&length_, &n_elements_, &size_, &degree_, &stamp_, &degree_head_, &next_, &prev_, &bucket_,
                      &parent_, &pivots_, &dense_})
    *array = take(n);
  list_ = take(list_size_);
  load(graph);
}

// Degrees, and the rows that are dense: these are ordered last, they would make every degree large and every update
// slow (the paper's sec. 6, 10 sqrt(n)). A graph dense throughout keeps them.
template <class Offset> void MinimumDegree<Offset>::remove_dense(PatternView graph) {
  const double limit = std::max(16.0, 10 * std::sqrt((double)n_));
  for (idx i = 0; i < n_; ++i) {
    const idx* const begin = graph.ind + graph.ptr[i];
    const idx* const end = graph.ind + graph.ptr[i + 1];
    degree_[i] = (idx)(end - begin) - (idx)std::count(begin, end, i);
    if (degree_[i] > limit) dense_[n_dense_++] = i;
    size_[i] = 1;
  }
  if (n_dense_ > n_ / 8) n_dense_ = 0;
  for (idx k = 0; k < n_dense_; ++k) {
    const idx i = dense_[k];
    size_[i] = 0;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) --degree_[graph.ind[p]];
  }
  n_eliminated_ = n_dense_;
}

// Eliminates vertices of degree 0 and 1, again and again: they cause no fill, and minimum degree would take them first.
template <class Offset> void MinimumDegree<Offset>::strip_leaves(PatternView graph) {
  for (idx i = 0; i < n_; ++i)
    if (size_[i] && degree_[i] <= 1) pivots_[n_pivots_++] = i;
  for (idx k = 0; k < n_pivots_; ++k) {
    const idx i = pivots_[k];
    size_[i] = 0;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
      const idx j = graph.ind[p];
      if (size_[j] && --degree_[j] == 1) pivots_[n_pivots_++] = j;
    }
  }
  n_stripped_ = n_pivots_;
  n_eliminated_ += n_stripped_;
}

// Eliminates an independent set of vertices of low degree at once (multiple elimination: Liu, "Modification of the
// minimum-degree algorithm by multiple elimination", ACM TOMS 11(2), 1985). In a circuit that is most of the graph, and
// their neighbours of high degree are spared an update for each.
template <class Offset> void MinimumDegree<Offset>::eliminate_independent(PatternView graph) {
  char* const blocked = reinterpret_cast<char*>(next_);
  std::fill_n(blocked, n_, 0);
  static const int cap = getenv("CAP") ? atoi(getenv("CAP")) : 3;
  for (idx degree = 2; degree <= cap; ++degree)
    for (idx i = n_; i-- > 0;) {
      if (degree_[i] != degree || blocked[i] || !size_[i]) continue;
      for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) blocked[graph.ind[p]] = 1;
      blocked[i] = 1;
      n_elements_[i] = -1;
      pivots_[n_pivots_++] = i;
      ++n_eliminated_;
    }
}

// Copies the lists of what is left.
template <class Offset> void MinimumDegree<Offset>::load(PatternView graph) {
  std::fill_n(n_elements_, n_, 0);
  std::fill_n(degree_head_, n_, -1);
  std::fill_n(bucket_, n_, -1);
  std::fill_n(stamp_, n_, 1);
  std::fill_n(parent_, n_, -1);
  stamp_now_ = 2;
  longest_element_ = 8;
  remove_dense(graph);
  strip_leaves(graph);
  eliminate_independent(graph);
  for (idx i = 0; i < n_; ++i) {
    start_[i] = list_end_;
    length_[i] = 0;
    if (!size_[i]) continue;
    idx* const list = list_ + list_end_;
    idx length = 0, elements = 0;
    off degree = 0;
    for (off p = graph.ptr[i]; p < graph.ptr[i + 1]; ++p) {
      const idx j = graph.ind[p];
      if (j == i || !size_[j]) continue;
      if (n_elements_[j] < 0) {
        list[length++] = list[elements];
        list[elements++] = j;
        degree += degree_[j] - 1;
      } else {
        list[length++] = j;
        ++degree;
      }
    }
    list_end_ += length;
    length_[i] = length;
    if (n_elements_[i] >= 0) {
      n_elements_[i] = elements;
      degree_[i] = (idx)std::min<off>(degree, n_ - n_eliminated_ - 1);
      push(i, degree_[i]);
    }
  }
  for (idx k = n_stripped_; k < n_pivots_; ++k) n_elements_[pivots_[k]] = 0;
}

template <class Offset> std::vector<idx> MinimumDegree<Offset>::order() {
  while (n_eliminated_ < n_) {
    while (degree_head_[min_degree_] < 0) ++min_degree_;
    eliminate(degree_head_[min_degree_]);
  }
  return expand();
}

template <class Offset> void MinimumDegree<Offset>::eliminate(idx pivot) {
  degree_head_[min_degree_] = next_[pivot];
  if (next_[pivot] >= 0) prev_[next_[pivot]] = -1;
  pivots_[n_pivots_++] = pivot;
  form_element(pivot);
  count_outside(pivot);
  update_degrees(pivot);
  merge_indistinguishable(pivot);
  finish_element(pivot);
}

// Lp = (variables of the pivot) + (variables of its elements), which the new element absorbs. Marks members by a
// negative size and takes them out of the degree lists.
template <class Offset> void MinimumDegree<Offset>::form_element(idx pivot) {
  pivot_size_ = size_[pivot];
  n_eliminated_ += pivot_size_;
  size_[pivot] = -pivot_size_;
  element_degree_ = 0;
  Offset end;
  auto gather = [&](Offset from, idx count) {
    for (Offset p = from; p < from + count; ++p) {
      const idx i = list_[p];
      if (size_[i] <= 0) continue;
      element_degree_ += size_[i];
      size_[i] = -size_[i];
      list_[end++] = i;
      unlink(i);
    }
  };
  if (n_elements_[pivot] == 0) {
    end = start_[pivot];
    gather(start_[pivot], length_[pivot]);
  } else {
    off room = length_[pivot] - n_elements_[pivot];
    for (Offset p = start_[pivot]; p < start_[pivot] + n_elements_[pivot]; ++p) room += length_[list_[p]];
    if (std::min<off>(room, n_ - n_eliminated_) > (off)(list_size_ - list_end_)) compress_lists();
    const Offset begin = end = list_end_, own = start_[pivot];
    for (idx k = 0; k < n_elements_[pivot]; ++k) {
      const idx e = list_[own + k];
      gather(start_[e], length_[e]);
      parent_[e] = pivot;
      stamp_[e] = 0;
    }
    gather(own + n_elements_[pivot], length_[pivot] - n_elements_[pivot]);
    start_[pivot] = begin;
    list_end_ = end;
  }
  length_[pivot] = (idx)(end - start_[pivot]);
  degree_[pivot] = element_degree_;
}

// Leaves stamp_[e] - stamp_now_ = |Le \ Lp| for every element e next to the new one (the paper's algorithm 2).
template <class Offset> void MinimumDegree<Offset>::count_outside(idx pivot) {
  raise_stamp(0);
  const idx* const member = list_ + start_[pivot];
  for (idx k = 0; k < length_[pivot]; ++k) {
    const idx i = member[k], size = -size_[i];
    const idx* const elements = list_ + start_[i];
    for (idx p = 0; p < n_elements_[i]; ++p) {
      const idx e = elements[p], seen = stamp_[e];
      if (seen >= stamp_now_) stamp_[e] = seen - size;
      else if (seen) stamp_[e] = degree_[e] + stamp_now_ - size;
    }
  }
}

// Shortens the list of every variable of the new element, bounds its degree outside of the element (eq. 4.1), and files
// it by a hash of its list. Elements inside the new one are absorbed, variables with nothing outside are eliminated
// too.
template <class Offset> void MinimumDegree<Offset>::update_degrees(idx pivot) {
  const idx* const member = list_ + start_[pivot];
  for (idx k = 0; k < length_[pivot]; ++k) {
    const idx i = member[k];
    idx* const list = list_ + start_[i];
    idx kept = 0, degree = 0;
    std::uint32_t hash = 0;
    for (idx p = 0; p < n_elements_[i]; ++p) {
      const idx e = list[p];
      if (!stamp_[e]) continue;
      const idx outside = stamp_[e] - stamp_now_;
      if (outside > 0) {
        degree += outside;
        hash += (std::uint32_t)e;
        list[kept++] = e;
      } else {
        parent_[e] = pivot;
        stamp_[e] = 0;
      }
    }
    const idx elements = kept;
    for (idx p = n_elements_[i]; p < length_[i]; ++p) {
      const idx j = list[p];
      if (size_[j] <= 0) continue;
      degree += size_[j];
      hash += (std::uint32_t)j;
      list[kept++] = j;
    }
    if (kept == 0) {
      parent_[i] = pivot;
      pivot_size_ -= size_[i];
      element_degree_ += size_[i];
      n_eliminated_ -= size_[i];
      size_[i] = 0;
      continue;
    }
    // The element goes first: at least one entry (the pivot or an absorbed element) has just left this list.
    list[kept] = list[elements];
    list[elements] = list[0];
    list[0] = pivot;
    n_elements_[i] = elements + 1;
    length_[i] = kept + 1;
    degree_[i] = std::min(degree_[i], degree);
    const idx h = (idx)(hash % (std::uint32_t)n_);
    next_[i] = bucket_[h];
    prev_[i] = h;
    bucket_[h] = i;
  }
  degree_[pivot] = element_degree_;
}

// Variables with equal lists stay together for good: one supervariable. Only those of equal hash are compared.
template <class Offset> void MinimumDegree<Offset>::merge_indistinguishable(idx pivot) {
  longest_element_ = std::max(longest_element_, degree_[pivot]);
  raise_stamp(longest_element_);
  const idx* const member = list_ + start_[pivot];
  for (idx k = 0; k < length_[pivot]; ++k) {
    if (size_[member[k]] >= 0) continue;
    const idx hash = prev_[member[k]];
    idx i = bucket_[hash];
    bucket_[hash] = -1;
    for (; i >= 0 && next_[i] >= 0; i = next_[i]) {
      const idx *const list = list_ + start_[i], length = length_[i];
      for (idx p = 1; p < length; ++p) stamp_[list[p]] = stamp_now_;
      idx last = i;
      for (idx j = next_[i]; j >= 0; j = next_[j]) {
        const idx* const other = list_ + start_[j];
        bool equal = length_[j] == length && n_elements_[j] == n_elements_[i];
        for (idx p = 1; equal && p < length; ++p) equal = stamp_[other[p]] == stamp_now_;
        if (equal) {
          parent_[j] = i;
          size_[i] += size_[j];
          size_[j] = 0;
          next_[last] = next_[j];
        } else {
          last = j;
        }
      }
      ++stamp_now_;
    }
  }
}

// Gives the variables that are left their new degrees and drops the others from the element.
template <class Offset> void MinimumDegree<Offset>::finish_element(idx pivot) {
  const idx left = n_ - n_eliminated_;
  idx* const member = list_ + start_[pivot];
  idx kept = 0;
  for (idx k = 0; k < length_[pivot]; ++k) {
    const idx i = member[k], size = -size_[i];
    if (size <= 0) continue;
    size_[i] = size;
    degree_[i] = std::min(degree_[i] + element_degree_ - size, left - size);
    push(i, degree_[i]);
    min_degree_ = std::min(min_degree_, degree_[i]);
    member[kept++] = i;
  }
  size_[pivot] = pivot_size_;
  length_[pivot] = kept;
  if (kept == 0) stamp_[pivot] = 0;
  if (n_elements_[pivot]) list_end_ = start_[pivot] + kept;
}

// Slides the live lists together. The head of each is replaced by its owner for the length of the sweep.
template <class Offset> void MinimumDegree<Offset>::compress_lists() {
  auto live = [&](idx i) { return size_[i] != 0 && length_[i] > 0 && (stamp_[i] != 0); };
  for (idx i = 0; i < n_; ++i)
    if (live(i)) {
      const Offset head = start_[i];
      start_[i] = (Offset)list_[head];
      list_[head] = -i - 1;
    }
  Offset to = 0;
  for (Offset from = 0; from < list_end_;) {
    const idx i = -list_[from] - 1;
    if (i < 0) {
      ++from;
      continue;
    }
    list_[to] = (idx)start_[i];
    start_[i] = to;
    std::memmove(list_ + to + 1, list_ + from + 1, sizeof(idx) * (length_[i] - 1));
    to += length_[i];
    from += length_[i];
  }
  list_end_ = to;
}

// Makes all older stamps smaller than stamp_now_; starts over before they overflow.
template <class Offset> void MinimumDegree<Offset>::raise_stamp(idx by) {
  if (stamp_now_ < std::numeric_limits<idx>::max() - by - 2 * n_ - 2) {
    stamp_now_ += by;
    return;
  }
  for (idx i = 0; i < n_; ++i) stamp_[i] = stamp_[i] != 0;
  stamp_now_ = 2;
}

// Pivots in elimination order, each followed by the variables that went with it; dense rows last, by degree.
template <class Offset> std::vector<idx> MinimumDegree<Offset>::expand() const {
  std::vector<idx> perm(n_);
  idx* const place = next_;
  std::copy_n(pivots_, n_stripped_, perm.begin());
  idx end = n_stripped_;
  for (idx k = n_stripped_; k < n_pivots_; ++k) {
    place[pivots_[k]] = end;
    end += size_[pivots_[k]];
  }
  for (idx k = n_stripped_; k < n_pivots_; ++k) perm[place[pivots_[k]]++] = pivots_[k];
  for (idx i = 0; i < n_; ++i) {
    if (size_[i] || parent_[i] < 0) continue;
    idx root = parent_[i];
    while (!size_[root]) root = parent_[root];
    for (idx j = i; j != root;) j = std::exchange(parent_[j], root);
    perm[place[root]++] = i;
  }
  std::copy_n(dense_, n_dense_, perm.begin() + end);
  return perm;
}

}  // namespace

std::vector<idx> amd(PatternView graph) {
  if (graph.n == 0) return {};
  if (13 * (off)graph.n + graph.nnz() < std::numeric_limits<std::int32_t>::max())
    return MinimumDegree<std::int32_t>(graph).order();
  return MinimumDegree<off>(graph).order();
}

}  // namespace gs
