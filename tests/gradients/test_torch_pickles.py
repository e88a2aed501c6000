"""Solvers that are pickled and copied, from a first use of their pattern and from later ones."""

import copy
import io
import pickle

import pytest
import torch

import gpusplu as gs
import gpusplu.torch as gst
from support.tensors import WARNINGS, close, numbers, sparse

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in WARNINGS]


def saved(thing):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES = {"pickle": lambda thing: pickle.loads(pickle.dumps(thing)), "deepcopy": copy.deepcopy, "torch.save": saved}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_solvers_of_every_use_of_a_pattern(copied, layout, dtype):
    gs.cache_clear()
    A, b = sparse(dtype=dtype, layout=layout), numbers(6, dtype=dtype)
    for _ in range(3):
        solve = gst.factorized(A)
        x, y = solve(b), solve(b, "H")
        other = copied(solve)
        del solve  # its factor is left to the next matrix of the pattern
        gst.spsolve(A * 2, b)
        tolerance = 1e-12 if dtype == torch.float64 else 1e-4
        close(other(b), x, tolerance)
        close(other(b, "H"), y, tolerance)


def test_batches_and_gradients():
    A = torch.stack([sparse().to_dense(), 2 * sparse().to_dense()]).to_sparse_csr()
    b = numbers(2, 6)
    solve = gst.factorized(A)
    close(pickle.loads(pickle.dumps(solve))(b), solve(b))
    A = sparse()
    pattern, values = gst.Pattern(A), gst.pattern.entries(A).clone().requires_grad_()
    for _ in range(2):
        solve = copy.deepcopy(gst.factorized(pattern, values=values))
        solve(b[0]).sum().backward()
        assert solve.values.grad is not None
        assert values.grad is None


def test_a_shallow_copy_shares_the_factor():
    A, b = sparse(), numbers(6)
    solve = gst.factorized(A)
    before = gs.factorization_count()
    other, x = copy.copy(solve), solve(b)
    del solve
    gst.spsolve(A * 2, b)
    close(other(b), x)
    assert gs.factorization_count() == before + 1


def test_parts_that_do_not_belong_together():
    solve = gst.factorized(sparse())
    restore, (pattern, values) = solve.__reduce__()
    with pytest.raises(ValueError, match="values must have shape"):
        restore(pattern, values[:-1])
    with pytest.raises(ValueError, match="wrong type"):
        restore(pattern, None)
