"""gpusplu.torch, some of it on a CUDA device too: solutions, derivatives of all orders and modes, bad input."""

import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

import gpusplu as gs  # noqa: E402
import gpusplu.torch as gst  # noqa: E402
from gpusplu.torch import native  # noqa: E402
from support.cupys import real_cupy  # noqa: E402
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

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in WARNINGS]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda":
        real_cupy()
        if not torch.cuda.is_available():
            pytest.skip("torch has no CUDA device")
    return request.param


@pytest.mark.parametrize("trans", OPERATIONS)
@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_solutions(device, dtype, layout, shape, trans):
    A, b = sparse(dtype=dtype, layout=layout, device=device), numbers(*shape, dtype=dtype, device=device)
    x = gst.spsolve(A, b, trans=trans)
    close(x, torch.linalg.solve(OPERATIONS[trans](A.to_dense()), b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_entry_of_derivatives(dtype):
    pattern, values = on_pattern(dtype=dtype)
    b = numbers(6, dtype=dtype).requires_grad_()

    def solve(values, b):
        return gst.spsolve(pattern, b, values=values)

    assert gradcheck(solve, (values, b), check_forward_ad=True)
    assert gradgradcheck(solve, (values, b))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradient_of_a_sparse_tensor(device, layout):
    A = sparse(layout=layout, device=device).requires_grad_()
    b = numbers(6, device=device).requires_grad_()
    gradient, of_b = torch.autograd.grad(gst.spsolve(A, b).square().sum(), (A, b))
    assert gradient.layout == A.layout
    assert gradient.shape == A.shape
    D = A.detach().to_dense().requires_grad_()
    c = b.detach().clone().requires_grad_()
    torch.linalg.solve(D, c).square().sum().backward()
    close(of_b, c.grad)
    close(gst.pattern.entries(gradient), D.grad[gst.Pattern(A).coordinates()])
    if layout != "csc":  # torch accumulates no gradients in that layout
        gst.spsolve(A, b).square().sum().backward()
        close(A.grad.to_dense(), gradient.to_dense())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_second_derivative_of_a_sparse_tensor(device, layout):
    A = sparse(layout=layout, device=device).requires_grad_()
    b = numbers(6, device=device)
    (first,) = torch.autograd.grad(gst.spsolve(A, b).square().sum(), A, create_graph=True)
    (second,) = torch.autograd.grad(gst.pattern.entries(first).square().sum(), A)
    pattern = gst.Pattern(A)
    values = gst.pattern.entries(A).detach().requires_grad_()
    loss = torch.linalg.solve(dense(pattern, values), b).square().sum()
    (first,) = torch.autograd.grad(loss, values, create_graph=True)
    (expected,) = torch.autograd.grad(first.square().sum(), values)
    close(gst.pattern.entries(second), expected)


def test_backward_makes_no_factorization(device):
    pattern, values = on_pattern(device=device)
    b = numbers(6, device=device).requires_grad_()
    before = gs.factorization_count()
    loss = gst.spsolve(pattern, b, values=values).square().sum()
    assert gs.factorization_count() == before + 1
    first = torch.autograd.grad(loss, (values, b), create_graph=True)
    torch.autograd.grad(sum(one.square().sum() for one in first), (values, b))
    assert gs.factorization_count() == before + 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_tensors_within_transforms(layout):
    A, b = sparse(layout=layout), numbers(3, 6)

    def loss(b):
        return gst.spsolve(A, b).square().sum()

    expected = torch.stack([torch.autograd.functional.jacobian(loss, one) for one in b])
    close(torch.func.grad(loss)(b[0]), expected[0])
    close(torch.func.vmap(torch.func.grad(loss))(b), expected)
    close(torch.func.jacfwd(loss)(b[0]), expected[0])


def test_vmap_of_no_matrices():
    pattern, values = on_pattern()
    b = numbers(6)
    with pytest.raises(ValueError, match=r"at least one system, got values of shape \(0, "):
        torch.func.vmap(lambda one: gst.spsolve(pattern, b, values=one))(values.detach().expand(0, -1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_determinant_of_a_sparse_tensor(dtype, layout):
    A = sparse(dtype=dtype, layout=layout)
    for found, expected in zip(gst.slogdet(A), torch.linalg.slogdet(A.to_dense()), strict=True):
        close(found, expected)


def test_a_batch_with_a_singular_matrix_has_no_gradient():
    pattern, values = on_pattern(20, nbatch=3)
    values.data[1] = 0
    with pytest.raises(torch.linalg.LinAlgError, match="a matrix of the batch is singular"):
        gst.slogdet(pattern, values=values)[1].sum().backward()


def test_determinant_of_a_singular_matrix():
    A = singular().requires_grad_()
    sign, logabsdet = gst.slogdet(A)
    assert (sign, logabsdet) == (0, -np.inf)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        logabsdet.backward()
    values = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    sign, logabsdet = gst.slogdet(gst.Pattern(A), values=values)
    assert sign.tolist() == [1, 0]
    assert logabsdet.tolist() == [0, -np.inf]


def test_a_training_loop_analyses_once():
    pattern, values = on_pattern(40)
    b = numbers(40)
    for _ in range(5):
        gst.spsolve(pattern, b, values=values).square().sum().backward()
    assert gs.cache_info().misses == 1
    assert gs.cache_info().hits == 4


def test_factors_live_as_long_as_somebody_needs_them():
    pattern, values = on_pattern()
    b = numbers(6)
    torch.func.hessian(lambda v: gst.spsolve(pattern, b, values=v).sum())(values.detach())
    gc.collect()
    assert not native._held
    x = torch.func.vjp(lambda v: gst.spsolve(pattern, b, values=v), values.detach())
    assert len(native._held) == 1
    del x
    gc.collect()
    assert not native._held


def test_a_copied_handle_is_factored_again():
    pattern, values = on_pattern()
    values = values.detach()
    handle = native.handle_of(native.factored(pattern, values)).clone()
    gc.collect()
    again = native.factored_of(handle, pattern, values)
    b = numbers(6)
    close(native.solve(again, b, "N", True), gst.spsolve(pattern, b, values=values))


def test_one_factor_for_several_solves():
    A, b = sparse().requires_grad_(), numbers(6)
    before = gs.factorization_count()
    solve = gst.factorized(A)
    (solve(b).sum() + solve(b, "T").sum()).backward()
    assert gs.factorization_count() == before + 1
    gradient = A.grad.to_dense()
    D = A.detach().to_dense().requires_grad_()
    (torch.linalg.solve(D, b).sum() + torch.linalg.solve(D.T, b).sum()).backward()
    where = gst.Pattern(A).coordinates()
    close(gradient[where], D.grad[where])


@pytest.mark.parametrize("batch", [(3,), (2, 2)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_batches(layout, batch):
    D = sparse(layout="csr").to_dense() * (1 + torch.rand(*batch, 1, 1, dtype=torch.float64))
    A = D.to_sparse() if layout == "coo" else getattr(D, LAYOUTS[layout])()
    assert A.shape == (*batch, 6, 6)
    whole, b = D.clone().requires_grad_(), numbers(*batch, 6)
    close(gst.spsolve(A, b), torch.linalg.solve(D, b))
    of_solves = lambda solve, A: solve(A, b).square().sum()  # noqa: E731
    of_determinants = lambda slogdet, A: slogdet(A)[1].sum()  # noqa: E731
    pairs = ((of_solves, gst.spsolve, torch.linalg.solve), (of_determinants, gst.slogdet, torch.linalg.slogdet))
    for loss, ours, theirs in pairs:
        leaf, before = A.detach().clone().requires_grad_(), gs.factorization_count()
        (found,) = torch.autograd.grad(loss(ours, leaf), leaf)
        assert gs.factorization_count() - before == D.shape[:-2].numel()
        (expected,) = torch.autograd.grad(loss(theirs, whole), whole)
        assert found.shape == A.shape and found.layout is A.layout
        close(found.to_dense(), expected * (D != 0))


def test_coordinates_of_a_batch_that_are_not_in_order():
    D = torch.stack([2 * torch.eye(2), torch.eye(2)])
    A = torch.sparse_coo_tensor(torch.tensor([[1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1]]), torch.tensor([1.0, 2, 1, 2]))
    close(gst.spsolve(A, torch.ones(2)), torch.linalg.solve(D, torch.ones(2, 2)))
    with pytest.raises(torch.linalg.LinAlgError):
        gst.spsolve(
            torch.sparse_coo_tensor(torch.empty(3, 0, dtype=torch.long), torch.empty(0), (2, 3, 3)), torch.ones(3)
        )


def test_patterns_that_differ_in_a_batch():
    crow, col = torch.tensor([[0, 1, 3], [0, 2, 3]]), torch.tensor([[0, 0, 1], [0, 1, 1]])
    A = torch.sparse_csr_tensor(crow, col, torch.ones(2, 3), (2, 2, 2))
    with pytest.raises(ValueError, match=r"must have one pattern: the pointers of matrix 1"):
        gst.spsolve(A, torch.ones(2))
    D = A.to_dense()
    with pytest.raises(ValueError, match=r"must have one pattern: the indices of matrix 1"):
        gst.spsolve(D.to_sparse(), torch.ones(2))
    with pytest.raises(ValueError, match=r"must have one pattern: the number of entries of matrix 2"):
        gst.spsolve(torch.cat([D[:1], D[:1], torch.eye(2)[None]]).to_sparse(), torch.ones(2))
    for none in (
        torch.empty(0, 2, 2).to_sparse(),
        torch.sparse_csr_tensor(crow[:0], col[:0], torch.ones(0, 3), (0, 2, 2)),
    ):
        with pytest.raises(ValueError, match=r"batch of no matrices"):
            gst.spsolve(none, torch.ones(2))
    with pytest.raises(ValueError, match=r"no dense dimensions"):
        gst.spsolve(torch.ones(2, 2, 2).to_sparse(2), torch.ones(2))


def test_unsorted_and_duplicate_entries():
    where = torch.tensor([[0, 1, 0, 0], [1, 1, 0, 0]])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0]).requires_grad_()
    A = torch.sparse_coo_tensor(where, values, (2, 2))
    b = torch.tensor([3.0, 2.0])
    x = gst.spsolve(A, b)
    close(x, torch.linalg.solve(torch.tensor([[7.0, 1.0], [0.0, 2.0]]), b), 1e-6)
    x.sum().backward()
    assert values.grad[2] == values.grad[3] != 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
def test_single_precision(dtype):
    A, b = sparse(dtype=dtype).requires_grad_(), numbers(6, dtype=dtype)
    x = gst.spsolve(A, b)
    close(x, torch.linalg.solve(A.detach().to_dense(), b), 1e-5)
    x.abs().sum().backward()
    assert A.grad.dtype == dtype


def test_complex_right_hand_sides_of_a_real_matrix():
    pattern, values = on_pattern()
    b = numbers(6, dtype=torch.complex128).requires_grad_()
    assert gradcheck(lambda v, b: gst.spsolve(pattern, b, values=v), (values, b))


def test_right_hand_sides_in_single_precision():
    A, b = sparse(), numbers(6, dtype=torch.float32)
    x = gst.spsolve(A, b)
    close(x, torch.linalg.solve(A.to_dense(), b.double()))


def test_views_and_conjugates():
    A, b = sparse(dtype=torch.complex128), numbers(6, 3, dtype=torch.complex128)
    close(gst.spsolve(A, b.conj()[:, 1]), torch.linalg.solve(A.to_dense(), b[:, 1].conj()))
    close(gst.spsolve(A, b.imag), torch.linalg.solve(A.to_dense(), b.imag.to(b.dtype)))
    x = gst.spsolve(gst.Pattern(A), b[:, 0], values=A.values().clone().conj())
    close(x, torch.linalg.solve(A.to_dense().conj(), b[:, 0]))
    one = torch.ones(1, dtype=torch.complex128).expand(6)
    close(gst.spsolve(A, one), torch.linalg.solve(A.to_dense(), one))


def singular():
    return torch.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], torch.ones(4, dtype=torch.float64), (2, 2))


def test_singular_matrices():
    A, b = singular().requires_grad_(), numbers(2)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        gst.spsolve(A, b)
    A = gst.Pattern(A)
    values = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    with pytest.raises(torch.linalg.LinAlgError, match="singular: 1"):
        gst.spsolve(A, b.float(), values=values)
    with pytest.raises(ValueError, match="finite"):
        gst.spsolve(A, b.float(), values=values[0] * np.nan)


WRONG = {
    "integers": (lambda A, b: (A, b.int()), TypeError, "b has numbers of torch.int32; convert it to torch.float64"),
    "bool": (lambda A, b: (A, b > 0), TypeError, "b has numbers of torch.bool"),
    "half": (lambda A, b: (A, b.half()), TypeError, "torch.float16"),
    "half matrix": (
        lambda A, b: (gst.Pattern(A).tensor(A.values().half()), b),
        TypeError,
        "A has values of torch.float16",
    ),
    "dense matrix": (lambda A, b: (A.to_dense(), b), TypeError, "A.to_sparse_csr()"),
    "NumPy matrix": (
        lambda A, b: (np.eye(6), b),
        TypeError,
        "A must be a sparse tensor, not ndarray; torch.sparse_csr_tensor",
    ),
    "NumPy": (
        lambda A, b: (A, b.numpy()),
        TypeError,
        r"b must be a dense tensor, not ndarray; use torch\.as_tensor\(b\)",
    ),
    "sparse": (lambda A, b: (A, b.to_sparse()), TypeError, "b.to_dense()"),
    "short": (lambda A, b: (A, b[:5]), ValueError, r"b must have shape \(6,\) or \(6, k\), got \(5,\)"),
    "scalar": (lambda A, b: (A, b[0]), ValueError, "b must have shape"),
    "three dimensions": (lambda A, b: (A, b.expand(2, 3, 6)), ValueError, "b must have shape"),
    "rectangular": (lambda A, b: (sparse().to_dense()[:5].to_sparse_csr(), b), ValueError, "square"),
    "another device": (lambda A, b: (A, b.to("meta")), ValueError, "A is on cpu and b on meta"),
    "no device": (lambda A, b: (A.to("meta"), b.to("meta")), TypeError, "A is on meta; only cpu and cuda work"),
    "more precise": (lambda A, b: (A.to(torch.float32), b), TypeError, "which is more precise"),
    "a pattern alone": (lambda A, b: (gst.Pattern(A), b), TypeError, "pass values="),
    "blocks": (lambda A, b: (A.to_sparse_bsr((2, 2)), b), TypeError, "sparse_bsr"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input(case):
    wrong, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        gst.spsolve(*wrong(sparse(), numbers(6)))


def test_bad_values():
    pattern, values = on_pattern()
    b = numbers(6)
    with pytest.raises(ValueError, match="values must have shape"):
        gst.spsolve(pattern, b, values=values[1:])
    with pytest.raises(TypeError, match="values must be a tensor"):
        gst.spsolve(pattern, b, values=values.detach().numpy())
    with pytest.raises(ValueError, match="on meta"):
        gst.spsolve(pattern, b, values=values.to("meta"))
    with pytest.raises(ValueError, match="at least one system"):
        gst.spsolve(pattern, b, values=values.new_ones(0, values.numel()))
    with pytest.raises(ValueError, match="trans must be"):
        gst.spsolve(pattern, b, values=values, trans="X")
