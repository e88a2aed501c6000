"""torch.compile: whole graphs, and one factorization in them."""

import gc

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import gpusplu as gs  # noqa: E402
import gpusplu.torch as gst  # noqa: E402
from gpusplu.torch import native  # noqa: E402
from support.tensors import WARNINGS, close, numbers, on_pattern  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in WARNINGS]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    gc.collect()
    assert not native._held


def same_gradients(function, *arguments):
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    before = gs.factorization_count()
    got = torch.autograd.grad(compiled(*arguments), arguments)
    made = gs.factorization_count() - before
    for one, expected in zip(got, torch.autograd.grad(function(*arguments), arguments), strict=True):
        close(one, expected)
    return made


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_solves(dtype, trans):
    pattern, values = on_pattern(dtype=dtype)
    b = numbers(6, 2, dtype=dtype).requires_grad_()
    made = same_gradients(lambda v, b: gst.spsolve(pattern, b, values=v, trans=trans).abs().sum(), values, b)
    assert made == 1


def test_batches():
    pattern, values = on_pattern(nbatch=3)
    b = numbers(6).requires_grad_()

    def loss(values, b):
        solve = gst.factorized(pattern, values=values)
        return (solve(b) * solve(b, "T")).sum()

    assert same_gradients(loss, values, b) == 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_determinants(dtype):
    pattern, values = on_pattern(dtype=dtype)

    def loss(values):
        sign, logabsdet = gst.slogdet(pattern, values=values)
        return logabsdet + (sign * (1 + 2j if dtype.is_complex else 1)).real

    assert same_gradients(loss, values) == 1


def test_other_values_of_the_same_graph():
    pattern, values = on_pattern()
    b = numbers(6)
    compiled = torch.compile(lambda v: gst.spsolve(pattern, b, values=v), fullgraph=True, backend="aot_eager")
    for factor in (1, 2, 3):
        other = factor * values.detach()
        close(compiled(other), gst.spsolve(pattern, b, values=other))


def test_operators_are_as_torch_wants_them():
    pattern, values = on_pattern()
    b = numbers(6).requires_grad_()
    arrays = pattern.pointers, pattern.indices, pattern.by_rows
    handle = gst.operators.factor(values.detach(), *arrays, False)
    torch.library.opcheck(gst.operators.solve, (values, b, handle, *arrays, "N", True))
    torch.library.opcheck(gst.operators.slogdet, (values, handle, *arrays))
