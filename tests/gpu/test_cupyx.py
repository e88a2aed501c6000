"""cupyx's splu, spsolve and factorized under install() beside the same functions without, on a real device."""

import inspect
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import gpusplu as gs
from gpusplu import gallery
from gpusplu.common import matrix
from gpusplu.common.timing import backward_error
from gpusplu.dispatch import device_patterns as device_patterns_cache
from gpusplu.dispatch.selection import read_request
from gpusplu.factors import solving
from support.cupys import NAMES
from support.processes import run
from support.small_matrices import EPS, random_matrix, rhs
from support.staying import staying

pytestmark = pytest.mark.gpu
N = 40
ENGINES = pytest.mark.parametrize("engine", ["auto", "cpu", "supernodal", "glu", "sflu"], indirect=True)


@pytest.fixture
def theirs(cupy):
    """cupyx.scipy.sparse.linalg, afterwards as it was."""
    with warnings.catch_warnings():  # CuPy's own
        warnings.simplefilter("ignore")
        import cupyx.scipy.sparse.linalg as linalg
    assert not any(hasattr(getattr(linalg, name), "__wrapped__") for name in NAMES)
    yield linalg
    gs.uninstall()
    assert not any(hasattr(getattr(linalg, name), "__wrapped__") for name in NAMES)


@pytest.fixture
def engine(theirs, monkeypatch, request):
    """The engine that ours would choose."""
    from gpusplu.install import compat_cupyx

    monkeypatch.setattr(compat_cupyx, "automatic", lambda: read_request(request.param))
    return request.param


def on_device(A, kind="csr"):
    """With indices of 32 bits, which cuSOLVER needs."""
    import cupyx.scipy.sparse

    A = sp.csr_matrix(A)
    A = sp.csr_matrix((A.data, A.indices.astype("i"), A.indptr.astype("i")), shape=A.shape)
    return getattr(cupyx.scipy.sparse, f"{kind}_matrix")(A.asformat(kind))


def looks(x):
    """All of an array but its values."""
    return type(x), x.dtype, x.shape, x.flags.c_contiguous, x.flags.f_contiguous, x.device.id


def outcome(call):
    """What was raised, in words, or the type of what was returned; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = type(call())
        except Exception as error:
            found = type(error), str(error)
    return found, [(warning.category, str(warning.message)) for warning in caught]


def test_signatures_are_cupys(theirs):
    functions = [getattr(theirs, name) for name in NAMES]
    before = [(inspect.signature(f), f.__doc__, pickle.dumps(f)) for f in functions]
    with gs.enabled():
        assert [(inspect.signature(f), f.__doc__, pickle.dumps(f)) for f in functions] == before
        assert all(hasattr(f, "__wrapped__") for f in functions)
        assert not hasattr(theirs.spilu, "__wrapped__")


@ENGINES
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("columns", [(), (1,), (4,)])
@pytest.mark.parametrize("order", "CF")
def test_solutions_look_like_cupys(cupy, theirs, engine, dtype, columns, order):
    host, b = random_matrix(N, dtype), np.asarray(rhs(N, dtype, columns), order=order)
    A, there = on_device(host), cupy.asarray(b)
    calls = {
        "splu": lambda: theirs.splu(A).solve(there),
        "T": lambda: theirs.splu(A).solve(there, "T"),
        "H": lambda: theirs.splu(A).solve(there, trans="H"),
        "factorized": lambda: theirs.factorized(A)(there),
        "spsolve": lambda: theirs.spsolve(A, there),
    }
    expected = {name: call() for name, call in calls.items()}
    with gs.enabled():
        found = {name: call() for name, call in calls.items()}
        assert engine in ("auto", theirs.splu(A)._factor.engine)
    for name, x in found.items():
        assert looks(x) == looks(expected[name]), name
        op = {"T": host.T, "H": host.conj().T}.get(name, host)
        assert backward_error(op, x.get(), b) < 50 * EPS[dtype], name
    np.testing.assert_array_equal(there.get(), b)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia"])
def test_formats(cupy, theirs, kind):
    host, b = gallery.poisson(7, 7), rhs(49)
    A, there = on_device(host, kind), cupy.asarray(b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
        expected = [theirs.splu(A).solve(there), theirs.spsolve(A, there)]
        with gs.enabled():
            found = [theirs.splu(A).solve(there), theirs.spsolve(A, there)]
    assert [looks(x) for x in found] == [looks(x) for x in expected]
    for x in found:
        assert backward_error(host, x.get(), b) < 50 * EPS["d"]
    assert A.nnz == on_device(host, kind).nnz
    with gs.enabled():
        warned = outcome(lambda: theirs.spsolve(A, there))
    assert warned == outcome(lambda: theirs.spsolve(A, there))


@pytest.mark.parametrize("left", "fdFD")
@pytest.mark.parametrize("right", ["f", "d", "F", "D", "i", "?"])
def test_right_hand_sides_of_another_dtype(cupy, theirs, left, right):
    """Complex ones lose their imaginary parts, with CuPy's warning."""
    host = random_matrix(N, left)
    b = (rhs(N, right) > 0) if right == "?" else rhs(N, right)
    A, there = on_device(host), cupy.asarray(b)
    lu = theirs.splu(A)
    calls = (lambda: theirs.splu(A).solve(there), lambda: theirs.spsolve(A, there))
    expected = [outcome(call) for call in calls]
    with gs.enabled():
        assert [outcome(call) for call in calls] == expected
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = theirs.splu(A).solve(there)
            assert looks(x) == looks(lu.solve(there))
            used = there.astype(left).get()
    assert backward_error(host, x.get(), used) < 50 * EPS[left]


