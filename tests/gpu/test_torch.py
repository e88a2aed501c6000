"""Tensors on a CUDA device: gpusplu.torch, and gpusplu's own functions; bodies in support/torch_checks.py."""

import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import gpusplu as gs  # noqa: E402
import gpusplu.torch as gst  # noqa: E402
from support import torch_checks as checks  # noqa: E402
from support.tensors import DTYPES, LAYOUTS, OPERATIONS, numbers, on_pattern, sparse  # noqa: E402

pytestmark = [pytest.mark.gpu, *(pytest.mark.filterwarnings(f"ignore:{text}") for text in checks.WARNINGS)]


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
@pytest.mark.parametrize("shape", [(6,), (6, 3)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_solutions(dtype, layout, shape, trans):
    checks.solutions("cuda", dtype, layout, shape, trans)


@pytest.mark.parametrize("trans", OPERATIONS)
@pytest.mark.parametrize("nbatch", [None, 3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_derivatives(dtype, nbatch, trans):
    checks.derivatives("cuda", dtype, (6,), trans, nbatch)
    checks.derivatives("cuda", dtype, (6, 2) if nbatch is None else (nbatch, 6, 2), trans, nbatch)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_gradient_of_a_sparse_tensor(layout):
    checks.gradient_is_sparse("cuda", layout)
    checks.second_derivative_of_a_tensor("cuda", layout)


def test_backward_makes_no_factorization():
    checks.one_factorization("cuda")


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)], ids=str)
def test_vmap(in_dims):
    checks.one_batch_under_vmap("cuda", in_dims)


def test_second_derivatives_of_torch_func():
    checks.every_second_derivative("cuda")


@pytest.mark.parametrize("nbatch", [None, 3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_determinants(dtype, nbatch):
    checks.determinants("cuda", dtype, nbatch)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_function(dtype, layout):
    checks.plain_functions("cuda", dtype, layout)


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
            checks.close(x, expected, 1e-10)
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
    checks.close(x, 2 * expected, 1e-10)


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
    checks.close(got, expected, 1e-9)
