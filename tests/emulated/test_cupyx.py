"""CuPy's sparse matrices with a factor on an emulated device: values, right-hand sides and solutions stay there."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import MatrixRankWarning

import gpusplu as gs
from gpusplu.common import matrix
from gpusplu.common.timing import backward_error
from gpusplu.dispatch import device_patterns
from gpusplu.engines.device.factor import DeviceFactor
from gpusplu.engines.problem import Request
from gpusplu.factors import solving
from support import fake_cupy
from support.small_matrices import EPS, dtypes, random_matrix, rhs
from support.staying import staying

N = 30
ENGINES = pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"], indirect=True)
pytestmark = [
    pytest.mark.filterwarnings("ignore:CSR format:scipy.sparse.SparseEfficiencyWarning"),
    pytest.mark.filterwarnings("ignore:.*singular:scipy.sparse.linalg.MatrixRankWarning"),
]


@pytest.fixture
def engine(cupyx, device, monkeypatch, request):
    """The one that is chosen, on the device."""
    from gpusplu.install import compat_cupyx

    name = getattr(request, "param", "supernodal")
    for module in (solving, compat_cupyx):
        monkeypatch.setattr(module, "automatic", lambda: Request(name, "tested", 0))
    return name


@pytest.fixture(params=["gpusplu", "installed"])
def solve(cupyx, engine, request):
    """spsolve: that of gpusplu, or cupyx's under install()."""
    if request.param == "gpusplu":
        return gs.spsolve
    gs.install()
    return cupyx.linalg.spsolve


@pytest.fixture
def stays(cupyx, monkeypatch):
    """A context in which values and vectors that leave the device, or come there, are an error."""
    get, put = (fake_cupy.ndarray, "get"), (fake_cupy.ndarray, "set")
    return partial(staying, monkeypatch, get, put, (fake_cupy, "asarray"), (cupyx.sparse.spmatrix, "get"))


@pytest.fixture
def refactored(monkeypatch):
    """Types of the values that factors on the device were refactored with."""
    types, refactor = [], DeviceFactor.refactor

    def logged(self, values, *arguments, **options):
        types.append(type(values))
        return refactor(self, values, *arguments, **options)

    monkeypatch.setattr(DeviceFactor, "refactor", logged)
    return types


def put(b):
    return np.array(b, order="K").view(fake_cupy.ndarray)


def solved(solve, A, b):
    """The solution of a matrix on the device, which is right."""
    x, shape = solve(A, put(b)), (N,) if solve is gs.spsolve and b.size == N else b.shape
    assert (type(x), x.dtype, x.shape, x.flags.f_contiguous) == (fake_cupy.ndarray, A.dtype, shape, True)
    assert backward_error(A.host, np.array(x).reshape(b.shape), b.astype(A.dtype)) < 50 * EPS[A.dtype.char]
    return x


def warm(cupyx, solve, host=None, calls=2):
    """A matrix whose pattern is known on the device, where its factor was left, and a right-hand side."""
    A, b = cupyx.matrix(random_matrix(N) if host is None else host), rhs(N)
    for _ in range(calls):
        solved(solve, A, b)
    return A, b


def known():
    return len(device_patterns._device_patterns)


def calls_counted():
    info = gs.cache_info()
    return info.hits, info.misses


@ENGINES
@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("columns", [(), (3,)])
def test_functions_of_cupyx(cupyx, device, monkeypatch, engine, dtype, columns):
    gs.install()
    host, b = random_matrix(N, dtype), rhs(N, dtype, columns)
    A, on_device, other = cupyx.matrix(host), put(b), put(b.astype("D"))
    lu = cupyx.linalg.splu(A)
    assert lu._factor.engine == engine
    with monkeypatch.context() as patch:  # vectors do not leave it
        patch.setattr(fake_cupy.ndarray, "get", None)
        patch.setattr(fake_cupy, "asarray", None)
        results = [(op, lu.solve(on_device, trans)) for trans, op in (("N", host), ("T", host.T), ("H", host.conj().T))]
        results.append((host, cupyx.linalg.factorized(A)(on_device)))
        if dtype == "F":
            results.append((host, lu.solve(other)))
    results.append((host, cupyx.linalg.spsolve(A, on_device)))
    for op, x in results:
        assert (type(x), x.dtype, x.shape, x.flags.f_contiguous) == (fake_cupy.ndarray, dtype, b.shape, True)
        assert backward_error(op, x.get(), b) < 50 * EPS[dtype]
    assert cupyx.asked == [] and device.counts["check_values"] > 0
    with pytest.raises(TypeError, match="on a device"):
        lu.solve(np.ones(N))


