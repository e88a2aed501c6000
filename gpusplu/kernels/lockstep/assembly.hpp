// Assembles a front in lockstep: its panels before its pivots are eliminated, its contribution block afterwards, when
// the updates of the pivots have been written there. Members of a team own columns: no other member adds to them, so
// that no wait between children is needed, and sums have the order of the children. clear_panels, add_entries and all
// add_to_panels of a front have a sync() between them; so have elimination and add_to_block.
#pragma once
#include "lockstep/side.hpp"

LOCKSTEP_BEGIN

template <bool cholesky, class Team, class V>
LOCKSTEP void clear_panels(const Team& team, const LockstepParts<V>& front) {
  const int count = front.W * (cholesky ? front.R : front.R + front.H);  // the upper panel directly follows the lower
  for (int e = team.rank; e < count; e += team.size) front.lower[e] = V{};
}

// value(k): entry k of A, scaled.
template <class Team, class V, class Value, class Watch>
LOCKSTEP void add_entries(const Team& team, const LockstepParts<V>& front, int begin, int end, const unsigned* target,
                          Value&& value, Watch& watch) {
  for (int k = begin + team.rank; k < end; k += team.size) {
    const V v = value(k);
    watch.entry(v);
    front.lower[(int)target[k]] = v;
  }
}

// A child's block of `count` rows, the first `pivots` of which are pivots of the front; row i is row place[i] there.
template <class V> struct LockstepChild {
  Entries<V> block;
  const unsigned short* place;
  int count, pivots;
};

template <bool cholesky, class Team, class V>
LOCKSTEP void add_to_panels(const Team& team, const LockstepParts<V>& front, const LockstepChild<V>& child) {
  const int m = child.count;
  for (int j = 0; j < child.pivots; j++) {
    const int column = child.place[j];
    if (column % team.size != team.rank) continue;
    const Entries<V> to = front.lower + column * front.R, from = child.block + j * m;
    for (int i = cholesky ? j : 0; i < m; i++) to[child.place[i]] += from[i];
  }
  if (cholesky) return;
  for (int j = child.pivots; j < m; j++) {
    const int column = child.place[j];
    if (column % team.size != team.rank) continue;
    const Entries<V> to = front.upper + (column - front.W), from = child.block + j * m;
    for (int i = 0; i < child.pivots; i++) to[child.place[i] * front.H] += from[i];
  }
}

template <bool cholesky, class Team, class V>
LOCKSTEP void add_to_block(const Team& team, const LockstepParts<V>& front, const LockstepChild<V>& child) {
  const int m = child.count;
  for (int j = child.pivots; j < m; j++) {
    const int column = child.place[j] - front.W;
    if (column % team.size != team.rank) continue;
    const Entries<V> to = front.block + column * front.H, from = child.block + j * m;
    for (int i = cholesky ? j : child.pivots; i < m; i++) to[child.place[i] - front.W] += from[i];
  }
}

LOCKSTEP_END
