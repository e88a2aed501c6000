"""Fronts whose tiles several emulated devices share: the bits of one device, and everything where it is needed."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.common.matrix import canonicalize
from gpusplu.dispatch.patterns import STORE
from gpusplu.engines.supernodal import memory, plan, shared_plan
from support.emulated_host import EmulatedHost
from support.front_mappings import random_deal
from support.small_matrices import canonical
from support.solves import check_solves

PARAMETERS = {"warp_rows": 4, "small_rows": 8, "block_rows": 12}  # nearly all fronts are large
TREE = ((((20, 30), 75), ((20, 31), 70)), 199)  # subtrees, and the separator that joins them


def tree_matrix(dtype, seed=0):
    """Hermitian and definite: dense blocks of separators, and each coupled to a part of those above it."""
    rng, cliques, n = np.random.default_rng(seed), [], 0

    def add(tree):
        nonlocal n
        if isinstance(tree, int):
            subtrees, size = (), tree
        else:
            subtrees, size = tree
        below = [add(subtree) for subtree in subtrees]
        own = np.arange(n, n + size)
        n += size
        cliques.extend((part, own[rng.random(size) < 0.6]) for part in below for part in part)
        cliques.append((own, own))
        return [own, *(part for parts in below for part in parts)]

    add(TREE)
    A = np.zeros((n, n), dtype)
    for rows, cols in cliques:
        block = rng.standard_normal((len(rows), len(cols)))
        A[np.ix_(rows, cols)] = block * (1 + 0.5j) if A.dtype.kind == "c" else block
    A = A + A.conj().T + 4 * n * np.eye(n)
    return canonical(sp.csc_array(A), dtype)


@pytest.fixture
def hosts(monkeypatch):
    """Makes hosts; with several devices, every large front that is a piece is shared. `plans`: those that were made."""
    plans = []

    def planned(cores, pattern, dtype, limits=None):
        return cores[0], plan.make_plan(cores[0], pattern, dtype, limits, **PARAMETERS), [0.0] * len(cores)

    def host(count, seed=0, shared=1.0, chunks=(1,), **options):
        def dealt(plan, speeds, *rest, share=True, **options):
            return random_deal(plan, len(speeds), 30, seed, shared * share, chunks)

        def kept_plan(*args):
            plans.append(share_plan(*args))
            return plans[-1]

        STORE.clear()
        monkeypatch.setattr(shared_plan, "map_fronts", dealt)
        monkeypatch.setattr(shared_plan, "share_plan", kept_plan)
        made = EmulatedHost([4] * count, **options).install(monkeypatch)
        for device in made.devices:
            device.order = ("first", "last", seed)[seed % 3]
        return made

    share_plan = shared_plan.share_plan
    host.plans = plans
    for module in (memory, shared_plan):
        monkeypatch.setattr(module, "make_best_plan", planned)
    return host


def answers(A, factor):
    rng, n = np.random.default_rng(3), A.shape[0]
    B = rng.standard_normal((n, 3)).astype(A.dtype)
    found = [factor.solve(B[:, 0], "T"), factor.solve(B)]
    factor.refactor(A.data * 3)
    return [*found, factor.solve(B[:, 1]), factor.refactor_solve(A.data * 2, B[:, 2])]


CASES = [
    (gs.cholesky, "d", 2, 1.0, (1,), True),
    pytest.param(gs.cholesky, "D", 4, 0.7, (1, 2), True, marks=pytest.mark.thorough),
    (gs.splu, "d", 3, 1.0, (1,), True),
    pytest.param(gs.splu, "F", 5, 0.7, (1,), False, marks=pytest.mark.thorough),
    (gs.ldlt, "d", 4, 1.0, (1,), True),
    pytest.param(gs.ldlt, "f", 2, 1.0, (1,), False, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("make", "dtype", "count", "shared", "chunks", "peers"), CASES)
def test_same_bits(hosts, make, dtype, count, shared, chunks, peers):
    A = tree_matrix(dtype)
    if make is gs.splu:
        A.data = (A.data * (1 + 0.1 * np.arange(A.nnz) / A.nnz)).astype(dtype)
    options = {"engine": "supernodal", "ordering": "natural"}
    hosts(1)
    expected = answers(A, make(A, device=0, **options))
    hosts(count, seed=count, shared=shared, chunks=chunks, peers=peers)
    factor = make(A, device="all", **options)
    tiles = hosts.plans[-1].tiles
    assert any(each.chunks > 2 and len(set(each.owner.tolist())) > 1 for each in tiles.values())
    assert any(len({each.device for each in one.below}) > 1 for one in tiles.values())
    for found, wanted in zip(answers(A, factor), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    check_solves(A * 2, factor)


def test_a_failure_leaves_the_factor_before(hosts):
    host, A = hosts(2, seed=2), tree_matrix("d")
    b = np.ones(A.shape[0])
    factor = gs.cholesky(A, engine="supernodal", ordering="natural", device=[0, 1])
    x = factor.solve(b)
    host.broken.add(1)
    with pytest.raises(gs.DeviceFailedError, match="devices 0, 1 failed: cudaError"):
        factor.refactor(A.data * 2)
    np.testing.assert_allclose(factor.solve(b), x, atol=1e-13)  # by the CPU engine
    host.broken.clear()
    factor.refactor(A.data * 4)
    np.testing.assert_array_equal(factor.solve(b) * 4, x)
    assert factor.stats.shared_fronts == len(hosts.plans[-1].tiles)
    assert f"{len(hosts.plans[-1].tiles)} large fronts by tiles on several" in factor.explain()


def test_sharing_that_does_not_fit_is_left(hosts):
    A, needed = tree_matrix("d"), []
    options = {"engine": "supernodal", "ordering": "natural", "device": [0, 1]}
    for shared in (1.0, 0.0):
        hosts(2, seed=2, shared=shared)
        x = gs.cholesky(A, **options).solve(np.ones(A.shape[0]))
        needed.append(max(shared_plan.needed_of_each(hosts.plans[-1], canonicalize(A)[0])))
    assert needed[0] > needed[1]
    hosts(2, seed=2)
    factor = gs.cholesky(A, device_memory=sum(needed) // 2, **options)
    assert not hosts.plans[-1].tiles
    assert factor.stats.shared_fronts == 0
    np.testing.assert_array_equal(factor.solve(np.ones(A.shape[0])), x)
