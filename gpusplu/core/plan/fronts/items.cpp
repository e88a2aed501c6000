// Assembly items of phases 0-2, assigned to the groups of 8 lanes that own columns, and the records of all fronts.
//
// The load of a column is the number of its items. Columns above 1.25 times the average load of a group are cut into
// parts as equal as the space for partial columns allows. Parts go, the heaviest first, to the group with the least
// load (Graham's LPT rule); inside a part items keep the order of children and columns.
// Cost: O(items + columns log groups) a front, parallel over fronts.
#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>
#include <stdexcept>
#include <utility>

#include "plan/fronts/over_fronts.hpp"
#include "plan/fronts/plan.hpp"
#include "plan/fronts/time_model.hpp"

namespace gs::gpu {
namespace {

constexpr idx kLeastShare = 16;  // items of a column that is not worth cutting

idx items_for(idx entries) { return (entries + ITEM_ENTRIES - 1) / ITEM_ENTRIES; }

// One front at a time; keeps its buffers.
class Assigner {
 public:
  explicit Assigner(Plan& plan) : plan_(plan) {}

  // The columns to which partial columns are added go to `partial`; items and owner_ptr are written in place.
  void assign(idx f, off item_begin, idx owner_begin, std::vector<idx>& partial) {
    const idx R = plan_.rows[f];
    groups_ = GROUPS[plan_.phase[f]];
    load_.assign(R, 0);
    for (idx q = plan_.child_ptr[f]; q < plan_.child_ptr[f + 1]; q++) {
      const idx c = plan_.child[q], H = plan_.height(c);
      const std::uint16_t* place = plan_.place.data() + plan_.below_ptr[c];
      for (idx j = 0; j < H; j++) load_[place[j]] += items_for(H - top(j));
    }
    cut_columns(f, partial);
    give_to_groups((idx)item_begin, owner_begin);
    write(f);
  }

 private:
  struct Part {
    idx column, load;  // column of the front or partial column
    idx next;          // where its next item goes
  };

  // First row of column j that is summed.
  idx top(idx j) const { return plan_.one_triangle() ? j : 0; }

  idx capacity(idx f) const {
    const PlanParameters& p = plan_.parameters;
    const idx R = plan_.rows[f], phase = plan_.phase[f];
    if (phase == 0) return 0;
    const off scalars = phase == 1 ? off(front_ld(p.small_rows)) * p.small_rows
                                   : (p.shared_memory_bytes - FRONT_CONTROL_BYTES) / p.scalar_bytes() - PANEL_SCALARS;
    return (idx)std::clamp<off>(scalars / front_ld(R) - R, 0, MOST_PARTIALS);
  }

  idx cuts(idx share) const {
    idx n = 0;
    for (const idx load : load_)
      if (load > share) n += (load - 1) / share;
    return n;
  }
  // The least load of a part for which the partial columns fit, by bisection.
  idx share_of_a_part(idx capacity) const {
    off total = 0;
    for (const idx load : load_) total += load;
    idx share = std::max(kLeastShare, (idx)((5 * total + 4 * groups_ - 1) / (4 * groups_)));
    if (cuts(share) <= capacity) return share;
    idx high = *std::max_element(load_.begin(), load_.end());
    while (high - share > 1) {
      const idx middle = share + (high - share) / 2;
      (cuts(middle) <= capacity ? high : share) = middle;
    }
    return high;
  }

  void cut_columns(idx f, std::vector<idx>& partial) {
    const idx R = plan_.rows[f], share = share_of_a_part(capacity(f));
    idx extra = R;
    parts_.clear(), first_part_.assign(R, 0);
    for (idx column = 0; column < R; column++) {
      first_part_[column] = (idx)parts_.size();
      const idx load = load_[column];
      if (load == 0) continue;
      const idx n_parts = (load - 1) / share + 1;
      for (idx k = 0; k < n_parts; k++) {
        const idx mine = (idx)(off(load) * (k + 1) / n_parts - off(load) * k / n_parts);
        parts_.push_back({k == 0 ? column : extra++, mine, 0});
        if (k > 0) partial.push_back(column);
      }
    }
  }