@ENGINES
@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_new_values_stay_on_the_device(cupyx, solve, stays, kind, dtype):
    A, b = cupyx.matrix(random_matrix(N, dtype), kind), rhs(N, dtype)
    for _ in range(2):
        solved(solve, A, b)
    with stays():
        for k in range(3):
            A.data[:] *= 1 + k  # in place
            solved(solve, A, b)
        other = cupyx.sparse.spmatrix.__new__(type(A))  # other arrays of the same content
        other.shape = A.shape
        other.data, other.indices, other.indptr = (each.copy() for each in (3 * A.data, A.indices, A.indptr))
        solved(solve, other, b)
    assert calls_counted() == (5, 1) and cupyx.asked == [] and known() == 1


@pytest.mark.parametrize("shape", [(), (1,), (4,)])
@pytest.mark.parametrize("order", "CF")
def test_right_hand_sides(cupyx, solve, stays, shape, order):
    A, _ = warm(cupyx, solve)
    b = np.asarray(rhs(N, "d", shape), order=order)
    solved(solve, A, b)
    with stays():
        A.data[:] *= 2
        solved(solve, A, b)
        solved(solve, A, b.astype("f"))
        solved(solve, A, np.asarray(np.hstack([b.reshape(N, -1)] * 2), order=order)[:, ::2])  # not contiguous


def test_what_a_step_costs(cupyx, device, solve):
    """Two graphs and one wait; whether the pattern is known this device says at once."""
    A, b = warm(cupyx, solve, calls=4)
    b, before = put(b), gs.factorization_count()
    device.counts.clear()
    solve(A, b)
    assert gs.factorization_count() - before == 1
    assert (device.counts["replay"], device.counts["synchronize"], device.counts.get("allocate", 0)) == (2, 1, 0)


@pytest.mark.parametrize("edited", ["indices", "indptr"])
def test_index_arrays_edited_in_place_are_others(cupyx, solve, edited):
    """As many entries, at other places."""
    A, b = warm(cupyx, solve)
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
    """The last used is compared first; so many are kept as the cache has entries."""
    b, matrices = rhs(N), [cupyx.matrix(random_matrix(N, seed=k)) for k in range(3)]
    solved(solve, matrices[0], b)
    assert known() == 0  # a pattern that came once
    for A in [matrices[0], *matrices[1:], *matrices[1:]]:
        solved(solve, A, b)
    assert known() == 3
    with stays():
        for A in matrices * 2:
            solved(solve, A, b)
    last, middle, first = device_patterns._device_patterns
    solved(solve, matrices[0], b)
    assert device_patterns._device_patterns == (first, last, middle)
    gs.cache_limit(entries=2)
    try:
        solved(solve, matrices[1], b)
        assert known() == 2
        for A in matrices:  # and what the cache has dropped is made again
            solved(solve, A, b)
    finally:
        gs.cache_limit(entries=64)
    size = sum(each.nbytes for each in (matrices[0].indices, matrices[0].indptr))
    assert 0.5 * size < first.nbytes < 2 * size
    gs.cache_clear()
    assert known() == 0


@pytest.mark.parametrize("bad", [0, np.nan, np.inf])
def test_values_that_have_no_factor(cupyx, solve, stays, bad):
    """gpusplu's spsolve warns and returns NaN, or raises; cupyx's asks cupyx. The factor stays on the device."""
    A, b = warm(cupyx, solve, calls=3)
    good, counted = A.data.copy(), sum(calls_counted())
    A.data[slice(*A.indptr[4:6]) if bad == 0 else 5] = bad
    if solve is not gs.spsolve:
        solve(A, put(b))
        assert cupyx.asked == ["spsolve"]
    elif bad == 0:
        with pytest.warns(MatrixRankWarning, match="Matrix is exactly singular") as caught:
            x = solve(A, put(b))
        assert [warning.filename for warning in caught] == [__file__]
        columns = solve(A, put(rhs(N, "d", (3,))))
        for found, shape in ((x, (N,)), (columns, (N, 3))):
            assert (type(found), found.shape, found.dtype) == (fake_cupy.ndarray, shape, "d") and np.isnan(found).all()
    else:
        with pytest.raises(gs.NonFiniteError, match=rf"A\[\d+, \d+\] is {bad}"):
            solve(A, put(b))
    assert sum(calls_counted()) >= counted + 1
    A.data[:] = good
    for _ in range(2):
        solved(solve, A, b)
    with stays():
        solved(solve, A, b)


def test_values_that_need_other_pivots(cupyx, solve):
    host = sp.csr_array(sp.block_diag([random_matrix(N - 2), np.ones((2, 2)) + np.eye(2)]))
    A, b = warm(cupyx, solve, host, 3)
    for end in ([1e-14, 1.0, 1.0, 1e-14], [2.0, 1.0, 1.0, 2.0]):
        A.data[-4:] = end
        for _ in range(3):
            solved(solve, A, b)


