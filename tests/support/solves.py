"""What factors and solves have to fulfil, those of an engine in the emulator as those on a device.

`cupy` is what the fixture of that name yields: CuPy, or what stands in for it beside the emulator.
"""

import numpy as np

from gpusplu.common.timing import backward_error

from .small_matrices import EPS, rhs


def on_host(x):
    return x if type(x) is np.ndarray else x.get()


def check_solves(A, factor, columns=((),), put=np.asarray, limit=None):
    """Solve with A, its transpose and its conjugate transpose, for right-hand sides of n rows and these columns.

    Parameters
    ----------
    A : csc_array
    factor : Factor
    columns : sequence of tuple, optional
    put : callable, optional
        Takes a right-hand side where the factor is given it.
    limit : callable, optional
        ``limit(op, b, trans)`` is what the backward error has to stay below; 100 units of the precision unless given.
    """
    usual = 100 * EPS[A.dtype.char]
    for shape in columns:
        b = rhs(A.shape[0], A.dtype, shape)
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            given = put(b)
            x = factor.solve(given, trans)
            assert type(x) is type(given)
            assert (x.shape, x.dtype) == (b.shape, b.dtype)
            bound = usual if limit is None else limit(op, b, trans)
            assert backward_error(op, on_host(x), b) < bound, (trans, shape)
            assert factor.backward_error < usual


def check_against_cpu(cupy, A, factorize, engine, columns):
    """As accurate as the CPU engine, with values and right-hand sides on the device; the factor."""
    here, there = (factorize(A, engine=name) for name in ("cpu", engine))
    there.refactor(cupy.asarray(A.data))

    def limit(op, b, trans):
        return max(20 * EPS[A.dtype.char], 10 * backward_error(op, here.solve(b, trans), b))

    check_solves(A, there, columns, lambda b: cupy.asarray(np.asfortranarray(b)), limit)
    assert there.engine == engine
    return there


def check_bits_repeat(cupy, make, A, times, columns=(), disturb=lambda: None):
    """Those of a factor that is refactored with other values in between, and those of another factor.

    `disturb` is called before the other one is made.
    """
    b = cupy.asarray(rhs(A.shape[0], A.dtype, columns))
    factor = make(A)
    x = factor.solve(b).get()
    for _ in range(times):
        factor.refactor(cupy.asarray(3 * A.data))
        factor.refactor(cupy.asarray(A.data))
        assert factor.solve(b).get().tobytes() == x.tobytes()
    disturb()
    assert make(A).solve(b).get().tobytes() == x.tobytes()


def check_same_answers(whole, factor, A, scales, columns, put=np.asarray):
    """A factor has the bits of another one, and is accurate, for multiples of A."""
    b, several = rhs(A.shape[0], A.dtype), put(rhs(A.shape[0], A.dtype, columns))
    for scale in scales:
        values = put(scale * A.data)
        for each in (whole, factor):
            each.refactor(values)
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = factor.solve(put(b), trans)
            assert (x == whole.solve(put(b), trans)).all()
            assert backward_error(op * scale, on_host(x), b) < 1e3 * EPS[A.dtype.char]
        assert (factor.solve(several) == whole.solve(several)).all()
        assert (factor.refactor_solve(values, put(b)) == whole.refactor_solve(values, put(b))).all()


def check_launches(device, factor, values, b):
    """With arrays of the emulated device each call is one launch; `refactor_solve` was called before."""
    factor.refactor(values)
    factor.solve(b)
    device.counts.clear()
    factor.refactor(values)
    assert device.counts == {"copy": 1, "replay": 1}
    factor.solve(b)
    assert device.counts == {"copy": 3, "replay": 2, "synchronize": 1}
    device.counts.clear()
    factor.refactor_solve(values, b)
    assert device.counts == {"copy": 3, "replay": 1, "synchronize": 1}
