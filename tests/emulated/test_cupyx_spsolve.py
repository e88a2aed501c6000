"""spsolve of cupyx's matrices whose factor is on a device: values, right-hand sides and solutions stay there."""

from functools import partial
from threading import Thread

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import MatrixRankWarning

import gpusplu as gs
from gpusplu.common import matrix
from gpusplu.common.timing import backward_error
from gpusplu.dispatch import device_patterns as device_patterns_cache
from gpusplu.engines.device.factor import DeviceFactor
from gpusplu.engines.problem import Request
from gpusplu.factors import solving
from support import fake_cupy
from support.small_matrices import EPS, random_matrix, rhs
from support.staying import staying

N = 30
ENGINES = ("supernodal", "glu", "sflu", "crisscross")


@pytest.fixture
def engine(cupyx, device, monkeypatch, request):
    """That is chosen, on the device."""
    from gpusplu.install import compat_cupyx

    name = getattr(request, "param", "supernodal")
    for module in (solving, compat_cupyx):
        monkeypatch.setattr(module, "automatic", lambda: Request(name, "tested", 0))
    return name


@pytest.fixture(params=["gpusplu", "installed"])
def solve(cupyx, engine, request):
    """spsolve: ours, or cupyx's under install()."""
    if request.param == "gpusplu":
        return gs.spsolve
    gs.install()
    return cupyx.linalg.spsolve


@pytest.fixture
def stays(cupyx, monkeypatch):
    """A context in which values and vectors that leave the device, or come there, are an error."""
    ways = (
        (fake_cupy.ndarray, "get"),
        (fake_cupy.ndarray, "set"),
        (fake_cupy, "asarray"),
        (cupyx.sparse.spmatrix, "get"),
    )
    return partial(staying, monkeypatch, *ways)


def there(b):
    return np.array(b, order="K").view(fake_cupy.ndarray)


def solved(solve, A, b):
    """The solution of a matrix on the device, which is right."""
    x, ours = solve(A, there(b)), solve is gs.spsolve
    shape = (N,) if ours and b.size == N else b.shape
    assert (type(x), x.dtype, x.shape, x.flags.f_contiguous) == (fake_cupy.ndarray, A.dtype, shape, True)
    right = b.astype(A.dtype)
    assert backward_error(A.host, np.array(x).reshape(b.shape), right) < 50 * EPS[A.dtype.char]
    return x


def warm(solve, A, b, calls=2):
    """Two calls, after which the pattern is recognised and its factor left on the device."""
    for _ in range(calls):
        solved(solve, A, b)
    assert len(device_patterns_cache._device_patterns) == 1


def calls_counted():
    info = gs.cache_info()
    return info.hits, info.misses


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.filterwarnings("ignore:CSR format:scipy.sparse.SparseEfficiencyWarning")
def test_new_values_stay_on_the_device(cupyx, solve, stays, kind, dtype):
    A, b = cupyx.matrix(random_matrix(N, dtype), kind), rhs(N, dtype)
    warm(solve, A, b)
    with stays():
        for k in range(3):
            A.data[:] *= 1 + k  # in place
            solved(solve, A, b)
        other = cupyx.sparse.spmatrix.__new__(type(A))  # other arrays of the same content
        other.shape = A.shape
        other.data, other.indices, other.indptr = (each.copy() for each in (3 * A.data, A.indices, A.indptr))
        solved(solve, other, b)
    assert calls_counted() == (5, 1) and cupyx.asked == []


