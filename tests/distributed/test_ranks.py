"""Factors on 1, 2 and 4 ranks, compared with those of the CPU engine in one process."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs


def right_hand_sides(n):
    return np.random.default_rng(n).standard_normal((n, 3))


def assert_same(found, expected):
    """To the digits that a condition of a few thousand leaves."""
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * abs(expected).max())


def compare(kept, factor, n, suffix=""):
    b = right_hand_sides(n)
    for trans in "NTH":
        assert_same(kept[trans + suffix], factor.solve(b, trans))
    assert_same(kept["one" + suffix], factor.solve(b[:, 0]))
    assert_same(kept["spread" + suffix], factor.solve(b))
    assert_same(kept["complex" + suffix], factor.solve(b[:, 0] + 1j * b[:, 1], "T"))


@pytest.mark.parametrize("engine", ["mumps", "superlu_dist"])
def test_lu(ran, serial, engine):
    starter, ranks = ran
    A, kept = sp.csr_array(starter.matrices["general"]), starter.arrays(f"lu_{engine}", ranks)
    compare(kept, serial["general"], A.shape[0])
    other = sp.csc_array(sp.csr_array((A.data * np.cos(A.indices), A.indices, A.indptr), shape=A.shape))
    compare(kept, gs.splu(other, engine="cpu"), A.shape[0], "_again")
    assert_same(kept["doubled"], serial["general"].solve(right_hand_sides(A.shape[0])) / 2)


def test_figures_of_lu(ran, serial):
    starter, ranks = ran
    figures = starter.told("figures_mumps", ranks)
    sign, logabsdet = gs.splu(sp.csc_array(2 * starter.matrices["general"]), engine="cpu").slogdet()
    assert figures["slogdet"] == pytest.approx([sign, logabsdet])
    assert {"engine", "ranks", "nnz_factor", "flops", "bytes", "n_refinement", "seconds"} <= set(figures["stats"])
    assert f"on {ranks} ranks" in figures["text"]
    assert figures["repr"] == f"<DistributedLUFactor of 81 x 81, float64, on {ranks} ranks, engine mumps>"
    assert "engine    superlu_dist: lu" in starter.told("figures_superlu_dist", ranks)["text"]


def test_cholesky_of_one_triangle(ran, serial):
    starter, ranks = ran
    compare(starter.arrays("cholesky", ranks), serial["definite"], serial["definite"].shape[0])
    assert starter.told("cholesky", ranks) == pytest.approx(serial["definite"].logdet())


def test_ldlt_and_its_inertia(ran, serial):
    starter, ranks = ran
    compare(starter.arrays("ldlt", ranks), serial["indefinite"], serial["indefinite"].shape[0])
    told = starter.told("ldlt", ranks)
    assert told["doubt"] == ""
    assert tuple(told["inertia"]) == serial["indefinite"].inertia() == (80, 30, 0)
    assert told["slogdet"] == pytest.approx(serial["indefinite"].slogdet().logabsdet)
    told = starter.told("nearly_singular", ranks)
    assert told["inertia"] is None
    assert "A is too close to a singular matrix" in told["doubt"]


def test_ranks_without_rows(ran, serial):
    starter, ranks = ran
    expected = serial["general"].solve(right_hand_sides(81))
    kept = starter.arrays("zero_rows", ranks)
    assert len(kept) == (1 if ranks == 1 else 3)
    for x in kept.values():
        assert_same(x, expected)
    refused = starter.told("mumps_refused", ranks)["rows"]
    assert refused[0] is None
    for kind, message in refused[1:]:
        assert kind == "EngineUnavailableError"
        assert "superlu_dist needs rows on every rank" in message


REFUSALS = {
    "engine": ("ValueError", "engine='pardiso' is not one of 'mumps', 'superlu_dist'"),
    "memory": ("ValueError", "memory=0 must be a positive number of bytes"),
    "communicator": ("TypeError", "comm must be an intracommunicator of mpi4py"),
    "not a matrix": ("ValueError", "(rank {last})"),
    "vector": ("ValueError", "the rows of a rank are a matrix, not of shape (81,)"),
    "wide numbers": ("TypeError", "to a floating point format"),
    "determinant": ("EngineUnavailableError", "superlu_dist does not compute determinants; use engine='mumps'"),
    "not square": ("ValueError", "can only factor square matrices: the ranks have"),
    "not finite": ("NonFiniteError", "is nan; all values of A must be finite (rank {last})"),
    "outside": ("ValueError", "(rank {last})"),
    "wide": ("ValueError", "indices values too large for this PETSc: 2147483648 columns"),
    "complex": ("TypeError", "this PETSc is built for real numbers"),
    "too little": ("HostMemoryError", "and 1,000,000 bytes are free"),
    "not symmetric": ("NotHermitianError", "ldlt: A and its transpose differ"),
    "not definite": ("NotPositiveDefiniteError", "A is not positive definite"),
    "values": ("ValueError", "refactor: values have shape (3,)"),
    "pattern": ("PatternMismatchError", "keep explicit zeros (rank {last})"),
    "columns": ("PatternMismatchError", "entries are in other columns"),
    "not finite values": ("NonFiniteError", "is nan"),
    "lossy": ("TypeError", "Cannot cast"),
    "rows of b": ("ValueError", "b is of incompatible size (rank {last})"),
    "root of b": ("ValueError", "b is of incompatible size (rank {last})"),
    "no root": ("ValueError", "is none of the"),
    "trans": ("ValueError", "trans must be N, T, or H"),
    "closed": ("ValueError", "the factor was closed"),
    "fixed pivots": ("SolverError", "so A may be singular; engine='mumps' detects singular matrices"),
    "not definite any more": ("NotPositiveDefiniteError", "A is not positive definite"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_all_ranks_refuse_alike(ran, what):
    starter, ranks = ran
    kind, message = REFUSALS[what]
    [refused] = starter.told("mumps_refused", ranks)[what]
    assert refused[0] == kind
    assert message.format(last=ranks - 1) in refused[1]


@pytest.mark.parametrize("what", ["differ", "other calls", "kinds of b"])
def test_ranks_that_call_other_things(ran, what):
    starter, ranks = ran
    [refused] = starter.told("mumps_refused", ranks)[what]
    if ranks > 1:
        assert refused[0] == "ValueError"
        assert refused[1].startswith("ranks differ: rank 0 calls ")


def test_a_refactorization_that_fails_leaves_the_factor_before(ran, serial):
    starter, ranks = ran
    assert starter.told("mumps_refused", ranks)["singular"] == 4 * [["RuntimeError", "Factor is exactly singular"]]
    kept = starter.arrays("singular", ranks)
    for engine in ("mumps", "superlu_dist"):
        assert_same(kept[engine], serial["general"].solve(np.ones(81)))
    assert_same(kept["pairs"], gs.splu(sp.csc_array(starter.matrices["pairs"])).solve(np.ones(40)))
    assert_same(kept["definite"], serial["definite"].solve(np.ones(90)))


def test_memory_does_not_grow(ran):
    starter, ranks = ran
    for what, kib in starter.told("growth", ranks).items():
        assert kib < 2048, what  # parts of 20 factors that were left behind take 12 MiB


def test_memory_that_is_not_there(starter):
    done = starter.start(2, "starved")
    assert done.returncode == 0, done.stderr
    [[kind, message]] = starter.told("starved_refused", 2)["starved"]
    assert kind == "HostMemoryError"
    assert "bytes of memory on a rank" in message


def test_the_example(starter):
    done = starter.run(2, Path(__file__).parents[2] / "examples" / "distributed.py")
    assert done.returncode == 0, done.stderr
    assert "13824 unknowns on 2 ranks: factored in" in done.stdout
    assert "79.1% of the heat is left" in done.stdout


def test_a_rank_that_is_killed_ends_the_others(starter):
    start = time.monotonic()
    done = starter.start(3, "killed")
    assert done.returncode != 0
    assert "BAD TERMINATION" in done.stdout or "killed" in (done.stdout + done.stderr).lower()
    assert time.monotonic() - start < 60
    processes = [int((starter.folder / f"process.{rank}").read_text()) for rank in range(3)]
    deadline = time.monotonic() + 30
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, processes))


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
