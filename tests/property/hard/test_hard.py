"""3,000 hard systems, and the defects that larger numbers of them have found."""

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs

from .emulated_engines import GPU_ENGINES, use_emulated_device
from .systems import System, run
from .verdict import BOUND, backward_error

SYSTEMS, AT_ONCE = 2800, 100
ON_DEVICE = 50  # of each engine
EPS = {char: float(np.finfo(char).eps) for char in "fdFD"}


def check(systems):
    """Every answer is right, or as SciPy's, or says that it is not; what fails prints how to see it again."""
    found = [(system, what, verdict) for system in systems for what, verdict in run(system)]
    wrong = [
        f"python -m tests.property.hard {system}  # {what}: {verdict}"
        for system, what, verdict in found
        if verdict.startswith("wrong")
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(verdict == "right" for *_, verdict in found) > len(found) / 2


@pytest.mark.parametrize("first", range(0, SYSTEMS, AT_ONCE))
def test_cpu_engine(first):
    check([System(seed) for seed in range(first, first + AT_ONCE)])


@pytest.mark.parametrize("seed", [708843, 713218])
def test_solves_that_are_not_measured(seed):
    """Those before hid their errors behind an unknown that was large beside the others, or had zeros for a solution."""
    check([System(seed)])


@pytest.mark.parametrize("engine", GPU_ENGINES)
def test_gpu_engines(engine):
    undo = use_emulated_device()
    try:
        check([System(seed, engine, largest=12) for seed in range(ON_DEVICE)])
    finally:
        undo()


def geometric(dtype):
    return sp.csc_array(sp.diags_array([0.01, 1.0], offsets=[0, 1], shape=(60, 60)), dtype=dtype)


@pytest.mark.parametrize("char", "fF")
def test_scales_beyond_single_precision(char):
    """Exact scales are 100 to the power of up to 60."""
    A = geometric(char)
    b = np.eye(60, dtype=char)[5]
    x = gs.splu(A).solve(b)
    assert backward_error(A.toarray(), x, b) <= BOUND * EPS[char]


def test_analysis_in_double_precision_of_values_in_single():
    symbolic = gs.analyze(geometric("d"))
    b = np.eye(60, dtype="f")[5]
    x = symbolic.factor(geometric("f").data).solve(b)
    assert backward_error(geometric("f").toarray(), x, b) <= BOUND * EPS["f"]


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("ordering", ["auto", "natural", "user"])
def test_values_of_another_scale(char, ordering):
    """New values get new scales before they are called singular, and good values work whatever was there before."""
    rng = np.random.default_rng(0)
    n, last = 40, float(np.finfo(char).max)
    A = sp.csc_array(sp.random_array((n, n), density=0.1, rng=rng) + sp.diags_array(np.full(n, 4.0)), dtype=char)
    A = sp.csc_array(A[rng.permutation(n)])
    A.sort_indices()
    factor = gs.splu(A, ordering=rng.permutation(n) if ordering == "user" else ordering)
    far = 1e-40 if char in "fF" else 1e-310
    for scale in (1, far, last / 16, far, 1, last / 16, 1):
        B = A.copy()
        B.data = (A.data * scale).astype(char)
        factor.refactor(B.data)
        b = B.data[:n] * 3
        assert backward_error(B.toarray(), factor.solve(b), b) <= BOUND * EPS[char], scale
    with pytest.raises(RuntimeError, match="singular"):
        factor.refactor(np.zeros(A.nnz, char))
    factor.refactor(A.data)
    assert backward_error(A.toarray(), factor.solve(np.ones(n, char)), np.ones(n, char)) <= BOUND * EPS[char]


def random_diagonal():
    return sp.csc_array(
        sp.random_array((200, 200), density=0.02, rng=np.random.default_rng(0)) + sp.diags_array(np.full(200, 4.0))
    )


def small_grid():
    T = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(20, 20))
    return sp.csc_array(sp.kronsum(T, T) * 1e-155)


@pytest.mark.parametrize(("make", "others"), [(random_diagonal, 1e-310), (small_grid, 1e308)])
def test_good_values_after_any_that_were_accepted(make, others):
    A = make()
    factor, b = gs.splu(A), np.ones(A.shape[0])
    factor.refactor(A.data * others if others < 1 else np.full(A.nnz, others))
    factor.refactor(A.data)
    assert backward_error(A.toarray(), factor.solve(b), b) <= BOUND * EPS["d"]


@pytest.mark.parametrize("seed", [68, 282])
def test_norm_out_of_range(seed):
    """The sum of the entries of a row overflows, beside which any error was small."""
    rng, n = np.random.default_rng(seed), 10
    pattern = (rng.random((n, n)) < 0.4) | np.eye(n, dtype=bool)
    dense = np.where(pattern, 10.0 ** rng.uniform(-300, 300, (n, n)), 0)
    dense[0, :3] = 1.2e308
    assert backward_error(dense, gs.splu(sp.csc_array(dense)).solve(np.ones(n)), np.ones(n)) <= BOUND * EPS["d"]


def test_cholesky_out_of_range_is_said():
    A = sp.csc_array(sp.diags_array([-1.0, 4, -1], offsets=[-1, 0, 1], shape=(50, 50)))
    with pytest.warns(RuntimeWarning, match="overflow encountered in solve"):
        x = gs.cholesky(A * 5e-324).solve(np.ones(50))
    assert not np.isfinite(x).any()
