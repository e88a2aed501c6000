"""Tensors in place of NumPy's and SciPy's arrays: in the functions of gpusplu itself, on the processor."""

import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="torch is not installed")
import gpusplu as gs  # noqa: E402
from support.tensors import WARNINGS, close, numbers, sparse  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in WARNINGS]


def test_nothing_is_copied():
    A = sparse(layout="csc")
    wrap = gs.common.arrays.Torch().wrap("splu", A)
    assert wrap.data.__array_interface__["data"][0] == A.values().data_ptr()
    assert wrap.indices.__array_interface__["data"][0] == A.row_indices().data_ptr()
    b = numbers(6)
    assert gs.common.arrays.Torch().array(b).__array_interface__["data"][0] == b.data_ptr()


def test_singular_matrices_are_as_with_scipy():
    A = torch.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], torch.ones(4), (2, 2))
    with pytest.warns(match="exactly singular"):
        x = gs.spsolve(A, torch.ones(2))
    assert torch.isnan(x).all()
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        gs.splu(A)


def lost(function, *arguments):
    with pytest.raises(RuntimeError, match=r"requires grad, which would be lost; use gpusplu.torch"):
        function(*arguments)


def test_gradients_are_not_lost():
    A, b = sparse(), numbers(6)
    wants = A.clone().requires_grad_()
    lu = gs.splu(A)
    for function in (gs.splu, gs.factorized, gs.cholesky, gs.analyze):
        lost(function, wants)
    lost(gs.spsolve, wants, b)
    lost(gs.spsolve, A, b.requires_grad_())
    lost(lu.solve, b)
    lost(lu.refactor, A.values().clone().requires_grad_())
    lost(lu.refactor_solve, A.values(), b)
    lost(gs.analyze(A).factor, A.values().clone().requires_grad_())
    with torch.no_grad():
        close(gs.spsolve(wants, b), lu.solve(b))


MIXED = {
    "NumPy": (lambda A, b: (A, b.numpy()), TypeError, "got torch.Tensor and numpy.ndarray; pass arrays of one library"),
    "SciPy": (lambda A, b: (sp.eye_array(6, format="csc"), b), TypeError, "got torch.Tensor and scipy.csc_array"),
    "devices": (lambda A, b: (A, b.to("meta")), TypeError, "a tensor is on meta; only cpu and cuda work"),
    "integers": (lambda A, b: (A, b.long()), TypeError, "a tensor of torch.int64"),
    "half": (lambda A, b: (A, b.half()), TypeError, "a tensor of torch.float16 is not of torch.float32"),
    "batch": (lambda A, b: (torch.stack([A.to_dense()] * 2).to_sparse_csr(), b), ValueError, "gpusplu.torch"),
    "blocks": (lambda A, b: (A.to_sparse_bsr((2, 2)), b), TypeError, "to_sparse_csr"),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixtures(case):
    wrong, error, message = MIXED[case]
    with pytest.raises(error, match=message):
        gs.spsolve(*wrong(sparse(), numbers(6)))


def test_right_hand_sides_that_do_not_fit_a_factor():
    lu = gs.splu(sparse(dtype=torch.float32))
    with pytest.raises(TypeError, match="Cannot cast"):
        lu.solve(numbers(6))
    with pytest.raises(ValueError, match="incompatible size"):
        lu.solve(numbers(5).float())
    with pytest.raises(TypeError, match=r"a tensor of torch\.int64"):
        lu.solve(torch.ones(6, dtype=torch.int64))
    with pytest.raises(TypeError, match="a tensor is on meta; only cpu and cuda work"):
        lu.solve(torch.ones(6, device="meta"))
    with pytest.raises(TypeError, match="Cannot cast"):
        lu.refactor(numbers(lu.symbolic.nnz))


@pytest.mark.parametrize(
    ("pointers", "indices", "message"),
    [
        ([0, 5, 2, 3], [0, 1, 2], "must not decrease"),
        ([0, 1, 2, 9], [0, 1, 2], "ends with 9"),
        ([0, 1, 3], [0, 1, 2], "must have n"),
        ([0, 1, 2, 3], [0, 1, 9], "index 9"),
        ([0, 1, 2, 3], [0, -1, 2], "index -1"),
    ],
)
@pytest.mark.parametrize("make", [torch.sparse_csr_tensor, torch.sparse_csc_tensor])
def test_arrays_that_are_no_matrix(make, pointers, indices, message):
    """torch does not look at them unless it is asked to."""
    arrays = torch.tensor(pointers), torch.tensor(indices), torch.ones(3, dtype=torch.float64)
    A = make(*arrays, (3, 3), check_invariants=False)
    for call in (gs.splu, lambda A: gs.spsolve(A, torch.ones(3, dtype=torch.float64))):
        with pytest.raises(ValueError, match=message):
            call(A)
