// Shared by the stages of nested dissection: memory, graphs, hierarchies, the heap of gains, random numbers.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/kept_memory.hpp"
#include "base/raw_vector.hpp"
#include "base/types.hpp"

namespace gs::nd {

// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ull); }
  idx below(off n) { return (idx)((next() >> 32) * (std::uint64_t)n >> 32); }  // 0 .. n-1 for n <= 2^32

 private:
  std::uint64_t state_;
};

template <class T> constexpr std::size_t padded_bytes(std::size_t count) {
  constexpr std::size_t line = 64;
  return (count * sizeof(T) + line - 1) / line * line;
}

// Scratch memory with stack discipline in a growing list of blocks, which stay warm between uses.
class Arena {
 public:
  struct Mark {
    std::size_t block, top;
  };
  template <class T> T* get(std::size_t count) { return reinterpret_cast<T*>(raw(padded_bytes<T>(count))); }
  // Releases the part of the last allocation, which begins at p, beyond `count` elements.
  template <class T> void shrink(T* p, std::size_t count) {
    top_ = (std::size_t)(reinterpret_cast<std::byte*>(p) - blocks_[block_].data()) + padded_bytes<T>(count);
  }
  // Gives the pages of blocks beyond the current one back to the system.
  void trim() {
    for (std::size_t b = block_ + (top_ > 0); b < blocks_.size(); b++) drop_pages(blocks_[b].data(), blocks_[b].size());
  }
  Mark mark() const { return {block_, top_}; }
  void release(Mark m) { block_ = m.block, top_ = m.top; }

 private:
  std::byte* raw(std::size_t bytes) {
    constexpr std::size_t smallest = std::size_t(1) << 20;
    while (block_ < blocks_.size() && top_ + bytes > blocks_[block_].size()) block_++, top_ = 0;
    if (block_ == blocks_.size())
      blocks_.emplace_back(std::max(bytes, blocks_.empty() ? smallest : 2 * blocks_.back().size()));
    top_ += bytes;
    return blocks_[block_].data() + top_ - bytes;
  }

  std::vector<RawVector<std::byte>> blocks_;
  std::size_t block_ = 0, top_ = 0;
};

// Releases all allocations made during its lifetime.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

// Makes room for n zeros where all are zero.
inline void reserve_zeros(std::vector<idx>& zeros, idx n) {
  if (zeros.size() < (std::size_t)n) zeros.assign(std::max<std::size_t>(n, 2 * zeros.size()), 0);
}

// Symmetric, without loops. Does not own its arrays.
struct Graph {
  idx n = 0;
  const off* ptr = nullptr;
  const idx* adj = nullptr;
  const idx* weight = nullptr;       // of the vertices, >= 1
  const idx* edge_weight = nullptr;  // null: all ones
  off total_weight = 0;
  off entries() const { return ptr[n]; }
};

// level[0] is the graph itself; vertex v of level[l] is a member of vertex cluster[l][v] of level[l + 1].
struct Hierarchy {
  std::vector<Graph> level;
  std::vector<const idx*> cluster;
};

// Binary max-heap of (gain, vertex) with positions, at most one entry a vertex; equal gains: the lowest vertex first.
class GainHeap {
 public:
  void reserve(idx n) { reserve_zeros(place_, n); }
  bool empty() const { return heap_.empty(); }
  bool contains(idx v) const { return place_[v] > 0; }
  idx top_vertex() const { return vertex_of(heap_[0]); }
  idx top_gain() const { return gain_of(heap_[0]); }
  idx gain(idx v) const { return gain_of(heap_[place_[v] - 1]); }
  void insert(idx v, idx gain) {
    heap_.push_back(0);
    rise((idx)heap_.size() - 1, key_of(gain, v));
  }
  void update(idx v, idx gain) {
    const idx i = place_[v] - 1;
    const std::int64_t key = key_of(gain, v);
    if (key > heap_[i]) rise(i, key);
    else sink(i, key);
  }
  void remove(idx v) {
    const idx i = place_[v] - 1;
    const std::int64_t last = heap_.back(), old = heap_[i];
    place_[v] = 0;
    heap_.pop_back();
    if (i == (idx)heap_.size()) return;
    if (last > old) rise(i, last);
    else sink(i, last);
  }
  void clear() {
    for (std::int64_t key : heap_) place_[vertex_of(key)] = 0;
    heap_.clear();
  }

 private:
  static std::int64_t key_of(idx gain, idx v) {
    return (std::int64_t)(((std::uint64_t)(std::uint32_t)gain << 32) | (std::uint32_t)~v);
  }
  static idx vertex_of(std::int64_t key) { return ~(idx)(std::uint32_t)key; }
  static idx gain_of(std::int64_t key) { return (idx)(key >> 32); }
  void put(idx i, std::int64_t key) {
    heap_[i] = key;
    place_[vertex_of(key)] = i + 1;
  }
  void rise(idx i, std::int64_t key) {
    for (; i > 0 && heap_[(i - 1) >> 1] < key; i = (i - 1) >> 1) put(i, heap_[(i - 1) >> 1]);
    put(i, key);
  }
  void sink(idx i, std::int64_t key) {
    const idx size = (idx)heap_.size();
    for (idx child = 2 * i + 1; child < size; i = child, child = 2 * i + 1) {
      if (child + 1 < size && heap_[child] < heap_[child + 1]) child++;
      if (key < heap_[child]) put(i, heap_[child]);
      else break;
    }
    put(i, key);
  }

  std::vector<std::int64_t> heap_;
  std::vector<idx> place_;  // by vertex, plus one; 0: absent
};

class Tasks;

// Memory of one thread. reserve(n) before it is used on a graph of n vertices.
struct Workspace {
  Tasks* tasks = nullptr;   // the task queue shared with other threads; null: single thread
  Arena arena;              // scratch
  RawVector<idx> clusters;  // of coarsening
  GainHeap heap[2];
  std::vector<idx> slot;                  // all 0 between uses
  std::optional<ZeroedArray<idx>> place;  // the same, for vertices of the whole graph
  std::vector<idx> locked;                // locked[v] == stamp: v has been moved in this pass
  idx stamp = 0;
  std::vector<idx> neighbour_weight[2];            // of separator vertices: of their neighbours on side 0 and on side 1
  std::vector<idx> pulled;                         // vertices that entered the separator, in order
  std::vector<std::pair<idx, std::size_t>> moves;  // vertices moved in this pass, in order, and pulled.size() before
  std::vector<idx> list;                           // short-lived
  std::vector<std::uint64_t> bit_rows;
  std::vector<idx> degree;

  void reserve(idx n) {
    heap[0].reserve(n), heap[1].reserve(n);
    for (std::vector<idx>* zeros : {&slot, &locked, &neighbour_weight[0], &neighbour_weight[1]})
      reserve_zeros(*zeros, n);
  }
  // Frees what later graphs need only if they are as large as this one. Another thread may work on those.
  void trim() {
    arena.trim();
    clusters = {}, heap[0] = {}, heap[1] = {};
    slot = {}, locked = {}, neighbour_weight[0] = {}, neighbour_weight[1] = {};
  }
};

}  // namespace gs::nd
