"""What users hold: LUFactor, CholeskyFactor, Symbolic."""

import pickle
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
import gpusplu.linalg
from gpusplu import _core
from gpusplu.common.timing import backward_error
from support.small_matrices import EPS, random_matrix, rhs, spd_matrix


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("columns", [(), (1,), (3,), (40,)])
def test_solve_three_ways(dtype, columns):
    A, b = random_matrix(dtype=dtype), rhs(60, dtype, columns)
    lu = gs.splu(A)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        x = lu.solve(b, trans)
        assert (x.dtype, x.shape) == (b.dtype, b.shape)
        assert x.flags.f_contiguous
        assert backward_error(op, x, b) < 20 * EPS[dtype]


@pytest.mark.parametrize("dtype", "fdFD")
def test_factors_multiply_to_A(dtype):
    A = random_matrix(dtype=dtype)
    lu = gs.splu(A)
    assert lu.L is lu.L
    assert lu.U is lu.U
    difference = abs((lu.L @ lu.U)[lu.perm_r][:, lu.perm_c] - A).max()
    assert difference < 100 * EPS[dtype] * abs(A).max()
    assert (lu.L.diagonal() == 1).all()
    assert sp.triu(lu.L, 1).nnz == sp.tril(lu.U, -1).nnz == 0
    assert lu.nnz >= lu.L.nnz + lu.U.nnz - 60
    for factor in (lu.L, lu.U):
        assert factor.has_sorted_indices


@pytest.mark.parametrize(
    ("right", "left", "result"),
    [("F", "f", "F"), ("F", "d", "D"), ("D", "d", "D"), ("d", "D", "D"), ("f", "F", "F"), ("i", "d", "d")],
)
def test_right_hand_sides_of_another_kind(right, left, result):
    A = random_matrix(dtype=left)
    for b in (rhs(60, right), rhs(60, right, (3,))):
        for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
            x = gs.splu(A).solve(b, trans)
            assert (x.dtype, x.shape) == (result, b.shape)
            assert backward_error(op, x, b) < 50 * EPS[left]


def test_complex_right_hand_side_must_fit_too():
    lu = gs.splu(random_matrix(dtype="f"))
    with pytest.raises(TypeError, match=r"Cannot cast array data from dtype\('complex128'\) to dtype\('complex64'\)"):
        lu.solve(rhs(60, "D"))
    with pytest.raises(ValueError, match="b is of incompatible size"):
        lu.solve(rhs(59, "F"))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("columns", [1, 2])
def test_complex_right_hand_sides_of_class_matrix(columns):
    A = random_matrix()
    b = np.matrix(rhs(60, "D", (columns,)))
    x = gs.splu(A).solve(b)
    assert type(x) is np.matrix
    assert abs(A @ np.asarray(x) - b).max() < 1e-12


@pytest.mark.parametrize("dtype", "fdFD")
def test_slogdet_and_rcond(dtype):
    A = random_matrix(30, dtype)
    lu = gs.splu(A)
    sign, logabsdet = lu.slogdet()
    expected = np.linalg.slogdet(A.toarray().astype("D" if dtype in "FD" else "d"))
    assert abs(sign - expected.sign) < 1e3 * EPS[dtype]
    assert abs(logabsdet - expected.logabsdet) < 1e4 * EPS[dtype]
    assert lu.slogdet().logabsdet == logabsdet
    exact = 1 / np.linalg.cond(A.toarray(), 1)
    assert exact * 0.99 <= lu.rcond() <= exact * 10


@pytest.mark.parametrize("dtype", "dF")
def test_factors_pickle(dtype):
    for factor, n in ((gs.splu(random_matrix(dtype=dtype)), 60), (gs.cholesky(sp.tril(spd_matrix(dtype=dtype))), 50)):
        A = factor.symbolic
        b = rhs(n, dtype)
        factor.refactor(np.asarray(factor._core.values()) * factor.dtype.type(2)) if A.parts()[
            0
        ].pattern.core.identity else None
        copy = pickle.loads(pickle.dumps(factor))
        assert type(copy) is type(factor)
        # the copy is factored afresh, which may sum in another order than the refactorization did
        tolerance = {"rtol": 100 * EPS[dtype], "atol": 100 * EPS[dtype]}
        np.testing.assert_allclose(copy.solve(b), factor.solve(b), **tolerance)
        np.testing.assert_allclose(copy.L.toarray(), factor.L.toarray(), **tolerance)