@ENGINES
def test_a_factor_is_one_of_cupys(cupy, theirs, engine):
    host, b = random_matrix(N), cupy.asarray(rhs(N))
    A = on_device(host)
    expected = theirs.splu(A)
    with gs.enabled():
        lu = theirs.splu(A)
    assert isinstance(lu, theirs.SuperLU)
    for name in ("shape", "nnz", "L", "U", "perm_r", "perm_c"):
        assert type(getattr(lu, name)) is type(getattr(expected, name)), name
    for name in ("perm_r", "perm_c"):
        assert looks(getattr(lu, name)) == looks(getattr(expected, name)), name
    for name in ("L", "U"):
        ours, cupys = (getattr(each, name) for each in (lu, expected))
        assert (ours.dtype, ours.shape, ours.indices.dtype) == (cupys.dtype, cupys.shape, cupys.indices.dtype), name
    product = (lu.L.get() @ lu.U.get())[lu.perm_r.get()][:, lu.perm_c.get()]
    assert abs(product - host).max() < 1e-12
    for trans, op in (("N", host), ("T", host.T), ("H", host.T)):
        x = theirs.SuperLU.solve(lu, b, trans)  # CuPy's own solve, by our triangles
        assert backward_error(op, x.get(), b.get()) < 1e-12
    copy = pickle.loads(pickle.dumps(lu))
    assert backward_error(host, copy.solve(b).get(), b.get()) < 50 * EPS["d"]


def test_refusals_are_cupys(cupy, theirs):
    host, b = random_matrix(N), cupy.asarray(rhs(N))
    A, wide = on_device(host), on_device(sp.eye_array(4, 5))
    truths = on_device(sp.eye_array(N, dtype=bool))
    dense, cube = cupy.asarray(host.toarray()), cupy.zeros((N, 2, 2))
    matrices = (host, dense, wide, truths, None)
    sides = (b.get(), A, cube, b[:-1], cupy.zeros(()), b.reshape(1, -1), None)
    calls = [lambda f=f, M=M: f(M) for f in (theirs.splu, theirs.factorized) for M in matrices]
    calls += [lambda M=M: theirs.spsolve(M, b) for M in matrices] + [lambda s=s: theirs.spsolve(A, s) for s in sides]
    calls += [lambda s=s: theirs.splu(A).solve(s) for s in sides]
    calls += [lambda t=t: theirs.splu(A).solve(b, t) for t in ("n", "C", "", None, 0)]
    calls += [lambda: theirs.splu(A, permc_spec="nonsense"), lambda: theirs.splu(A, options={"nonsense": 1})]
    calls += [lambda: theirs.splu(), lambda: theirs.splu(A, nonsense=1)]
    expected = [outcome(call) for call in calls]
    with gs.enabled():
        found = [outcome(call) for call in calls]
    for k, pair in enumerate(zip(found, expected, strict=True)):
        assert pair[0] == pair[1], k
    assert sum(isinstance(each[0], tuple) for each in expected) > 30


