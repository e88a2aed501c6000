"""Several emulated devices of one host share a factor: the bits of one, whoever has which front."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common.matrix import canonicalize
from gpusplu.dispatch.patterns import STORE
from gpusplu.engines.supernodal import shared_plan as sharing
from gpusplu.engines.supernodal import shared_program
from support.emulated_device import EmulatedHost
from support.front_plans import PHASES, random_deal
from support.small_matrices import canonical, phased
from support.solves import check_solves
from support.symmetric_values import spoilt

POISSON = gallery.poisson(12, 11)


@pytest.fixture
def hosts(monkeypatch, plan_with):
    """Makes hosts, on which parts of the tree go to random devices; one of one device has everything.

    `shared`: how probably a large front that is a part by itself is shared. `plans`: those for several devices.
    """
    plan_with(**PHASES["mixed"])
    plans, share_plan = [], sharing.share_plan

    def host(count, seed=0, cuts=9, shared=0.0, chunks=(1,), **options):
        def mapped(plan, speeds, *rest, share=True, **options):
            return random_deal(plan, len(speeds), cuts, seed, shared * share, chunks)

        def shared_plan(*arguments):
            plans.append(share_plan(*arguments))
            return plans[-1]

        STORE.clear()  # what was analysed for other devices
        monkeypatch.setattr(sharing, "map_fronts", mapped)
        monkeypatch.setattr(sharing, "share_plan", shared_plan)
        monkeypatch.setattr(shared_program, "CHUNK", 512)  # of the values
        made = EmulatedHost([4] * count, **options).install(monkeypatch)
        for device in made.devices:
            device.order = ("first", "last", seed)[seed % 3]
        return made

    host.plans = plans
    return host


def made(make, A, count, **options):
    device = list(range(count)) if count > 1 else 0
    return make(A, engine="supernodal", device=device, **options)


def matrix(make, dtype):
    A = phased(POISSON, dtype, hermitian=make is not gs.splu)
    if make is gs.splu:
        A.data = A.data * (1 + 0.1 * np.arange(A.nnz) / A.nnz)
    return A


def answers(A, factor):
    """Of all that a factor does, before and after a refactorization."""
    rng, n = np.random.default_rng(3), A.shape[0]
    B = rng.standard_normal((n, 9)).astype(A.dtype)
    found = [factor.solve(B[:, 0], trans) for trans in "NTH"] + [factor.solve(B, "N"), factor.solve(B[:, :3], "T")]
    factor.refactor(A.data * 3)
    return [*found, factor.solve(B[:, 1]), factor.refactor_solve(A.data * 2, B[:, 2])]


CASES = [
    (gs.cholesky, "d", 4, False),
    (gs.splu, "d", 3, False),
    pytest.param(gs.splu, "D", 2, True, marks=pytest.mark.thorough),
    (gs.ldlt, "d", 3, True),
]


@pytest.mark.parametrize(("make", "dtype", "count", "peers"), CASES)
def test_same_bits(hosts, make, dtype, count, peers):
    A = matrix(make, dtype)
    hosts(1)
    alone = made(make, A, 1)
    expected = answers(A, alone)
    host = hosts(count, seed=count, peers=peers)
    factor = make(A, engine="supernodal", device="all")
    for found, wanted in zip(answers(A, factor), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    check_solves(A * 2, factor)
    assert sum(device.counts.get("factor_large", 0) > 0 for device in host.devices) > 1
    assert factor.stats.devices == list(range(count))
    assert factor.stats.peer_to_peer == peers
    assert ("through the host" in factor.explain()) != peers


def test_arrays_on_the_first_device(hosts, cupy):
    hosts(2)
    factor = made(gs.cholesky, POISSON, 2)
    values, b = cupy.asarray(POISSON.data * 2), cupy.asarray(np.ones(POISSON.shape[0]))
    factor.refactor(values)
    x = factor.solve(b)
    np.testing.assert_allclose(2 * (POISSON @ x.get()), np.ones(POISSON.shape[0]), atol=1e-12)
    factor.refactor(values, check="later")
    np.testing.assert_array_equal(factor.solve(b, check="later").get(), x.get())
    assert factor.check() < 1e-12


@pytest.mark.parametrize("peers", [True, False])
@pytest.mark.parametrize("make", [gs.cholesky, gs.ldlt])
def test_values_that_are_not_symmetric(hosts, cupy, make, peers):
    hosts(2, peers=peers)
    A, b = matrix(make, "d"), np.ones(POISSON.shape[0])
    factor = made(make, A, 2)
    for put in (np.asarray, cupy.asarray):
        with pytest.raises(gs.NotHermitianError):
            factor.refactor_solve(put(spoilt(A, "below")), put(b))
        check_solves(A, factor)
    factor.refactor(cupy.asarray(spoilt(A, "above")))
    with pytest.raises(gs.NotHermitianError):
        factor.solve(b)
    check_solves(A, factor)


def test_determinants_and_inertia_by_the_processor(hosts):
    hosts(2)
    A = POISSON.copy()
    A.setdiag(A.diagonal() - 4.1)
    factor = made(gs.ldlt, A, 2)
    values = np.linalg.eigvalsh(A.toarray())
    assert factor.inertia()[:2] == ((values > 0).sum(), (values < 0).sum())
    np.testing.assert_allclose(factor.slogdet()[1], np.log(abs(values)).sum())


def test_memory_is_that_of_all(hosts):
    host = hosts(3, seed=4, cuts=30)
    whole = made(gs.cholesky, POISSON, 1).stats.bytes
    made(gs.cholesky, POISSON, 3)
    most = max(device.most_used for device in host.devices[1:])
    assert most < whole


def test_what_fits_nowhere(monkeypatch):
    EmulatedHost([4, 4], memory_bytes=60_000).install(monkeypatch)
    with pytest.raises(gs.DeviceMemoryError, match=r"device 0: [\d,]+ of [\d,]+") as caught:
        gs.cholesky(gallery.poisson(14, 9), engine="supernodal", device=[0, 1])
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.short == caught.value.short
    assert error.short[0][0] == 0
    assert error.short[0][1] > error.short[0][2]


@pytest.mark.parametrize(
    ("device", "error", "text"),
    [
        ([], ValueError, "names no device"),
        ([0, 1, 0], ValueError, "device 0 twice"),
        ([0, 2], gs.EngineUnavailableError, "device=2 does not exist"),
        (["0"], TypeError, "must be a number"),
        ("both", TypeError, "must be a number"),
    ],
)
def test_devices_that_cannot_be(monkeypatch, device, error, text):
    EmulatedHost([4, 4]).install(monkeypatch)
    with pytest.raises(error, match=text):
        gs.cholesky(POISSON, device=device)


def test_other_engines_have_one(monkeypatch):
    EmulatedHost([4, 4]).install(monkeypatch)
    with pytest.raises(gs.EngineUnavailableError, match="runs on one device"):
        gs.splu(POISSON, engine="glu", device=[0, 1])
    assert gs.splu(POISSON, device=[1]).stats.engine in ("glu", "sflu", "crisscross", "supernodal")
    assert gs.splu(POISSON, device=[1, 0]).engine == "supernodal"


def test_nothing_is_captured(hosts, cupy):
    host = hosts(2)
    factor = made(gs.cholesky, POISSON, 2)
    b = cupy.asarray(np.ones(POISSON.shape[0]))
    x = factor.solve(b, check="later").get()
    with host.devices[0], host.devices[0].capture(), pytest.raises(RuntimeError, match="cannot be captured"):
        factor.solve(b, check="later")
    np.testing.assert_array_equal(factor.solve(b).get(), x)


# ---- fronts whose tiles several devices share

TREE = ((((12, 20), 75), ((12, 21), 70)), 140)  # subtrees, and the separator that joins them


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


SHARED = [
    (gs.cholesky, "d", 2, 1.0, (1,), True),
    pytest.param(gs.cholesky, "D", 4, 0.7, (1, 2), True, marks=pytest.mark.thorough),
    (gs.splu, "d", 3, 1.0, (1,), True),
    pytest.param(gs.splu, "F", 5, 0.7, (1,), False, marks=pytest.mark.thorough),
    (gs.ldlt, "d", 4, 1.0, (1,), True),
    pytest.param(gs.ldlt, "f", 2, 1.0, (1,), False, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("make", "dtype", "count", "shared", "chunks", "peers"), SHARED)
def test_same_bits_of_shared_fronts(hosts, make, dtype, count, shared, chunks, peers):
    A = tree_matrix(dtype)
    if make is gs.splu:
        A.data = (A.data * (1 + 0.1 * np.arange(A.nnz) / A.nnz)).astype(dtype)
    options = {"engine": "supernodal", "ordering": "natural"}
    hosts(1)
    expected = answers(A, make(A, device=0, **options))
    hosts(count, seed=count, cuts=30, shared=shared, chunks=chunks, peers=peers)
    factor = make(A, device="all", **options)
    tiles = hosts.plans[-1].tiles
    assert any(each.chunks > 2 and len(set(each.owner.tolist())) > 1 for each in tiles.values())
    assert any(len({each.device for each in one.below}) > 1 for one in tiles.values())
    for found, wanted in zip(answers(A, factor), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    check_solves(A * 2, factor)


@pytest.mark.parametrize(
    ("shared", "how", "by_solve"),
    [(0.0, "broken", False), (0.0, "gone", False), (0.0, "gone", True), (1.0, "broken", False)],
)
def test_a_failure_leaves_the_factor_before(hosts, shared, how, by_solve):
    host, A = hosts(2, seed=2 if shared else 6, cuts=30 if shared else 9, shared=shared), POISSON
    options = {"engine": "supernodal", "device": [0, 1]}
    if shared:
        A, options["ordering"] = tree_matrix("d"), "natural"
    factor, b = gs.cholesky(A, **options), np.ones(A.shape[0])
    x = factor.solve(b)
    getattr(host, how).add(1)
    with pytest.raises(gs.DeviceFailedError, match="devices 0, 1 failed: cudaError"):
        factor.solve(b) if by_solve else factor.refactor(A.data * 2)
    np.testing.assert_allclose(factor.solve(b), x, atol=1e-13)  # by the CPU engine
    assert factor.stats.n_refactor == 0
    getattr(host, how).clear()
    factor.refactor(A.data * 4)
    np.testing.assert_array_equal(factor.solve(b) * 4, x)
    assert factor.stats.shared_fronts == len(hosts.plans[-1].tiles) and (factor.stats.shared_fronts > 0) == (shared > 0)
    assert not shared or f"{factor.stats.shared_fronts} large fronts by tiles on several devices" in factor.explain()


def test_sharing_that_does_not_fit_is_left(hosts):
    A, needed = tree_matrix("d"), []
    options = {"engine": "supernodal", "ordering": "natural", "device": [0, 1]}
    for shared in (1.0, 0.0):
        hosts(2, seed=2, cuts=30, shared=shared)
        x = gs.cholesky(A, **options).solve(np.ones(A.shape[0]))
        needed.append(max(sharing.needed_of_each(hosts.plans[-1], canonicalize(A)[0])))
    assert needed[0] > needed[1]
    hosts(2, seed=2, cuts=30, shared=1.0)
    factor = gs.cholesky(A, device_memory=sum(needed) // 2, **options)
    assert not hosts.plans[-1].tiles
    assert factor.stats.shared_fronts == 0
    np.testing.assert_array_equal(factor.solve(np.ones(A.shape[0])), x)


def test_the_emulator_minds_whose_memory_it_is():
    host = EmulatedHost([4, 4], peers=False)
    one, other = host.devices
    mine, theirs = one.zeros(64), other.zeros(64)
    with one, pytest.raises(AssertionError, match="does not reach"):
        one.own_stream().copy(theirs.pointer, mine.pointer, 64)
    with one, pytest.raises(AssertionError, match="was given memory of device 1"):
        one.own_stream().clear(theirs.pointer, 64)
    with other, pytest.raises(AssertionError, match="not the current one"):
        one.own_stream().copy(mine.pointer, mine.pointer, 64)
    host.peers = True
    assert one.reaches(other)
    with one:
        one.own_stream().copy(theirs.pointer, mine.pointer, 64)