def test_values_in_their_own_order(cupyx, solve, stays):
    """Indices that are not sorted, and entries that are there twice."""
    host = random_matrix(N).tocoo()
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(host.nnz), 2))
    order = order[np.argsort(host.row[order], kind="stable")]
    pointers = np.concatenate([[0], np.cumsum(np.bincount(host.row[order], minlength=N))]).astype(np.int32)
    A, b = cupyx.matrix(random_matrix(N)), rhs(N)
    A.data, A.indices, A.indptr = put(host.data[order]), put(host.col[order].astype(np.int32)), put(pointers)
    for _ in range(2):
        solved(solve, A, b)
    with stays():
        A.data[:] *= np.linspace(1, 2, A.nnz)
        solved(solve, A, b)


def test_arrays_that_are_read_on_the_host(cupyx, device, solve, monkeypatch, refactored):
    """Values with gaps, of a subclass, with entries behind the last one, of another device, or that cannot be read."""
    A, b = warm(cupyx, solve, calls=3)
    plain = A.data.copy()
    A.data = put(np.repeat(plain, 2))[::2]
    solved(solve, A, b)
    refactored.clear()
    A.data = plain.view(type("Mine", (fake_cupy.ndarray,), {}))  # whatever its operators do
    solved(solve, A, b)
    A.data = plain
    for owner, name, value in ((device, "index", 1), (type(device), "can_read", lambda self, array: False)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            solved(solve, A, b)
    assert refactored == [np.ndarray] * 3
    gs.cache_clear()
    A.data, A.indices = put(np.append(plain, [7.0, 7.0])), put(np.append(A.indices, [0, 0]).astype(np.int32))
    for _ in range(4):
        A.data[:] *= 2
        solved(solve, A, b)
    assert known() == 0


def test_dtypes_that_have_to_be_brought_together(cupyx, engine):
    """A is cast to the type of b, as SciPy has it."""
    host, b = random_matrix(N, "f"), rhs(N, "D")
    for _ in range(3):
        x = gs.spsolve(cupyx.matrix(host), put(b))
        assert (type(x), x.dtype) == (fake_cupy.ndarray, "D")
        assert backward_error(host.astype("D"), np.array(x), b) < 50 * EPS["d"]
    assert known() == 0


def test_a_factor_that_another_thread_has(cupyx, solve, monkeypatch):
    """Each solves with its own."""
    A, b = warm(cupyx, solve, calls=3)
    refactor, inside = DeviceFactor.refactor, []

    def refactor_late(self, values, *arguments, **options):
        if not inside:
            inside.append(True)
            other = cupyx.matrix(A.host * 3)
            with ThreadPoolExecutor(1) as thread:
                inside.append(thread.submit(solved, solve, other, b).result())
        return refactor(self, values, *arguments, **options)

    monkeypatch.setattr(DeviceFactor, "refactor", refactor_late)
    x = solved(solve, A, b)
    np.testing.assert_allclose(3 * inside[1], x, rtol=1e-10)


@pytest.mark.parametrize("method", ["refactor", "solve"])
def test_a_device_that_fails_once(cupyx, solve, monkeypatch, method):
    """The call goes on with the values on the host."""
    A, b = warm(cupyx, solve, calls=3)
    failed, original = [], getattr(DeviceFactor, method)

    def fails_once(self, *arguments, **options):
        if not failed:
            failed.append(type(arguments[0]))
            raise RuntimeError("it did not work")
        return original(self, *arguments, **options)

    monkeypatch.setattr(DeviceFactor, method, fails_once)
    before = sum(calls_counted())
    solved(solve, A, b)
    assert failed == [fake_cupy.ndarray] and sum(calls_counted()) == before + 1


def test_no_memory_for_the_copy(cupyx, solve, monkeypatch):
    """There is an answer, as before."""
    to_device, asked = matrix.to_device, []

    def no_memory(x):
        if x.dtype.kind == "i":
            asked.append(x)
            raise MemoryError
        return to_device(x)

    monkeypatch.setattr(matrix, "to_device", no_memory)
    warm(cupyx, solve, calls=3)
    assert len(asked) == 2 and known() == 0 and calls_counted() == (2, 1)


def test_logs(cupyx, engine, capsys):
    A, b = warm(cupyx, gs.spsolve, calls=3)
    gs.spsolve(A, put(b), verbose=1)
    out = capsys.readouterr().out
    assert "analysis of call 1 reused" in out and "refactor" in out