@pytest.mark.parametrize("shape", [(), (1,), (4,)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.filterwarnings("ignore:CSR format:scipy.sparse.SparseEfficiencyWarning")
def test_right_hand_sides(cupyx, solve, stays, shape, order):
    A, b = cupyx.matrix(random_matrix(N)), np.asarray(rhs(N, "d", shape), order=order)
    warm(solve, A, b)
    with stays():
        A.data[:] *= 2
        solved(solve, A, b)
        solved(solve, A, b.astype("f"))
        solved(solve, A, np.asarray(np.hstack([b.reshape(N, -1)] * 2), order=order)[:, ::2])  # in no piece


def test_what_a_step_costs(cupyx, device, solve):
    """Two graphs, and a wait for how good the solution is; whether the pattern is known this device says at once."""
    A, b = cupyx.matrix(random_matrix(N)), there(rhs(N))
    for _ in range(4):
        solve(A, b)
    device.counts.clear()
    before = gs.factorization_count()
    solve(A, b)
    assert gs.factorization_count() - before == 1
    assert (device.counts["replay"], device.counts["synchronize"], device.counts.get("allocate", 0)) == (2, 1, 0)


@pytest.mark.parametrize("edited", ["indices", "indptr"])
def test_index_arrays_edited_in_place_are_others(cupyx, solve, edited):
    """As many entries, at other places."""
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b)
    if edited == "indices":
        row = int(np.argmax(np.diff(A.indptr) < N))
        begin, end = A.indptr[row : row + 2]
        free = np.setdiff1d(np.arange(N, dtype=A.indices.dtype), A.indices[begin:end])
        diagonal = abs(A.data[begin:end]).argmax()  # that stays
        A.indices[begin + (0 if diagonal else 1)] = free[0]
    else:
        row = next(r for r in range(N - 1) if A.indptr[r + 2] - A.indptr[r + 1] > 1)
        A.indptr[row + 1] += 1
    for _ in range(4):
        A.data[:] *= 1.5
        solved(solve, A, b)
    assert calls_counted() == (4, 2)


def test_patterns_that_take_turns(cupyx, solve, stays):
    first = cupyx.matrix(random_matrix(N))
    second, third = cupyx.matrix(first.host.T), cupyx.matrix(random_matrix(N, seed=3))
    b = rhs(N)
    for A in (first, second, third) * 2:
        solved(solve, A, b)
    assert len(device_patterns_cache._device_patterns) == 3
    with stays():
        for A in (first, second, third) * 2:
            solved(solve, A, b)
    gs.cache_clear()
    assert device_patterns_cache._device_patterns == ()
    solved(solve, first, b)


def test_a_pattern_seen_once_is_not_kept(cupyx, solve):
    solved(solve, cupyx.matrix(random_matrix(N)), rhs(N))
    assert device_patterns_cache._device_patterns == ()


def test_what_is_kept_is_bounded(cupyx, solve):
    b, matrices = rhs(N), [cupyx.matrix(random_matrix(N, seed=k)) for k in range(3)]
    size = sum(each.nbytes for each in (matrices[0].indices, matrices[0].indptr))
    for A in matrices:
        warmed = [solved(solve, A, b) for _ in range(2)]
    assert len(warmed) == 2 and len(device_patterns_cache._device_patterns) == 3
    known = device_patterns_cache._device_patterns
    gs.cache_limit(entries=2)
    try:
        device_patterns_cache.put_first(known[1])
        assert device_patterns_cache._device_patterns == (known[1], known[0])
        for A in matrices:  # and what the store has forgotten is made anew
            solved(solve, A, b)
    finally:
        gs.cache_limit(entries=64)
    assert 0.5 * size < known[0].nbytes < 2 * size


def test_the_last_used_is_looked_at_first(cupyx, solve):
    b, matrices = rhs(N), [cupyx.matrix(random_matrix(N, seed=k)) for k in range(3)]
    for A in [each for each in matrices for _ in range(2)]:
        solved(solve, A, b)
    last, middle, first = device_patterns_cache._device_patterns
    solved(solve, matrices[0], b)
    assert device_patterns_cache._device_patterns == (first, last, middle)


@pytest.mark.filterwarnings("ignore:.*singular:scipy.sparse.linalg.MatrixRankWarning")
def test_singular_values(cupyx, solve, stays):
    """As before: a warning and NaN; of cupyx's functions what cupyx does."""
    host = random_matrix(N)
    A, b = cupyx.matrix(host), rhs(N)
    warm(solve, A, b, 3)
    good = A.data.copy()
    A.data[A.indptr[4] : A.indptr[5]] = 0
    if solve is gs.spsolve:
        with pytest.warns(MatrixRankWarning, match="Matrix is exactly singular") as caught:
            x = solve(A, there(b))
        assert [warning.filename for warning in caught] == [__file__]
        assert (type(x), x.shape, x.dtype) == (fake_cupy.ndarray, (N,), "d") and np.isnan(x).all()
        columns = solve(A, there(rhs(N, "d", (3,))))
        assert columns.shape == (N, 3) and columns.flags.f_contiguous and np.isnan(columns).all()
    else:
        solve(A, there(b))
        assert cupyx.asked == ["spsolve"]
    A.data[:] = good
    for _ in range(2):
        solved(solve, A, b)
    with stays():
        solved(solve, A, b)


@pytest.mark.filterwarnings("ignore:.*singular:scipy.sparse.linalg.MatrixRankWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(cupyx, solve, stays, bad):
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    if solve is gs.spsolve:
        broken = cupyx.matrix(A.host)
        broken.data[5] = bad
        with pytest.raises(gs.NonFiniteError) as expected:
            solve(broken, there(b))
    gs.cache_clear()
    warm(solve, A, b, 3)
    counted, value = calls_counted(), A.data[5].item()
    A.data[5] = bad
    if solve is gs.spsolve:
        with pytest.raises(gs.NonFiniteError) as found:
            solve(A, there(b))
        assert str(found.value) == str(expected.value)
    else:
        solve(A, there(b))
        assert cupyx.asked == ["spsolve"]
    assert sum(calls_counted()) == sum(counted) + 1
    A.data[5] = value
    with stays():  # the factor is left there
        solved(solve, A, b)


def test_values_that_need_other_pivots(cupyx, solve):
    """What the device cannot answer is answered as it always was."""
    host = sp.csr_array(sp.block_diag([random_matrix(N - 2), np.ones((2, 2)) + np.eye(2)]))
    A, b = cupyx.matrix(host), rhs(N)
    warm(solve, A, b, 3)
    A.data[-4:] = [1e-14, 1.0, 1.0, 1e-14]
    for _ in range(3):
        solved(solve, A, b)
    A.data[-4:] = [2.0, 1.0, 1.0, 2.0]
    for _ in range(3):
        solved(solve, A, b)


def test_values_in_their_own_order(cupyx, solve, stays):
    """Indices that are not sorted, and entries that are there twice."""
    host = random_matrix(N).tocoo()
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(host.nnz), 2))
    order = order[np.argsort(host.row[order], kind="stable")]
    pointers = np.concatenate([[0], np.cumsum(np.bincount(host.row[order], minlength=N))]).astype(np.int32)
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    A.data, A.indices, A.indptr = there(host.data[order]), there(host.col[order].astype(np.int32)), there(pointers)
    warm(solve, A, b)
    with stays():
        A.data[:] *= np.linspace(1, 2, A.nnz)
        solved(solve, A, b)