def test_what_is_left_to_cupy_is_solved(cupy, theirs):
    """Right-hand sides of a subclass go through CuPy's own solve and our triangles."""
    host = random_matrix(N)
    array_class = type("Array", (cupy.ndarray,), {})
    A, b = on_device(host), cupy.asarray(rhs(N)).view(type=array_class)
    expected = outcome(lambda: theirs.splu(A).solve(b))
    with gs.enabled():
        lu = theirs.splu(A)
        assert outcome(lambda: lu.solve(b)) == expected
        x = lu.solve(b)
    assert backward_error(host, x.get(), b.get()) < 1e-12


def test_singular_matrices(cupy, theirs):
    """splu raises as SciPy's does; spsolve is CuPy's, with its warning."""
    host = random_matrix(N).tolil()
    host[:, 7] = 0
    A, b = on_device(host), cupy.asarray(rhs(N))
    expected = outcome(lambda: theirs.spsolve(A, b))
    for _ in range(2):
        for function in (theirs.splu, theirs.factorized):
            with pytest.raises(RuntimeError, match="Factor is exactly singular"):
                function(A)
        gs.install()
    assert outcome(lambda: theirs.spsolve(A, b)) == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(cupy, theirs, bad):
    host = random_matrix(N)
    host.data[5] = bad
    A, b = on_device(host), cupy.asarray(rhs(N))
    calls = (lambda: theirs.splu(A), lambda: theirs.factorized(A), lambda: theirs.spsolve(A, b))
    expected = [outcome(call) for call in calls]
    gs.install()
    assert [outcome(call) for call in calls] == expected
    assert isinstance(spla.splu(random_matrix(N)), gs.LUFactor)


@ENGINES
def test_the_callers_stream_and_device_stay(cupy, theirs, engine):
    """Right-hand sides that a stream is still busy with, and solutions that it goes on with."""
    host, b = random_matrix(N), rhs(N, "d", (3,))
    A, ready = on_device(host), cupy.asarray(b)
    slow = cupy.ones((2048, 2048))
    cupy.cuda.Device().synchronize()
    stream, device = cupy.cuda.Stream(non_blocking=True), cupy.cuda.runtime.getDevice()
    with gs.enabled(), stream:
        lu = theirs.splu(A)
        for solve in (lu.solve, lambda there: theirs.spsolve(A, there)):
            for shape in (b.shape, b[:, 0].shape):
                there = cupy.full(shape, np.nan, order="F")
                product = slow
                for _ in range(10):
                    product = product @ slow * (1 / 2048)
                there[...] = (ready if len(shape) == 2 else ready[:, 0]) * product[0, 0]
                x = solve(there) * 2
                assert cupy.cuda.get_current_stream() == stream
                assert cupy.cuda.runtime.getDevice() == device
                stream.synchronize()
                expected = b if len(shape) == 2 else b[:, 0]
                assert backward_error(host, x.get() / 2, expected) < 1e-12


@pytest.fixture(params=["gpusplu", "installed"])
def spsolve(cupy, theirs, monkeypatch, request):
    """Ours, or cupyx's under install(), by an engine on the device."""
    from gpusplu.install import compat_cupyx

    def choose(engine):
        for module in (solving, compat_cupyx):
            monkeypatch.setattr(module, "automatic", lambda: read_request(engine))

    gs.cache_clear()
    if request.param == "installed":
        gs.install()
    function = theirs.spsolve if request.param == "installed" else gs.spsolve
    yield lambda A, b, engine="supernodal": (choose(engine), function(A, b))[1]
    gs.cache_clear()


@pytest.fixture
def stays(cupy, monkeypatch):
    """A context in which matrices, values and vectors that leave the device, or come there, are an error."""
    import cupyx.scipy.sparse

    kinds = ((getattr(cupyx.scipy.sparse, f"{kind}_matrix"), "get") for kind in ("csr", "csc"))
    return partial(
        staying, monkeypatch, (matrix, "to_device"), (device_patterns_cache.DeviceColumns, "on_host"), *kinds
    )


