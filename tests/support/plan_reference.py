"""Multifrontal factorization and solve on the host with nothing but the arrays of a plan, in the kernels' format.

Slow and plain: what the kernels must reproduce. `lower`, `upper` and the others below are those of
core/plan/fronts/plan.hpp.
"""

import numpy as np

from gpusplu.cuda.layout import constant, constants

PANEL, GROUPS = constant("shared/fronts.hpp", "PANEL"), constants("shared/fronts.hpp", "GROUPS")


def panels(plan, f):
    """First columns and widths of the panels of front f."""
    width, step = int(plan.width[f]), PANEL if plan.phase[f] < 3 else plan.large_tile
    return [(k, min(step, width - k)) for k in range(0, width, step)]


def pieces(plan, f):
    """Names, offsets in the factor arena and shapes of what front f stores."""
    W, R = int(plan.width[f]), int(plan.rows[f])
    H = R - W
    if plan.phase[f] < 3:
        shapes = {"lower": (R, W), "upper": (W, H)}
        if plan.cholesky:
            del shapes["upper"]
    else:
        tall, below, tile = W + W % 2, H + H % 2, plan.large_tile
        shapes = {"lower11": (tall, W), "lower21": (below, W), "upper11": (tall, W), "upper21": (below, W)}
        if plan.cholesky:
            del shapes["upper11"], shapes["upper21"]
        shapes["inverse"] = (tile, tile * len(panels(plan, f)))
    at, out = int(plan.factor_offset[f]), {}
    for name, (rows, columns) in shapes.items():
        out[name] = (at, rows, columns)
        at += rows * columns
    return out


def views(plan, arena, f):
    """Pieces of front f as writable column-major matrices."""
    return {
        name: arena[at : at + rows * columns].reshape(columns, rows).T
        for name, (at, rows, columns) in pieces(plan, f).items()
    }


def block_view(plan, blocks, f):
    H = int(plan.rows[f] - plan.width[f])
    ld = H if plan.phase[f] < 3 else H + H % 2
    at = int(plan.block_offset[f])
    return blocks[at : at + ld * H].reshape(H, ld).T[:H]


def assemble_entries(plan, values, f, front):
    entries = slice(plan.entry_ptr[f], plan.entry_ptr[f + 1])
    scale = plan.entry_scale[entries] if plan.entry_scale.size else 1
    place = plan.entry_place[entries]
    front[place & 0xFFFF, place >> 16] += values[plan.entry_source[entries]] * scale


def assemble_children(plan, blocks, f, front):
    """By the children's lists and place maps."""
    for c in plan.child[plan.child_ptr[f] : plan.child_ptr[f + 1]]:
        place = plan.place[plan.below_ptr[c] : plan.below_ptr[c + 1]].astype(int)
        block = block_view(plan, blocks, c)
        front[np.ix_(place, place)] += np.tril(block) if plan.cholesky else block


def assemble_items(plan, blocks, f, front):
    """By the items, as the kernels of phases 0-2 do."""
    record = plan.front_records[f]
    if record["children"] == 0:
        return
    groups = GROUPS[plan.phase[f]]
    partial = plan.partial[record["partial_begin"] :][: record["partial_count"]]
    wide = np.hstack([front, np.zeros((len(front), len(partial)), front.dtype)])
    for group in range(groups):
        begin, end = plan.owner_ptr[record["owner_begin"] + group :][:2]
        for x, y, z, w in plan.items[begin:end]:
            rows = np.array([z, w], np.int32).view(np.uint8)[: y >> 16]
            wide[rows, y & 0xFFFF] += blocks[record["block_base"] + x :][: y >> 16]
    for e, home in enumerate(partial):
        wide[:, home] += wide[:, len(front) + e]
    front[:] = wide[:, : len(front)]


def eliminate(plan, f, front):
    """Block elimination with inverted diagonal blocks, in place; A12 stays raw (phase 0 of LU: D A12)."""
    lower = np.tril(front) + np.tril(front, -1).conj().T if plan.cholesky else None
    work = lower if plan.cholesky else front
    for k, w in panels(plan, f):
        e = k + w
        D = np.linalg.inv(work[k:e, k:e])
        X = work[e:, k:e] @ D
        work[e:, e:] -= X @ work[k:e, e:]
        if plan.phase[f] == 0 and not plan.cholesky:
            work[k:e, e:] = D @ work[k:e, e:]
        work[e:, k:e], work[k:e, k:e] = X, D
    return work


