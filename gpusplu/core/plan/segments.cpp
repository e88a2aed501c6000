// Where contribution blocks lie. If all of them fit into the arena they lie side by side. Else the fronts are cut into
// segments, ranges of the postorder that are factored one after another, and a block's memory is free again when the
// segment of its parent is done. A segment ends behind a front whose parent is large (or behind a root), so that a
// front of phases 0-2 is in the segment of its children, and the walk through these phases knows nothing of segments.
//
// Segments are filled to a target, which is halved until the arena is as small as asked or nothing is gained. Blocks of
// one segment that die together are one chunk; chunks are placed segment by segment, those that live longest first,
// where they first fit. Cost: O(fronts) a target.
#include <algorithm>
#include <map>

#include "plan/plan.hpp"

namespace gs::gpu {
namespace {

// Free memory below `top`, by offset; memory from `top` on is free.
class FirstFit {
 public:
  off take(off size) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      const auto [begin, length] = *hole;
      const bool last = begin + length == top_;
      if (length < size && !last) continue;
      holes_.erase(hole);
      if (length > size) holes_[begin + size] = length - size;
      top_ = std::max(top_, begin + size);
      return begin;
    }
    top_ += size;
    return top_ - size;
  }
  void release(off begin, off size) {
    if (size == 0) return;
    auto after = holes_.lower_bound(begin);
    if (after != holes_.begin())
      if (const auto before = std::prev(after); before->first + before->second == begin) {
        begin = before->first, size += before->second;
        holes_.erase(before);
      }
    if (after != holes_.end() && begin + size == after->first) {
      size += after->second;
      holes_.erase(after);
    }
    holes_[begin] = size;
  }
  off top() const { return top_; }

 private:
  std::map<off, off> holes_;
  off top_ = 0;
};

struct Segments {
  std::vector<idx> ptr;     // first front of each, and nf
  std::vector<off> offset;  // of blocks
  off size = 0;             // of the arena
};

struct Blocks {
  const Plan& plan;
  std::vector<off> size;  // rounded up
  explicit Blocks(const Plan& plan) : plan(plan), size(plan.nf) {
    for (idx f = 0; f < plan.nf; f++)
      size[f] = (block_entries(plan.height(f), plan.phase[f] == 3) + kAlign - 1) / kAlign * kAlign;
  }
};

Segments cut(const Blocks& blocks, off target) {
  const Plan& plan = blocks.plan;
  Segments out;
  out.ptr.push_back(0);
  off filled = 0;
  for (idx f = 0; f + 1 < plan.nf; f++) {
    filled += blocks.size[f];
    const idx above = plan.parent[f];
    if (filled < target || (above >= 0 && plan.phase[above] != 3)) continue;
    out.ptr.push_back(f + 1);
    filled = 0;
  }
  out.ptr.push_back(plan.nf);
  return out;
}

void place(const Blocks& blocks, Segments& segments) {
  const Plan& plan = blocks.plan;
  const idx n_segments = (idx)segments.ptr.size() - 1;
  const auto segment_of = [&](idx f) {
    return (idx)(std::upper_bound(segments.ptr.begin(), segments.ptr.end(), f) - segments.ptr.begin()) - 1;
  };
  segments.offset.assign(plan.nf, 0);
  FirstFit memory;
  std::vector<std::vector<std::pair<off, off>>> dying(
      n_segments);  // chunks (offset, size) by the segment they die with
  for (idx s = 0; s < n_segments; s++) {
    std::map<idx, off> chunk;  // size of what dies with a segment, then where the next block of it goes
    const auto last_use = [&](idx f) { return plan.parent[f] >= 0 ? segment_of(plan.parent[f]) : s; };
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) chunk[last_use(f)] += blocks.size[f];
    for (auto c = chunk.rbegin(); c != chunk.rend(); ++c) {
      const off size = c->second;
      c->second = memory.take(size);
      dying[c->first].emplace_back(c->second, size);
    }
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) {
      off& next = chunk[last_use(f)];
      segments.offset[f] = next;
      next += blocks.size[f];
    }
    for (const auto& [begin, size] : dying[s]) memory.release(begin, size);
  }
  segments.size = memory.top();
}

}  // namespace

void place_blocks(Plan& plan) {
  const Blocks blocks(plan);
  off total = 0;
  for (const off size : blocks.size) total += size;
  const off bytes = plan.parameters.scalar_bytes(), limit = (plan.parameters.block_bytes + bytes - 1) / bytes;
  Segments best = cut(blocks, total + 1);
  place(blocks, best);
  constexpr int kMostHalvings = 8;
  if (limit > 0)
    for (int halvings = 0; best.size > limit && halvings < kMostHalvings; halvings++) {
      Segments next = cut(blocks, limit >> halvings);
      place(blocks, next);
      if (next.size < 0.95 * best.size) best = std::move(next);
    }
  plan.segment_ptr = std::move(best.ptr), plan.block_offset = std::move(best.offset), plan.block_size = best.size;
}

}  // namespace gs::gpu
