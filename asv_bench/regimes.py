"""The work of a plan by regime: fronts, levels, arithmetic, traffic, and the longest chain of fronts.

A regime is a phase of the plan: fronts of a warp, of a block (small and full), and large ones that are cut into tiles.
Four lower bounds of its time are known: arithmetic at the rate of a large matrix product, traffic at the rate of a
copy, the chain of fronts that wait for each other, and the places for warps and blocks that all fronts share, the last
two at the latencies of the prototypes. The largest one bounds the regime; time beyond it has other causes.
"""

import numpy as np

REGIMES = ("warp", "small", "block", "large")
# One H200, double precision: DGEMM [flop/s], copy [byte/s], fixed seconds a front and seconds a pivot of a regime.
PEAK, COPY = 62e12, 4.17e12
FIXED = np.array([3.7e-6, 6e-6, 6e-6, 10e-6])
PIVOT = np.array([0.03e-6, 0.16e-6, 0.16e-6, 0.21e-6])
MULTIPROCESSORS, SHARED_BYTES = 132, 232448


def regimes(plan, itemsize):
    """A dictionary a regime that the plan, from `internals.front_plan`, uses.

    Keys: regime, fronts, levels, gflop, mbytes (factor written; contribution blocks written and read), chain_fronts and
    chain_pivots (its part of the longest chain of the whole plan), flop_s, copy_s, chain_s, places_s (floors) and
    predicted_s.
    """
    width, rows, phase = plan.width, plan.rows, plan.phase
    height = rows - width
    flops = eliminations(rows, height) * (0.5 if plan.cholesky else 1.0)
    block = height * height * (0.5 if plan.cholesky else 1.0)
    factor = width * (rows if plan.cholesky else 2 * rows - width)
    own = FIXED[phase] + PIVOT[phase] * width
    on_chain = longest_chain(plan, own)
    # The part of a multiprocessor that a front occupies: 32 warps, 16 or 4 blocks, as many as shared memory holds; a
    # large front occupies as many as its arithmetic asks for.
    share = np.maximum(np.array([1 / 32, 1 / 16, 1 / 4, 0])[phase], (phase % 3 > 0) * itemsize * rows**2 / SHARED_BYTES)
    found = []
    for k, name in enumerate(REGIMES):
        here = phase == k
        if not here.any():
            continue
        chain = on_chain[phase[on_chain] == k]
        moved = itemsize * float((factor + 2 * block)[here].sum())
        found.append(
            {
                "regime": name,
                "fronts": int(here.sum()),
                "levels": int(plan.level[here].max()) + 1,
                "gflop": 1e-9 * float(flops[here].sum()),
                "mbytes": 1e-6 * moved,
                "chain_fronts": int(chain.size),
                "chain_pivots": int(width[chain].sum()),
                "flop_s": float(flops[here].sum()) / PEAK,
                "copy_s": moved / COPY,
                "chain_s": float(chain.size * FIXED[k] + PIVOT[k] * width[chain].sum()),
                "places_s": float((own * share)[here].sum()) / MULTIPROCESSORS,
                "predicted_s": float(plan.phase_seconds[k]),
            }
        )
    return found


def eliminations(rows, height):
    """Flops of eliminating rows - height pivots of an LU front: divisions, and a multiply-add for each entry left."""

    def below(m):  # sum of k + 2 k^2 for k < m
        m = m.astype(float)
        return m * (m - 1) / 2 + (m - 1) * m * (2 * m - 1) / 3

    return below(rows) - below(height)


def longest_chain(plan, own):
    """Fronts from a leaf to a root along which the sum of `own` seconds is largest."""
    parent, phase, level = plan.parent, plan.phase, plan.level
    before = np.zeros(parent.size)  # the latest end of a child
    last = np.full(parent.size, -1)
    order = np.lexsort((level, phase))
    groups = np.flatnonzero(np.diff(phase[order]) | np.diff(level[order])) + 1
    for group in np.split(order, groups):
        inner = group[parent[group] >= 0]
        ends = before[inner] + own[inner]
        np.maximum.at(before, parent[inner], ends)
        latest = ends == before[parent[inner]]
        last[parent[inner[latest]]] = inner[latest]
    chain = [int(np.argmax(np.where(parent < 0, before + own, -1.0)))] if parent.size else []
    while chain and last[chain[-1]] >= 0:
        chain.append(int(last[chain[-1]]))
    return np.array(chain, dtype=int)
