"""cupyx's functions, taken over, with engines of the GPU: vectors stay on the device."""

import numpy as np
import pytest

import gpusplu as gs
from gpusplu.common.timing import backward_error
from gpusplu.engines.problem import Request
from support import fake_cupy
from support.small_matrices import EPS, random_matrix, rhs


def refuse(array, *arguments, **keywords):
    raise AssertionError("an array left the device")


@pytest.fixture
def engine(cupyx, device, monkeypatch, request):
    from gpusplu.install import compat_cupyx  # the stand-in is there now

    monkeypatch.setattr(compat_cupyx, "automatic", lambda: Request(request.param, "tested", 0))
    gs.install()
    return request.param


@pytest.mark.parametrize("engine", ["supernodal", "glu", "sflu", "crisscross"], indirect=True)
@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("columns", [(), (3,)])
def test_vectors_stay_on_the_device(cupyx, device, monkeypatch, engine, dtype, columns):
    host, b = random_matrix(30, dtype), rhs(30, dtype, columns)
    A, on_device, other = cupyx.matrix(host), cupyx.cupy.asarray(b), cupyx.cupy.asarray(b.astype("D"))
    lu = cupyx.linalg.splu(A)
    assert lu._factor.engine == engine
    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.ndarray, "get", refuse)
        patch.setattr(fake_cupy, "asarray", refuse)
        solved = [(op, lu.solve(on_device, trans)) for trans, op in (("N", host), ("T", host.T), ("H", host.conj().T))]
        solved.append((host, cupyx.linalg.factorized(A)(on_device)))
        solved.append((host, cupyx.linalg.spsolve(A, on_device)))
        if dtype == "F":
            solved.append((host, lu.solve(other)))
    for op, x in solved:
        assert (type(x), x.dtype, x.shape, x.flags.f_contiguous) == (fake_cupy.ndarray, dtype, b.shape, True)
        assert backward_error(op, x.get(), b) < 50 * EPS[dtype]
    assert cupyx.asked == []
    assert device.counts["check_values"] > 0
    with pytest.raises(TypeError, match="on a device"):
        lu.solve(np.ones(30))
