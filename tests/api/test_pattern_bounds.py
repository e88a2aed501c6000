"""How much of patterns is remembered, where memory is short and between threads."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import _core, gallery
from support.patterns import NEW, REUSED, WAYS, accurate, counts, solved
from support.small_matrices import random_matrix, rhs, spd_matrix


def test_the_last_used_patterns_are_kept():
    A, B, C = (random_matrix(seed=k) for k in range(3))
    gs.cache_limit(entries=2)
    try:
        for M in (A, B, A, C):  # B goes
            gs.splu(M)
        assert gs.cache_info()[:4] == (1, 3, 2, 2)
        assert gs.splu(A).stats["analysis"] != NEW
        assert gs.splu(C).stats["analysis"] != NEW
        assert gs.splu(B).stats["analysis"] == NEW  # and A
        gs.cache_limit(entries=1)
        assert gs.cache_info().currsize == 1
        assert gs.splu(B).stats["analysis"] != NEW
        gs.cache_limit(entries=0)
        for _ in range(2):
            assert gs.splu(B).stats["analysis"] == NEW
            solved(B)
        assert gs.cache_info().currsize == gs.cache_info().bytes == 0
    finally:
        gs.cache_limit(entries=64)


def test_bytes_are_bounded():
    before = gs.cache_info().maxbytes
    A = gallery.named("poisson:30x30")
    gs.splu(A)
    one = gs.cache_info().bytes
    assert one > A.indices.nbytes + A.indptr.nbytes
    try:
        gs.cache_limit(bytes=int(2.5 * one))
        for k in range(4):
            gs.splu(sp.csc_array(sp.block_diag([A, sp.eye_array(k)])))
            assert gs.cache_info().bytes <= 2.5 * one
        assert gs.cache_info().currsize == 2
        gs.cache_limit(bytes=one // 2)
        assert gs.cache_info().currsize == 0
        gs.splu(A)
        assert gs.cache_info()[3:5] == (0, 0)
        gs.cache_limit(bytes=int(1.1 * one))  # for the analysis, not for a factor beside it
        for _ in range(3):
            solved(A)
        assert gs.cache_info()[3:5] == (1, one)
    finally:
        gs.cache_limit(bytes=before)


def test_limits_are_checked():
    for name in ("entries", "bytes"):
        with pytest.raises(ValueError, match=f"{name} must not be negative"):
            gs.cache_limit(**{name: -1})
    info = gs.cache_info()
    gs.cache_limit()
    assert gs.cache_info() == info
    assert info.maxsize == 64
    assert 0 < info.maxbytes <= 512 << 20


def test_cache_clear_counts_from_zero():
    A = random_matrix()
    gs.splu(A), gs.splu(A)
    gs.cache_clear()
    info = gs.cache_info()
    assert (info.hits, info.misses, info.currsize, info.bytes) == (0, 0, 0, 0)
    assert gs.splu(A).stats["analysis"] == NEW
    assert gs.splu(A).stats["analysis"] == REUSED.format(1)


def test_alternating_patterns():
    matrices = [random_matrix(40 + k, seed=k) for k in range(10)]
    for _ in range(5):
        for A in matrices:
            solved(A)
    assert counts() == (40, 10)


@pytest.mark.parametrize("way", WAYS)
def test_patterns_are_dropped_where_memory_is_short(way, monkeypatch):
    A = spd_matrix()
    for _ in range(3):
        solved(A, WAYS[way])
    failed = []

    def short(function):
        def call(*args, **kwargs):
            if gs.cache_info().currsize:
                failed.append(True)
                raise MemoryError
            return function(*args, **kwargs)

        return call

    for name in ("splu", "factor"):
        monkeypatch.setattr(_core, name, short(getattr(_core, name)))
    monkeypatch.setattr(_core.FactorF64, "refactor", short(_core.FactorF64.refactor))
    solved(A, WAYS[way])
    assert failed == [True]
    assert counts() == (0, 1)
    gs.cache_clear()
    monkeypatch.setattr(_core, "splu", lambda *args: (_ for _ in ()).throw(MemoryError))
    monkeypatch.setattr(_core, "factor", lambda *args, **kwargs: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):  # nothing to drop
        solved(A, WAYS[way])


# ---- threads


@pytest.mark.parametrize("way", ["spsolve", "splu", "cholesky"])
def test_threads(way):
    matrices = [spd_matrix(40 + 10 * k, seed=k) for k in range(3)]
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(150):
                A = matrices[rng.integers(3)]
                B = A.copy()
                B.data *= rng.uniform(1, 1.1)
                solved(B, WAYS[way], seed=seed)
                if rng.random() < 0.02:
                    gs.cache_clear()
                if rng.random() < 0.05:
                    gs.cache_limit(entries=int(rng.integers(1, 4)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gs.cache_limit(entries=64)
    assert errors == []


def test_two_threads_in_one_pattern(monkeypatch):
    """One takes the factor that was left, the other makes its own, and neither waits for the other."""
    A, b = gallery.named("poisson:30x30"), rhs(900)
    for _ in range(3):
        gs.spsolve(A, b)
    barrier, results, solve = threading.Barrier(2, timeout=30), {}, gs.LUFactor.solve

    def together(self, *args):
        barrier.wait()
        return solve(self, *args)

    monkeypatch.setattr(gs.LUFactor, "solve", together)

    def work(k):
        results[k] = gs.spsolve(A * (k + 1), b)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        accurate(A * (k + 1), results[k], b)