  void give_to_groups(idx item_begin, idx owner_begin) {
    order_.resize(parts_.size());
    for (std::size_t k = 0; k < order_.size(); k++) order_[k] = (idx)k;
    std::sort(order_.begin(), order_.end(),
              [&](idx a, idx b) { return parts_[a].load != parts_[b].load ? parts_[a].load > parts_[b].load : a < b; });
    group_of_.resize(parts_.size());
    heap_.clear();  // (load, group), least first
    for (idx g = 0; g < groups_; g++) heap_.push_back({0, g});
    for (const idx k : order_) {  // `next` counts from the group's first item for now
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      auto& [load, group] = heap_.back();
      parts_[k].next = load;
      load += parts_[k].load;
      group_of_[k] = group;
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    idx* owner = plan_.owner_ptr.data() + owner_begin;
    group_load_.assign(groups_, 0);
    for (const auto& [load, group] : heap_) group_load_[group] = load;
    owner[0] = item_begin;
    for (idx g = 0; g < groups_; g++) owner[g + 1] = owner[g] + group_load_[g];
    for (std::size_t k = 0; k < parts_.size(); k++) parts_[k].next += owner[group_of_[k]];
  }

  // Parts of a column are filled one after the other: first_part_ moves on.
  void write(idx f) {
    const off base = plan_.block_offset[plan_.child[plan_.child_ptr[f]]];
    std::uint8_t rows[BYTE_ROWS + ITEM_ENTRIES];
    for (idx q = plan_.child_ptr[f]; q < plan_.child_ptr[f + 1]; q++) {
      const idx c = plan_.child[q], H = plan_.height(c);
      const std::uint16_t* place = plan_.place.data() + plan_.below_ptr[c];
      for (idx k = 0; k < H; k++) rows[k] = (std::uint8_t)place[k];
      std::fill_n(rows + H, ITEM_ENTRIES, 0);
      off from = plan_.block_offset[c] - base;
      for (idx j = 0; j < H; j++, from += H) {
        idx& current = first_part_[place[j]];
        for (idx k = top(j); k < H; k += ITEM_ENTRIES) {
          if (parts_[current].load == 0) current++;
          Part& part = parts_[current];
          part.load--;
          Item& item = plan_.items[part.next++];
          item.first = (int)(from + k);
          item.target = part.column | std::min<idx>(ITEM_ENTRIES, H - k) << 16;
          std::memcpy(item.rows, rows + k, sizeof(item.rows));
        }
      }
    }
  }

  Plan& plan_;
  idx groups_ = 0;
  std::vector<idx> load_, first_part_, order_, group_of_, group_load_;
  std::vector<Part> parts_;
  std::vector<std::pair<idx, idx>> heap_;
};

// The items' offsets are 32 bits: blocks of one front's children lie close together, as all of its subtree do.
void check_distances(const Plan& plan, idx f) {
  if (plan.child_ptr[f] == plan.child_ptr[f + 1]) return;
  const idx first = plan.child[plan.child_ptr[f]], last = plan.child[plan.child_ptr[f + 1] - 1];
  if (plan.block_offset[last] + off(plan.height(last)) * plan.height(last) - plan.block_offset[first] >
      std::numeric_limits<std::int32_t>::max())
    throw std::length_error("contribution blocks of the children of one front lie more than 2147483647 entries apart");
}

}  // namespace

void list_items(Plan& plan) {
  const auto has_items = [&](idx f) {
    return plan.phase[f] < LARGE_PHASE && plan.child_ptr[f] < plan.child_ptr[f + 1];
  };
  const std::vector<off> n_items = count_items(plan);
  std::vector<off> item_begin((std::size_t)plan.nf + 1), owner_begin((std::size_t)plan.nf + 1);
  for (idx f = 0; f < plan.nf; f++) {
    if (has_items(f)) check_distances(plan, f);
    item_begin[f + 1] = item_begin[f] + (has_items(f) ? n_items[f] : 0);
    owner_begin[f + 1] = owner_begin[f] + (has_items(f) ? GROUPS[plan.phase[f]] + 1 : 0);
  }
  if (std::max(item_begin[plan.nf], owner_begin[plan.nf]) > std::numeric_limits<std::int32_t>::max())
    throw std::length_error("more than 2147483647 assembly items: the fill of this matrix is too large");
  plan.items.resize(item_begin[plan.nf]), plan.owner_ptr.resize(owner_begin[plan.nf]);
  std::vector<std::vector<idx>> homes(plan.nf);  // of partial columns: few fronts have any
  over_fronts(plan, ITEM_ENTRIES * item_begin[plan.nf], [&](idx begin, idx end) {
    Assigner assigner(plan);
    for (idx f = begin; f < end; f++)
      if (has_items(f)) assigner.assign(f, item_begin[f], (idx)owner_begin[f], homes[f]);
  });

  plan.partial.clear();
  plan.fronts.resize(plan.nf);
  std::vector<idx> pending(plan.nf);
  for (idx f = 0; f < plan.nf; f++) {
    const idx above = plan.parent[f], n_children = plan.child_ptr[f + 1] - plan.child_ptr[f];
    const bool climbs = above >= 0 && plan.phase[above] == plan.phase[f];
    if (climbs) pending[above]++;
    plan.fronts[f] = {.width = plan.width[f],
                      .rows = plan.rows[f],
                      .climb = climbs       ? above
                               : above >= 0 ? -2 - above
                                            : -1,
                      .pending = pending[f],
                      .entry_count = (idx)(plan.entry_ptr[f + 1] - plan.entry_ptr[f]),
                      .children = n_children,
                      .owner_begin = has_items(f) ? (idx)owner_begin[f] : 0,
                      .partial_begin = (idx)plan.partial.size(),
                      .partial_count = (idx)homes[f].size(),
                      .level = plan.level[f],
                      .entry_begin = plan.entry_ptr[f],
                      .factor = plan.factor_offset[f],
                      .block = plan.block_offset[f],
                      .block_base = n_children ? plan.block_offset[plan.child[plan.child_ptr[f]]] : 0,
                      .below = plan.below_ptr[f]};
    plan.partial.insert(plan.partial.end(), homes[f].begin(), homes[f].end());
  }
}

}  // namespace gs::gpu