def test_dtypes_that_have_to_be_brought_together_go_the_old_way(cupyx, engine):
    """A is cast to the type of b, as SciPy has it."""
    host, b = random_matrix(N, "f"), rhs(N, "D")
    A = cupyx.matrix(host)
    for _ in range(3):
        x = gs.spsolve(A, there(b))
        assert (type(x), x.dtype) == (fake_cupy.ndarray, "D")
        assert backward_error(host.astype("D"), np.array(x), b) < 50 * EPS["d"]
    assert device_patterns_cache._device_patterns == ()


def test_a_factor_that_another_thread_has(cupyx, solve, monkeypatch):
    """Each solves with its own."""
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b, 3)
    refactor, inside = DeviceFactor.refactor, []

    def refactor_late(self, values, source=None):
        if not inside:
            inside.append(True)
            other = cupyx.matrix(A.host * 3)
            thread = Thread(target=lambda: inside.append(solved(solve, other, b)))
            thread.start()
            thread.join()
        return refactor(self, values, source)

    monkeypatch.setattr(DeviceFactor, "refactor", refactor_late)
    x = solved(solve, A, b)
    np.testing.assert_allclose(3 * inside[1], x, rtol=1e-10)


@pytest.mark.parametrize("method", ["refactor", "solve"])
def test_a_device_that_fails_is_not_the_last_word(cupyx, solve, monkeypatch, method):
    """By the values on the host there is an answer, or the error that there would have been."""
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b, 3)
    failed, original = [], getattr(DeviceFactor, method)

    def fails_once(self, *arguments):
        if not failed:
            failed.append(type(arguments[0]))
            raise RuntimeError("it did not work")
        return original(self, *arguments)

    monkeypatch.setattr(DeviceFactor, method, fails_once)
    before = sum(calls_counted())
    solved(solve, A, b)
    assert failed == [fake_cupy.ndarray] and sum(calls_counted()) == before + 1


