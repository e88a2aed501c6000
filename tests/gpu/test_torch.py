"""Tensors on a CUDA device: gpusplu.torch, and gpusplu's own functions; more in gradients/test_torch_solves.py."""

import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

import gpusplu as gs  # noqa: E402
import gpusplu.torch as gst  # noqa: E402
from support.tensors import (  # noqa: E402
    DTYPES,
    LAYOUTS,
    OPERATIONS,
    WARNINGS,
    close,
    dense,
    numbers,
    on_pattern,
    sparse,
)

pytestmark = [pytest.mark.gpu, *(pytest.mark.filterwarnings(f"ignore:{text}") for text in WARNINGS)]

#: torch adds with atomics, in any order.
ROUNDING = 1e-11


@pytest.fixture(autouse=True)
def with_cupy(cupy):
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")


@pytest.fixture
def large():
    """A matrix that auto takes to the device, as values that want a gradient on a pattern there."""
    A = gs.gallery.named("poisson:40x40x40")
    crow, col, values = (torch.from_numpy(one).cuda() for one in (A.indptr, A.indices, A.data))
    return gst.Pattern(torch.sparse_csr_tensor(crow, col, values, A.shape)), values.requires_grad_()


@pytest.mark.parametrize("trans", OPERATIONS)
@pytest.mark.parametrize("nbatch", [None, 3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [None, 2])
def test_derivatives(dtype, nbatch, trans, columns):
    shape = (6,) if columns is None else (6, columns) if nbatch is None else (nbatch, 6, columns)
    pattern, values = on_pattern(dtype=dtype, device="cuda", nbatch=nbatch)
    b = numbers(*shape, dtype=dtype, device="cuda").requires_grad_()

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values, trans=trans)

    assert gradcheck(solve, (values, b), check_forward_ad=True, fast_mode=True, nondet_tol=ROUNDING)
    assert gradgradcheck(solve, (values, b), fast_mode=True, nondet_tol=ROUNDING)


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)], ids=str)
def test_vmap(in_dims):
    pattern, values = on_pattern(device="cuda", nbatch=3)
    values, b = values.detach(), numbers(3, 6, device="cuda")
    values, b = (one if dim == 0 else one[0] for one, dim in zip((values, b), in_dims, strict=True))
    before = gs.factorization_count()
    x, gradients = torch.func.vmap(lambda v, c: both(pattern, v, c), in_dims)(values, b)
    assert gs.factorization_count() == before + (3 if in_dims[0] == 0 else 1)
    for system in range(3):
        v, c = (one[system] if dim == 0 else one for one, dim in zip((values, b), in_dims, strict=True))
        alone = both(pattern, v, c)
        close(x[system], alone[0])
        close(gradients[0][system], alone[1][0])
        close(gradients[1][system], alone[1][1])


def both(pattern, values, b):
    """A solution, and the gradient of its square, by torch.func."""

    def loss(values, b):
        x = gst.spsolve(pattern, b, values=values)
        return x.square().sum(), x

    gradients, x = torch.func.grad(loss, (0, 1), has_aux=True)(values, b)
    return x, gradients


def test_second_derivatives_of_torch_func():
    pattern, values = on_pattern(device="cuda")
    values, b, weights = values.detach(), numbers(6, device="cuda"), numbers(6, device="cuda", seed=1)

    def ours(values, b):
        return (gst.spsolve(pattern, b, values=values) * weights).sum()

    def theirs(values, b):
        return (torch.linalg.inv(dense(pattern, values)) @ b * weights).sum()

    ways = (torch.func.jacrev, torch.func.jacfwd)
    for arguments in ((0, 0), (0, 1), (1, 0)):
        expected = ways[0](ways[0](theirs, arguments[0]), arguments[1])(values, b)
        for outer in ways:
            for inner in ways:
                close(outer(inner(ours, arguments[0]), arguments[1])(values, b), expected)


