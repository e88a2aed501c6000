"""Deals of fronts to devices that no search would find."""

import numpy as np

from gpusplu.engines.supernodal.front_mapping import FrontMapping, Fronts, Turn, place_of


def random_deal(plan, devices, cuts, seed, shared=0.0, chunks=(1, 2, 3)):
    """Pieces that are cut as often as that and go to random devices, in a random order; large fronts that are pieces of
    their own are shared with that probability, by all devices or all but one, in stages of one of `chunks`; devices
    then have random speeds."""
    rng, fronts = np.random.default_rng(seed), Fronts(plan)
    branches = fronts.trees()
    for _ in range(cuts):
        able = [branch for branch in branches if fronts.can_cut(branch)]
        if not able:
            break
        chosen = able[rng.integers(len(able))]
        branches.remove(chosen)
        branches += fronts.cut(chosen, rng.choice([0.0, chosen.seconds / 3]))
    branches.sort()
    begins = [branch.begin for branch in branches]
    above = [{place_of(begins, int(fronts.parent[root])) for root in branch.roots} - {-1} for branch in branches]
    waiting = np.zeros(len(branches), int)
    for ups in above:
        for up in ups:
            waiting[up] += 1
    turns, ready = [], [k for k in range(len(branches)) if not waiting[k]]
    while ready:
        k = ready.pop(rng.integers(len(ready)))
        chunk = int(rng.choice(chunks)) if fronts.can_share(branches[k]) and rng.random() < shared else 0
        count = int(rng.integers(max(2, devices - 1), devices + 1)) if chunk else 1
        group = tuple(sorted(rng.permutation(devices)[:count].tolist()))
        home, begin = int(rng.choice(group)), float(len(turns))
        turns.append(Turn(branches[k], home, begin, begin + 1, group if chunk else (), chunk))
        for up in above[k]:
            waiting[up] -= 1
            if not waiting[up]:
                ready.append(up)
    assert len(turns) == len(branches)
    speeds = rng.uniform(0.5, 2.0, devices) if shared else np.ones(devices)
    return FrontMapping(tuple(turns), 1.0, 1.0, 0, tuple(speeds.tolist()))