def test_values_in_no_piece(cupyx, solve):
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b, 3)
    A.data = there(np.repeat(A.data, 2))[::2]
    A.data[:] *= np.linspace(1, 2, A.nnz)
    for _ in range(2):
        solved(solve, A, b)
    assert len(device_patterns_cache._device_patterns) == 1


def test_values_of_a_subclass(cupyx, solve, monkeypatch):
    """What its operators do nobody knows: they are read on the host."""
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b, 3)
    taken, refactor = [], DeviceFactor.refactor
    monkeypatch.setattr(
        DeviceFactor, "refactor", lambda self, values, *a: (taken.append(type(values)), refactor(self, values, *a))[1]
    )
    A.data = A.data.view(type("Mine", (fake_cupy.ndarray,), {}))
    solved(solve, A, b)
    assert taken == [np.ndarray]


def test_no_memory_for_the_copy(cupyx, device, solve, monkeypatch):
    """There is an answer, as before."""
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    to_device, asked = matrix.to_device, []

    def no_memory(x):
        if x.dtype.kind == "i":
            asked.append(x)
            raise MemoryError
        return to_device(x)

    monkeypatch.setattr(matrix, "to_device", no_memory)
    for _ in range(3):
        solved(solve, A, b)
    assert len(asked) == 2 and device_patterns_cache._device_patterns == () and calls_counted() == (2, 1)


def test_room_behind_the_last_entry(cupyx, solve):
    """SciPy's matrix of the same arrays has none."""
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    A.data, A.indices = there(np.append(A.data, [7.0, 7.0])), there(np.append(A.indices, [0, 0]).astype(np.int32))
    for _ in range(4):
        A.data[:] *= 2
        solved(solve, A, b)
    assert device_patterns_cache._device_patterns == ()


def test_a_factor_on_another_device_takes_values_of_the_host(cupyx, device, solve, monkeypatch):
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b, 3)
    refactored, refactor = [], DeviceFactor.refactor
    monkeypatch.setattr(device, "index", 1)  # so to speak
    monkeypatch.setattr(
        DeviceFactor, "refactor", lambda self, values, *a: (refactored.append(type(values)), refactor(self, values))[1]
    )
    solved(solve, A, b)
    assert refactored == [np.ndarray]


def test_arrays_elsewhere_are_left_alone(cupyx, device, solve, monkeypatch):
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    warm(solve, A, b, 3)
    refactored = []
    monkeypatch.setattr(type(device), "can_read", lambda self, array: False)
    monkeypatch.setattr(DeviceFactor, "refactor", lambda self, values, *_: refactored.append(type(values)) or -1)
    solve(A, there(b))
    assert refactored == [np.ndarray]  # by way of the host


def test_what_is_told(cupyx, engine, capsys):
    A, b = cupyx.matrix(random_matrix(N)), there(rhs(N))
    for _ in range(3):
        gs.spsolve(A, b)
    gs.spsolve(A, b, verbose=1)
    out = capsys.readouterr().out
    assert "analysis of call 1 reused" in out and "refactor" in out
    A.data[5] = np.nan
    with pytest.raises(gs.NonFiniteError):
        gs.spsolve(A, b, verbose=2)