@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("columns", [(), (1,), (4,)])
@pytest.mark.filterwarnings("ignore:CSR format:scipy.sparse.SparseEfficiencyWarning")
def test_spsolve_stays_on_the_device(cupy, spsolve, stays, engine, kind, dtype, columns):
    host, b = random_matrix(N, dtype), rhs(N, dtype, columns)
    A, there = on_device(host, kind), cupy.asarray(b, order="C")
    for _ in range(2):
        spsolve(A, there, engine)
    assert len(device_patterns_cache._device_patterns) == 1
    for scale in (2, 3, 4):
        A.data *= A.dtype.type(scale)
        with stays():
            x = spsolve(A, there, engine)
        assert type(x) is cupy.ndarray and x.dtype == A.dtype
        assert backward_error(A.get(), x.get().reshape(b.shape), b) < 50 * EPS[dtype]
    assert (gs.cache_info().hits, gs.cache_info().misses) == (4, 1)


def edits(A):
    """Of a matrix of the host, by array: a place and a number that make another matrix, solvable too."""
    row = next(r for r in range(N - 1) if A.indptr[r + 2] - A.indptr[r + 1] > 1)
    inside = A.indices[A.indptr[row + 1] : A.indptr[row + 2]]
    smallest = A.indptr[row + 1] + int(abs(A.data[A.indptr[row + 1] : A.indptr[row + 2]]).argmin())
    free = next(column for column in range(N) if column not in inside)
    return {"indices": (smallest, free), "indptr": (row + 1, A.indptr[row + 1] + 1), "data": (0, 7.5)}


@pytest.mark.parametrize("name", ["indices", "indptr", "data"])
def test_arrays_that_a_kernel_has_edited(cupy, spsolve, name):
    """In another stream than before, which is still busy: nothing of what was there before is used."""
    host, b = random_matrix(N), rhs(N)
    A, there = on_device(host), cupy.asarray(b)
    for _ in range(3):
        spsolve(A, there)
    place, number = edits(A.get())[name]
    array, before = getattr(A, name), A.get()
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        slow = cupy.ones((2048, 2048))
        for _ in range(10):
            slow = slow @ slow * (1 / 2048)
        array[place] = (slow[0, 0] * number).astype(array.dtype)
        x = spsolve(A, there)
        stream.synchronize()
    edited = A.get()
    assert abs(edited - before).max() > 0
    assert backward_error(edited, x.get(), b) < 50 * EPS["d"]


def test_cupys_interpolation_goes_through_us(cupy, theirs, monkeypatch):
    """It has spsolve by value."""
    from cupyx.scipy.interpolate import make_interp_spline

    asked, solve_stored = [], solving.solve_stored
    monkeypatch.setattr(solving, "solve_stored", lambda *a: (asked.append(True), solve_stored(*a))[1])
    x = cupy.linspace(0, 3, 40)
    expected = make_interp_spline(x, cupy.sin(x))(x[:-1] + 0.01)
    assert asked == []
    with gs.enabled():
        found = make_interp_spline(x, cupy.sin(x))(x[:-1] + 0.01)
    assert asked == [True]
    cupy.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_cupy_is_imported_by_others_only(cupy):
    run(
        "import sys, warnings; import gpusplu as gs; gs.install()\n"
        "assert not {'cupy', 'cupyx'} & set(sys.modules)\n"
        "warnings.simplefilter('ignore')\n"
        "import cupy, cupyx.scipy.sparse as sparse, cupyx.scipy.sparse.linalg as theirs\n"
        "assert hasattr(theirs.splu, '__wrapped__')\n"
        "lu = theirs.splu(sparse.csr_matrix(2 * cupy.eye(3)))\n"
        "assert type(lu) is not theirs.SuperLU and isinstance(lu, theirs.SuperLU)\n"
        "cupy.testing.assert_array_equal(lu.solve(cupy.ones(3)), 0.5 * cupy.ones(3))\n"
        "gs.uninstall(); assert type(theirs.splu(sparse.csr_matrix(cupy.eye(3)))) is theirs.SuperLU"
    )
