"""Derivatives for many directions together: ``vectorize=True``, ``check_batched_grad=True`` and torch.func."""

import pytest
import torch
import torch.autograd.functional as F
from torch.autograd import gradcheck, gradgradcheck
from torch.func import hessian, jacfwd, jacrev, vmap

import gpusplu as gs
import gpusplu.torch as gst
from support.tensors import WARNINGS, numbers, on_pattern

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in WARNINGS]

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
THOROUGH = pytest.mark.thorough
SHAPES = pytest.mark.parametrize(("shape", "nbatch"), [((6,), None), ((6, 2), None), ((2, 6), 2), ((2, 6, 3), 2)])
BATCHED = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}


def arguments(dtype, shape, nbatch):
    pattern, values = on_pattern(dtype=dtype, nbatch=nbatch)
    return pattern, values, numbers(*shape, dtype=dtype).requires_grad_()


def same(got, expected):
    if isinstance(got, tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
    else:
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.complex128, marks=THOROUGH)])
@SHAPES
@pytest.mark.parametrize("trans", ["N", "T", pytest.param("H", marks=THOROUGH)])
def test_batched_gradients(dtype, shape, nbatch, trans):
    pattern, values, b = arguments(dtype, shape, nbatch)

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values, trans=trans)

    assert gradcheck(solve, (values, b), **BATCHED)
    assert gradgradcheck(solve, (values, b), check_batched_grad=True)


@DTYPES
def test_batched_gradients_by_one_factor(dtype):
    pattern, values, b = arguments(dtype, (6,), None)

    def solve(values, b):
        solver = gst.factorized(pattern, values=values)
        return solver(b) + solver(b, "T")

    assert gradcheck(solve, (values, b), **BATCHED)
    assert gradgradcheck(solve, (values, b), check_batched_grad=True)


@DTYPES
@pytest.mark.parametrize("nbatch", [None, 2])
def test_batched_gradients_of_determinants(dtype, nbatch):
    pattern, values, _ = arguments(dtype, (6,), nbatch)

    def logabsdet(values):
        return gst.slogdet(pattern, values=values).logabsdet

    assert gradcheck(logabsdet, (values,), **BATCHED)
    assert gradgradcheck(logabsdet, (values,), check_batched_grad=True)


@SHAPES
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobian(shape, nbatch, strategy):
    """One factorization, whatever the number of rows."""
    pattern, values, b = arguments(torch.float64, shape, nbatch)

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values)

    before = gs.factorization_count()
    got = F.jacobian(solve, (values, b), vectorize=True, strategy=strategy)
    assert gs.factorization_count() - before == (nbatch or 1)
    same(got, F.jacobian(solve, (values, b)))
    same(got, jacrev(solve, (0, 1))(values.detach(), b.detach()))
    same(got, jacfwd(solve, (0, 1))(values.detach(), b.detach()))


@pytest.mark.parametrize("outer", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_hessian(shape, outer):
    pattern, values, b = arguments(torch.float64, shape, None)

    def loss(values, b):
        return gst.spsolve(pattern, b, values=values).pow(3).sum() + gst.slogdet(pattern, values=values).logabsdet

    got = F.hessian(loss, (values, b), vectorize=True, outer_jacobian_strategy=outer)
    same(got, F.hessian(loss, (values, b)))
    same(got, hessian(loss, (0, 1))(values.detach(), b.detach()))


@DTYPES
@pytest.mark.parametrize("mapped", [(None, 0), (0, None), (0, 0)])
def test_vmap_in_compiled_graphs(dtype, mapped, capfd):
    """By torch's own loop it would be a call for each of the batch, and a warning."""
    pattern, values, _ = arguments(dtype, (6,), None)
    values, b = values.detach(), numbers(6, dtype=dtype)
    given = [values, b]
    for k in range(2):
        if mapped[k] is not None:
            given[k] = torch.stack([given[k], 2 * given[k], 3 * given[k]])

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values)

    same(torch.compile(vmap(solve, mapped), backend="eager")(*given), vmap(solve, mapped)(*given))
    assert "performance drop" not in capfd.readouterr().err


def test_vmap_of_determinants_in_compiled_graphs():
    pattern, values, _ = arguments(torch.float64, (6,), None)
    several = torch.stack([values.detach(), 2 * values.detach()])

    def logabsdet(values):
        return gst.slogdet(pattern, values=values).logabsdet

    same(torch.compile(vmap(logabsdet), backend="eager")(several), vmap(logabsdet)(several))