def test_symbolic():
    A, b = random_matrix(), rhs(60)
    sym = gs.analyze(A)
    assert (sym.n, sym.nnz, sym.shape, sym.structural_rank, sym.engine) == (60, A.nnz, (60, 60), 60, "cpu")
    assert not sym.cholesky
    assert sym.seconds["analyze"] > 0
    for s in (sym, pickle.loads(pickle.dumps(sym))):
        for scale in (1, 3):
            for values in (A.data * scale, A * scale, (A * scale).tocsr()):
                lu = s.factor(values)
                assert isinstance(lu, gs.LUFactor)
                assert backward_error(A * scale, lu.solve(b), b) < 50 * EPS["d"]
    assert sym.factor(A.data.astype("f")).dtype == np.float32
    assert sym.factor(A.data + 0j).dtype == np.complex128
    with pytest.raises(gs.PatternMismatchError):
        sym.factor(sp.eye_array(60, format="csc"))
    with pytest.raises(gs.NonFiniteError):
        sym.factor(A.data * np.nan)
    with pytest.raises(ValueError, match="values has 1 entries"):
        sym.factor([1.0])
    with pytest.raises(AttributeError):
        sym.nothing  # noqa: B018


def test_structurally_singular():
    A = random_matrix().tolil()
    A[:, 3] = 0
    A = sp.csc_array(A)
    assert gs.analyze(A).structural_rank == 59
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        gs.splu(A)
    assert "structural rank 59" in gs.explain(A)


@pytest.mark.parametrize("n", [0, 1])
def test_smallest(n):
    A = 4 * sp.eye_array(n, format="csc")
    for factor in (gs.splu(A), gs.cholesky(A)):
        assert factor.shape == (n, n)
        np.testing.assert_array_equal(factor.solve(np.ones(n)), np.full(n, 0.25))
        assert factor.solve(np.ones((n, 3))).shape == (n, 3)
        factor.refactor(A.data * 2)
        np.testing.assert_allclose(factor.solve(np.ones(n)), np.full(n, 0.125), rtol=1e-15)
        assert factor.L.shape == (n, n)
        assert factor.slogdet() == (1.0, pytest.approx(n * np.log(8.0)))
        assert factor.explain()
        pickle.loads(pickle.dumps(factor))
    assert gs.explain(A)


def test_stats_and_explain():
    A = random_matrix()
    lu = gs.splu(A)
    lu.solve(rhs(60))
    lu.refactor(A.data)
    stats = lu.stats
    assert stats.n_refactor == stats["n_refactor"] == 1
    assert stats.nnz == A.nnz
    assert stats.fill == lu.nnz / A.nnz
    assert {"canonicalize", "analyze", "factor", "refactor", "solve"} == set(stats.seconds)
    assert all(seconds >= 0 for seconds in stats.seconds.values())
    assert dict(pickle.loads(pickle.dumps(stats))) == dict(stats)
    assert "flops" in repr(stats)
    assert "flops" in dir(stats)
    with pytest.raises(AttributeError, match="stats has no 'flip'; it has engine, method"):
        stats.flip  # noqa: B018
    text = lu.explain()
    for word in (
        "60 x 60",
        "cpu: engine='auto' and ",
        "ordering",
        "accuracy",
    ):
        assert word in text
    assert "asked for by name" in gs.splu(A, engine="cpu").explain()
    for word in ("60 x 60", "structural rank 60", "predicted", "symmetry"):
        assert word in gs.explain(A)
    assert "100% of the off-diagonal" in gs.explain(spd_matrix(), cholesky=True)
    assert repr(lu).startswith("<LUFactor of 60 x 60, float64, nnz")
    assert repr(gs.analyze(A)).startswith("<Symbolic LU of 60 x 60")


def test_backward_error_is_that_of_the_last_solve():
    A, b = random_matrix(), rhs(60)
    lu = gs.splu(A, refine="always")
    x = lu.solve(b)
    assert lu.backward_error < 20 * EPS["d"]
    assert lu.backward_error == pytest.approx(backward_error(A, x, b), rel=0.5, abs=1e-17)