@pytest.mark.parametrize("nbatch", [None, 3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_determinants(dtype, nbatch):
    pattern, values = on_pattern(5, dtype, "cuda", nbatch)

    def ours(values):
        return gst.slogdet(pattern, values=values)

    def theirs(values):
        return torch.linalg.slogdet(dense(pattern, values))

    for got, expected in zip(ours(values), theirs(values), strict=True):
        close(got, expected)
    weight = numbers(*values.shape[:-1], dtype=dtype, device="cuda")

    def loss(slogdet):
        return lambda values: (slogdet(values)[1] + (slogdet(values)[0] * weight).real).sum()

    for got, expected in zip(
        *(torch.autograd.functional.vhp(loss(one), values, values.detach()) for one in (ours, theirs)), strict=True
    ):
        close(got, expected)
    assert gradcheck(loss(ours), values, check_forward_ad=True, fast_mode=True, nondet_tol=ROUNDING)
    assert gradgradcheck(loss(ours), values, check_fwd_over_rev=True, fast_mode=True, nondet_tol=ROUNDING)
    (gradient,) = torch.autograd.grad(loss(ours)(values), values)
    close(torch.func.grad(loss(ours))(values.detach()), gradient)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_function(dtype, layout):
    """The functions of gpusplu that know nothing of derivatives."""
    A, b = sparse(dtype=dtype, layout=layout, device="cuda"), numbers(6, dtype=dtype, device="cuda")
    D, values = A.to_dense(), gst.pattern.entries(A)
    x = torch.linalg.solve(D, b)
    close(gs.spsolve(A, b), x)
    close(gs.spsolve(A, b[:, None]), x)  # as SciPy has it
    several = torch.stack([b, 2 * b], 1)
    close(gs.spsolve(A, several), torch.stack([x, 2 * x], 1))
    if layout != "coo":
        of_sparse = gs.spsolve(A, several.to_sparse_csc())
        assert of_sparse.layout == A.layout
        close(of_sparse.to_dense(), torch.stack([x, 2 * x], 1))
    close(gs.factorized(A)(b), x)
    lu = gs.splu(A)
    for trans, operation in OPERATIONS.items():
        close(lu.solve(b, trans), torch.linalg.solve(operation(D), b))
        close(lu.solve(several, trans), torch.linalg.solve(operation(D), several))
    lu.refactor(2 * values)
    close(lu.solve(b), x / 2)
    lu.refactor(A)
    close(lu.solve(b), x)
    close(lu.refactor_solve(4 * values, b), x / 4)
    symbolic = gs.analyze(A)
    close(symbolic.factor(2 * values).solve(b), x / 2)
    batch = gs.splu_batch(A, torch.stack([values, 2 * values]))
    close(batch.solve(b), torch.stack([x, x / 2]))
    assert "engine" in gs.explain(A)


def test_mixtures_of_devices():
    A, b = sparse(device="cuda"), numbers(6)
    for function in (gs.spsolve, gst.spsolve):
        with pytest.raises(ValueError, match="cuda:0"):
            function(A, b)
        with pytest.raises(ValueError, match="cuda:0"):
            function(A.cpu(), b.cuda())


def test_values_stay_on_the_device(large, monkeypatch):
    """From the second factorization of a pattern on, in a loop as training has it."""
    pattern, values = large
    b = torch.ones(pattern.n, dtype=values.dtype, device="cuda", requires_grad=True)
    moved = []
    real = gs.common.matrix.to_host
    monkeypatch.setattr(gs.common.matrix, "to_host", lambda A: moved.append(A) or real(A))
    expected = None
    for step in range(4):
        values.grad = b.grad = None
        before = len(moved)
        x = gst.spsolve(pattern, b, values=values)
        x.square().sum().backward()
        if step:
            assert not [A for A in moved[before:] if gs.common.matrix.is_cupy(A)]
            close(x, expected, 1e-10)
        expected = x.detach().clone()
    A = pattern.tensor(values.detach())
    assert float((A @ x.detach() - b.detach()).abs().max()) < 1e-10
    assert x.device == values.grad.device == values.device


def test_memory_of_a_pattern_goes_with_it():
    from gpusplu.torch import native

    for _ in range(3):
        pattern, values = on_pattern(device="cuda")
        gst.spsolve(pattern, numbers(6, device="cuda"), values=values).sum().backward()
    del pattern
    gc.collect()
    assert len(native._known) == 0


def test_in_another_stream(large):
    pattern, values = large
    b = torch.ones(pattern.n, dtype=values.dtype, device="cuda")
    expected = gst.spsolve(pattern, b, values=values).detach()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = b * 1
        torch.cuda._sleep(50_000_000)
        late = late + 1  # not there yet when the solve is queued
        x = gst.spsolve(pattern, late, values=values)
    torch.cuda.current_stream().wait_stream(stream)
    close(x, 2 * expected, 1e-10)


def test_singular():
    A = torch.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], torch.ones(4, dtype=torch.float64), (2, 2), device="cuda")
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        gst.spsolve(A.requires_grad_(), numbers(2, device="cuda"))
    sign, logabsdet = gst.slogdet(A)
    assert (sign.item(), logabsdet.item()) == (0, -np.inf)


def test_compiled(large):
    pattern, values = large
    b = torch.ones(pattern.n, dtype=values.dtype, device="cuda")

    def loss(values):
        return gst.spsolve(pattern, b, values=values).square().sum()

    (expected,) = torch.autograd.grad(loss(values), values)
    (got,) = torch.autograd.grad(torch.compile(loss, fullgraph=True, backend="aot_eager")(values), values)
    close(got, expected, 1e-9)
