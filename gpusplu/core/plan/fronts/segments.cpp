// Where contribution blocks lie. If all of them fit into the arena they are contiguous. Else the fronts are cut into
// segments, ranges of the postorder that are factored one after another, and a block's memory is free again when the
// segment of its parent is done. A segment ends after a front with a large parent (or after a root), so that a front of
// phases 0-2 is in the segment of its children, and the traversal of these phases does not depend on segments.
//
// Segments are filled up to a target. Blocks of one segment with the same last use are one chunk; chunks are placed
// segment by segment, those that live longest first, where they first fit. Cost: O(fronts) a target.
#include <algorithm>
#include <map>
#include <numeric>

#include "plan/fronts/segments.hpp"

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

// Blocks from another device have memory of their own, so that their copies never wait; blocks sent to another device
// keep their memory.
void place_blocks(const Plan& plan, const std::vector<off>& size, const Turns& turns, Segments& segments) {
  const auto segment_of = [&](idx f) {
    return (idx)(std::upper_bound(segments.ptr.begin(), segments.ptr.end(), f) - segments.ptr.begin()) - 1;
  };
  std::vector<FirstFit> memory(turns.devices);
  segments.received.assign(turns.devices > 1 ? plan.nf : 0, 0);
  if (turns.devices > 1)
    for (idx f = 0; f < plan.nf; f++) {
      if (plan.parent[f] < 0) continue;
      const idx above = turns.device(segment_of(plan.parent[f]));
      if (above != turns.device(segment_of(f))) segments.received[f] = memory[above].take(size[f]);
    }
  segments.block_offset.assign(plan.nf, 0);
  std::vector<std::vector<std::pair<off, off>>> dying(
      segments.count());  // chunks (offset, size) by the segment of their last use
  for (idx turn = 0; turn < segments.count(); turn++) {
    const idx s = turns.segment(turn), device = turns.device(s);
    std::map<idx, off> chunk;  // size of the blocks last used in a segment, then the place of the next such block
    const auto last_use = [&](idx f) { return plan.parent[f] >= 0 ? segment_of(plan.parent[f]) : s; };
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) chunk[last_use(f)] += size[f];
    for (auto c = chunk.rbegin(); c != chunk.rend(); ++c) {
      const off chunk_size = c->second;
      c->second = memory[device].take(chunk_size);
      if (turns.device(c->first) == device) dying[c->first].emplace_back(c->second, chunk_size);
    }
    for (idx f = segments.ptr[s]; f < segments.ptr[s + 1]; f++) {
      off& next = chunk[last_use(f)];
      segments.block_offset[f] = next;
      next += size[f];
    }
    for (const auto& [begin, chunk_size] : dying[s]) memory[device].release(begin, chunk_size);
  }
  segments.block_sizes.clear();
  for (const FirstFit& each : memory) segments.block_sizes.push_back(each.top());
  segments.block_size = std::accumulate(segments.block_sizes.begin(), segments.block_sizes.end(), off(0));
}

std::vector<idx> cut(const Plan& plan, const std::vector<off>& weight, off target) {
  std::vector<idx> ptr{0};
  off filled = 0, part = 0;  // of the segment, and after the last place where it can end
  idx part_begin = 0;
  for (idx f = 0; f < plan.nf; f++) {
    if (plan.is_interface(f) && f > 0) {
      ptr.push_back(f);
      filled = part = 0;
    }
    part += weight[f];
    const idx above = plan.parent[f];
    if (above >= 0 && plan.phase[above] != LARGE_PHASE) continue;
    if (filled > 0 && filled + part > target) {
      ptr.push_back(part_begin);
      filled = 0;
    }
    filled += part, part = 0, part_begin = f + 1;
  }
  ptr.push_back(plan.nf);
  return ptr;
}

}  // namespace

FrontSizes front_sizes(const Plan& plan) {
  FrontSizes out;
  out.factor.resize(plan.nf), out.block.resize(plan.nf);
  const auto aligned = [](off scalars) { return (scalars + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN; };
  for (idx f = 0; f < plan.nf; f++) {
    const bool large = plan.phase[f] == LARGE_PHASE;
    const idx W = plan.width[f], H = plan.height(f);
    out.factor[f] = plan.is_interface(f) ? 0 : aligned(factor_entries(plan, W, H, large));
    out.block[f] = aligned(block_entries(H, large));
  }
  return out;
}

Segments segments_at(const Plan& plan, const FrontSizes& sizes, std::vector<idx> ptr, const Turns& turns) {
  Segments out;
  out.ptr = std::move(ptr);
  place_blocks(plan, sizes.block, turns, out);
  return out;
}

Segments cut_segments(const Plan& plan, const FrontSizes& sizes, const std::vector<off>& weight, off target) {
  return segments_at(plan, sizes, cut(plan, weight, target), {});
}

}  // namespace gs::gpu