def test_eight_threads_get_the_same_bits():
    A = random_matrix(400, density=0.02)
    for factor in (gs.splu(A), gs.splu(A, refine="always"), gs.cholesky(spd_matrix(400))):
        sides = [rhs(400, seed=k) for k in range(8)]
        factor.solve(sides[0])  # a fresh factor may still have to find out whether it needs refinement
        expected = [(factor.solve(b), factor.solve(b, "T")) for b in sides]
        wrong = []
        barrier = threading.Barrier(8)

        def work(k, factor=factor, expected=expected, wrong=wrong, barrier=barrier, sides=sides):
            barrier.wait()
            for repeat in range(20):
                j = (k + repeat) % 8
                if not (factor.solve(sides[j]) == expected[j][0]).all():
                    wrong.append((k, repeat))
                if not (factor.solve(sides[j], "T") == expected[j][1]).all():
                    wrong.append((k, repeat, "T"))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_threads_of_the_core_do_not_change_bits():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    A, b = random_matrix(400, density=0.02), rhs(400)
    x, threads = gs.splu(A).solve(b), gs._core.num_threads()
    with threadpoolctl.threadpool_limits(1):
        assert gs._core.num_threads() == 1
        np.testing.assert_array_equal(gs.splu(A).solve(b), x)
    info = [i for i in threadpoolctl.threadpool_info() if i["internal_api"] == "gpusplu"]
    assert [i["num_threads"] for i in info] == [gs._core.num_threads()] == [threads]
    with threadpoolctl.threadpool_limits(3, user_api="gpusplu"):
        assert gs._core.num_threads() == 3


class Device:
    """Stands for a CuPy array or matrix: host data behind get()."""

    def __init__(self, host):
        self.host = host

    def get(self):
        return self.host


Device.__module__ = "cupyx.scipy.sparse"


def test_cupy_goes_to_the_host_and_back(monkeypatch):
    cupy = types.ModuleType("cupy")
    cupy.asarray = lambda x, order=None: Device(x)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    A, b = random_matrix(), rhs(60)
    lu = gs.splu(Device(A))
    for trans, op in (("N", A), ("T", A.T)):
        assert backward_error(op, lu.solve(Device(b), trans).host, b) < 50 * EPS["d"]
    lu.refactor(Device(A.data * 2))
    lu.refactor(Device(A * 2))
    assert backward_error(2 * A, lu.solve(Device(b)).host, b) < 50 * EPS["d"]
    assert backward_error(A, gs.spsolve(Device(A), Device(b)).host, b) < 50 * EPS["d"]
    assert backward_error(A, gs.factorized(Device(A))(b), b) < 50 * EPS["d"]
    S = spd_matrix()
    assert backward_error(S, gs.cholesky(Device(S))(Device(rhs(50))).host, rhs(50)) < 50 * EPS["d"]


def test_linalg_has_everything_that_scipy_has():
    import scipy.sparse.linalg as spla

    for name in spla.__all__:
        assert hasattr(gs.linalg, name)
    assert gs.linalg.gmres is spla.gmres
    assert gs.linalg.spilu is spla.spilu
    assert gs.linalg.splu is gs.splu
    assert {"gmres", "splu", "cholesky"} <= set(dir(gs.linalg))
    with pytest.raises(AttributeError, match=r"module 'gpusplu.linalg' has no attribute 'nothing', nor has scipy"):
        gs.linalg.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gs.nothing  # noqa: B018
    assert set(gs.__all__) <= set(dir(gs))
    for name in gs.__all__:
        assert getattr(gs, name) is not None