def without_upper(matrix, step, diagonal=True):
    """The same with NaN above the blocks on the diagonal, or with them."""
    row, column = (np.arange(size)[:, None] // step for size in matrix.shape)
    return np.where(row >= column.T if diagonal else row > column.T, matrix, np.nan)


def store(plan, f, front, factor, blocks):
    """What no kernel writes stays NaN."""
    W = int(plan.width[f])
    v = views(plan, factor, f)
    H = len(front) - W
    if plan.phase[f] < 3:
        v["lower"][:] = without_upper(front[:, :W], PANEL) if plan.cholesky else front[:, :W]
        if not plan.cholesky:
            v["upper"][:] = front[:W, W:]
    else:
        store_large(plan, f, front, v)
    if H:
        lower = np.where(np.tri(H, dtype=bool), front[W:, W:], np.nan)
        block_view(plan, blocks, f)[:] = lower if plan.cholesky else front[W:, W:]


def store_large(plan, f, front, v):
    """Phase 3. Cholesky: tiles of L itself and inv(L_jj)^H; LU: X, A12 transposed, and D."""
    W, tile = int(plan.width[f]), plan.large_tile
    H = len(front) - W
    lower = front[:, :W].copy()
    for j, (k, w) in enumerate(panels(plan, f)):
        e = k + w
        D = front[k:e, k:e]
        if plan.cholesky:
            L = np.linalg.cholesky(np.linalg.inv(D))
            lower[k:e, k:e], lower[e:, k:e] = L, lower[e:, k:e] @ L
            D = np.linalg.inv(L).conj().T
        v["inverse"][:, j * tile : (j + 1) * tile] = np.eye(tile)  # beyond the front, which the solve relies on
        v["inverse"][:w, j * tile : j * tile + w] = D
    v["lower11"][:W], v["lower21"][:H] = without_upper(lower[:W], tile, False), lower[W:]
    if not plan.cholesky:
        v["upper11"][:W], v["upper21"][:H] = without_upper(front[:W, :W].T, tile, False), front[:W, W:].T
        return
    for k, w in panels(plan, f):
        v["lower11"][k : k + w, k : k + w] = np.where(np.tri(w, dtype=bool), lower[k : k + w, k : k + w], np.nan)


def largest_error(found, expected):
    """Beside the largest entry, of all that are known."""
    known = ~np.isnan(expected)
    if not known.any():
        return 0.0
    assert np.isfinite(found[known]).all()
    return float(np.abs(found[known] - expected[known]).max() / np.abs(expected[known]).max())


def factor(plan, values, items=True):
    """(factor arena, block arena); what is never written is NaN."""
    arena = np.full(plan.factor_size, np.nan, values.dtype)
    blocks = np.full(plan.block_size, np.nan, values.dtype)
    for f in range(plan.nf):
        R = int(plan.rows[f])
        front = np.zeros((R, R), values.dtype)
        assemble_entries(plan, values, f, front)
        if items and plan.phase[f] < 3:
            assemble_items(plan, blocks, f, front)
        else:
            assemble_children(plan, blocks, f, front)
        store(plan, f, eliminate(plan, f, front), arena, blocks)
    return arena, blocks


def split(plan, arena, f):
    """(D, X, A12) of every panel of front f: inverted diagonal block, what is below, what is right (phase 0: D A12)."""
    W, v, out = int(plan.width[f]), views(plan, arena, f), []
    for j, (k, w) in enumerate(panels(plan, f)):
        e = k + w
        if plan.phase[f] < 3:
            D, X = v["lower"][k:e, k:e], v["lower"][e:, k:e]
            right = None if plan.cholesky else np.hstack([v["lower"][k:e, e:W], v["upper"][k:e]])
        else:
            H = int(plan.rows[f]) - W
            below = np.vstack([v["lower11"][e:W, k:e], v["lower21"][:H, k:e]])
            inverse = v["inverse"][:w, j * plan.large_tile : j * plan.large_tile + w]
            if plan.cholesky:  # L^-H; X = L21 L11^-1
                D, X, right = inverse @ inverse.conj().T, below @ inverse.conj().T, None
            else:
                D, X = inverse, below
                right = np.vstack([v["upper11"][e:W, k:e], v["upper21"][:H, k:e]]).T
        if plan.cholesky:
            right = np.linalg.solve(D, X.conj().T) if plan.phase[f] == 3 else None
        out.append((k, e, D, X, right))
    return out


def solve(plan, arena, b):
    """x = A^-1 b through the gather lists: only the places that they name are read."""
    row_scale = plan.row_scale if plan.row_scale.size else np.ones(plan.n)
    col_scale = plan.col_scale if plan.col_scale.size else np.ones(plan.n)
    position = (b * row_scale)[plan.row_perm].astype(np.result_type(arena, b))
    vector = np.full(len(plan.below), np.nan, position.dtype)
    for f in range(plan.nf):
        W, R, first = int(plan.width[f]), int(plan.rows[f]), int(plan.first[f])
        y = np.zeros(R, position.dtype)
        y[:W] = position[first : first + W]
        begin = int(plan.front_records[f]["row_begin"])
        for i in range(R):
            for source in plan.gather_source[plan.gather_ptr[begin + i] : plan.gather_ptr[begin + i + 1]]:
                y[i] += vector[source]
        for k, e, _, X, _ in split(plan, arena, f):
            y[e:] -= X @ y[k:e]
        position[first : first + W] = y[:W]
        vector[plan.below_ptr[f] : plan.below_ptr[f + 1]] = y[W:]
    for f in reversed(range(plan.nf)):
        W, first = int(plan.width[f]), int(plan.first[f])
        below = plan.below[plan.below_ptr[f] : plan.below_ptr[f + 1]]
        x = np.concatenate([position[first : first + W], position[below]])
        for k, e, D, X, right in reversed(split(plan, arena, f)):
            if plan.cholesky:
                x[k:e] = D @ x[k:e] - X.conj().T @ x[e:]
            elif plan.phase[f] == 0:
                x[k:e] = D @ x[k:e] - right @ x[e:]
            else:
                x[k:e] = D @ (x[k:e] - right @ x[e:])
        position[first : first + W] = x[:W]
    x = np.empty_like(position)
    x[plan.col_perm] = position
    return x * col_scale
