"""Copies, pickles, threads, remembered patterns, memory, and the choice of a device."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpusplu as gs
from contract.cases import EVERY, MAKE, backward_error, matrix, on_host, only, with_values


@EVERY
def test_copies_and_pickles(case):
    factor = case.make()
    factor.refactor(case.puts(2 * case.A.data))
    for other in (pickle.loads(pickle.dumps(factor)), copy.copy(factor), copy.deepcopy(factor)):
        assert type(other) is type(factor) and other.engine == case.engine.name
        case.accurate(other, case.doubled())
        other.refactor(case.A.data)
        case.accurate(other)
    case.accurate(factor, case.doubled())
    symbolic = pickle.loads(pickle.dumps(factor.symbolic))
    assert symbolic.engine == case.engine.name
    case.accurate(symbolic.factor(case.A.data))


@EVERY
def test_pickles_without_the_device(case, lose_device):
    """Factors and analyses of device engines go to the CPU engine, and say so."""
    factor, engine = case.make(), "cpu" if case.engine.on_device else case.engine.name
    texts = pickle.dumps(factor), pickle.dumps(factor.symbolic)
    lose_device()
    copied, symbolic = map(pickle.loads, texts)
    for other in (copied, symbolic.factor(case.A.data)):
        assert type(other) is type(factor) and other.engine == other.stats.engine == engine
        case.accurate(other)
        if case.engine.on_device:
            assert f"cpu: pickled with engine='{case.engine.name}', which cannot run here" in other.explain()


@EVERY
def test_threads_share_a_factor(case):
    """Solves run side by side, refactorizations in between."""
    factor, wrong = case.make(), []
    sides = [case.b(seed=k) for k in range(4)]
    factor.solve(sides[0])

    def work(k):
        for repeat in range(4):
            b = sides[(k + repeat) % 4]
            x = on_host(factor.solve(case.puts(b)))
            if min(backward_error(scale * case.A, x, b) for scale in (1, 2)) > 100 * case.eps:
                wrong.append((k, repeat))
            if k == 0:
                factor.refactor(case.puts((1 + repeat % 2) * case.A.data))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert not wrong
    case.accurate(factor, case.doubled())


@EVERY
def test_patterns_are_remembered(case):
    gs.cache_clear()
    factor = case.make()
    assert gs.cache_info().hits == 0 and factor.symbolic.call == 0
    again = case.make(case.doubled())
    assert gs.cache_info().hits == 1 and again.symbolic.call > 0
    case.accurate(again, case.doubled())
    case.accurate(factor)
    for options in ({"ordering": "natural"}, {"deterministic": True}):
        case.make(**options)
        assert gs.cache_info().hits == 1
    gs.cache_clear()
    assert gs.cache_info().hits == 0
    case.make()
    assert gs.cache_info().hits == 0


@EVERY
def test_matrices_edited_in_place(case):
    """Values and places that the caller changes in arrays that were met before."""
    A = case.A.copy()
    for scale in (1, 2, 3):
        A.data[:] = scale * case.A.data
        case.accurate(case.make(A), scale * case.A)
    order = np.argsort(np.random.default_rng(0).random(case.n))
    other = case.A[order][:, order]
    other.sort_indices()
    A.data[:], A.indices[:], A.indptr[:] = other.data, other.indices, other.indptr
    case.accurate(case.make(A), other)


@EVERY
def test_kinds_and_types_do_not_share_patterns(case):
    A = matrix("cholesky", case.dtype)
    for kind in case.engine.kinds:
        case.accurate(MAKE[kind](A, engine=case.engine.name), A)
    other = "f" if case.dtype != "f" else "d"
    single = MAKE[case.kind](
        case.A.real.astype(other) if case.kind == "lu" else matrix(case.kind, other), engine=case.engine.name
    )
    assert single.dtype == other


@only("lu")
def test_limits_of_the_cache(case):
    gs.cache_clear()
    before = gs.cache_info()
    try:
        gs.cache_limit(0)
        case.make()
        case.accurate(case.make())
        assert gs.cache_info().hits == 0
    finally:
        gs.cache_limit(before.maxsize)


@EVERY
def test_factors_go(case):
    """Nothing holds them."""
    import weakref

    factor = case.make()
    factor.solve(case.puts(case.b()))
    seen = weakref.ref(factor)
    del factor
    gc.collect()
    assert seen() is None


@EVERY
def test_progress_and_logging(case, caplog):
    caplog.set_level("DEBUG", "gpusplu")
    factor = case.make()
    factor.refactor(case.A.data)
    factor.solve(case.b())
    messages = "\n".join(caplog.messages)
    assert f"engine {case.engine.name}: requested by name" in messages and "factor took" in messages
    for phase in ("refactor", "solve"):
        assert any(message.startswith(phase) for message in caplog.messages), messages
    caplog.clear()
    with pytest.raises(gs.NonFiniteError):
        factor.refactor(case.spoilt())


def test_matrices_and_values_of_a_device(device):
    """`device=` takes a GPU engine, and batches work where their values are."""
    A = gs.gallery.poisson(6, 6)
    factor = gs.splu(A, device=0)
    assert factor.engine != "cpu" and "device=0 was requested" in factor.explain()
    assert backward_error(A, factor.solve(np.ones(36)), np.ones(36)) < 1e-13
    with pytest.raises(gs.EngineUnavailableError, match="does not run on device='cpu'"):
        gs.splu(A, device="cpu", engine="supernodal")
    copied = with_values(A, A.data)
    assert gs.splu(copied, engine="cpu").engine == "cpu"