def test_import_is_light():
    code = (
        "import sys, time; import numpy; start = time.process_time(); import gpusplu; t = time.process_time() - start; "
        "assert not {'cupy', 'scipy.sparse'} & set(sys.modules), 'imports too much'; assert t < 0.3, t; "
        "import gpusplu.install; assert callable(gpusplu.install); import gpusplu.linalg as spla; spla.splu; spla.cg"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_engines_of_devices_are_imported_when_they_may_pay():
    """On a host with a device short programs do without their modules, after some use too."""
    code = (
        "import sys, numpy as np, gpusplu as gs\n"
        "from gpusplu.dispatch import migration\n"
        "from gpusplu.cuda import presence\n"
        "presence.no_driver = lambda: ''\n"
        "lu = gs.splu(gs.gallery.poisson(150, 150))\n"
        "b, use = np.ones(22_500), lu._core._use\n"
        "while use.spent < 2 * migration.FIRST: lu.solve(b)\n"
        "assert 'gpusplu.engines.supernodal.engine' not in sys.modules\n"
        "use.count(lu._core, 10.0)\n"
        "assert 'gpusplu.engines.supernodal.engine' in sys.modules\n"
        "assert 'a GPU would not pay' in lu.explain()"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def found_by(symbolic):
    """What an analysis says, but for its seconds."""
    problem, analysis = symbolic.parts()
    core = analysis.core
    perms = core.row_perm.tolist(), core.col_perm.tolist(), core.row_scale.tolist(), core.col_scale.tolist()
    return perms, core.method, core.kind, core.lnz, problem.options, problem.dtype, symbolic.choice.request


@pytest.mark.parametrize("engine", ["auto", "cpu"])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_an_analysis_by_one_call_is_that_of_many(engine, dtype, index):
    A = sp.csc_array(random_matrix(dtype=dtype))
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    at_once, steps = gs.analyze(A, engine=engine), gs.analyze(A.tocoo(), engine=engine)
    assert found_by(at_once) == found_by(steps)
    assert set(at_once.seconds) == set(steps.seconds)
    values = 2 * A.data
    b = rhs(60, dtype)
    assert (at_once.factor(values).solve(b) == steps.factor(A.tocoo().data * 2).solve(b)).all()


@pytest.mark.parametrize("dtype", "fdFD")
def test_a_factor_by_one_call_is_that_of_many(dtype, monkeypatch):
    A = sp.csc_array(random_matrix(dtype=dtype))
    unsorted = sp.csc_array((A.data[::-1], A.indices[::-1], A.nnz - A.indptr[::-1]), shape=A.shape)
    b, called = rhs(60, dtype), []
    given = _core.factor_given
    monkeypatch.setattr(_core, "factor_given", lambda *arguments: called.append(given(*arguments)) or called[-1])
    for matrix in (A, unsorted):
        symbolic = gs.analyze(matrix, engine="cpu")
        at_once, steps = symbolic.factor(2 * matrix.data), symbolic.factor(list(2 * matrix.data))
        assert called.pop() is not None and not called
        assert (at_once.solve(b) == steps.solve(b)).all() and at_once.dtype == dtype
        assert (at_once.L != steps.L).nnz == (at_once.U != steps.U).nnz == 0


def test_what_is_not_factored_by_one_call_is_factored_or_refused_as_ever():
    A = sp.csc_array(random_matrix())
    symbolic, b = gs.analyze(A, engine="cpu"), rhs(60)
    ones, spread = (
        np.ones(A.nnz, dtype=int) + (A.indices == np.repeat(np.arange(60), np.diff(A.indptr))),
        np.zeros((A.nnz, 2)),
    )
    spread[:, 0] = A.data
    assert (symbolic.factor(ones).solve(b) == symbolic.factor(ones.astype(float)).solve(b)).all()
    assert (symbolic.factor(spread[:, 0]).solve(b) == symbolic.factor(A.data).solve(b)).all()
    swapped = A.data.astype(A.data.dtype.newbyteorder())
    assert (symbolic.factor(swapped).solve(b) == symbolic.factor(A.data).solve(b)).all()
    with pytest.raises(ValueError, match="values has 3 entries"):
        symbolic.factor(np.ones(3))
    bad = A.data.copy()
    bad[A.indptr[7]] = np.nan
    with pytest.raises(gs.NonFiniteError, match=rf"A\[{A.indices[A.indptr[7]]}, 7\] is nan"):
        symbolic.factor(bad)


def test_an_analysis_by_one_call_says_which_value_is_not_finite():
    A = sp.csc_array(random_matrix())
    A.data[A.indptr[7]] = np.inf
    with pytest.raises(gs.NonFiniteError, match=rf"A\[{A.indices[A.indptr[7]]}, 7\] is inf"):
        gs.analyze(A)


def test_an_analysis_by_one_call_takes_unsorted_columns():
    A = sp.csc_array(random_matrix())
    unsorted = sp.csc_array((A.data[::-1], A.indices[::-1], A.nnz - A.indptr[::-1]), shape=A.shape)
    assert found_by(gs.analyze(unsorted))[0] == found_by(gs.analyze(sp.csc_array(A[:, ::-1])))[0]
