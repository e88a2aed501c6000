"""Kernels that look at values and residuals, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from gpusplu.cuda import layout
from support import emulated
from support.small_matrices import EPS, canonical, dtypes, random_matrix, rhs


def pointer(array):
    return 0 if array is None or array.size == 0 else array.ctypes.data


def filled(dtype, **fields):
    args = np.zeros((), dtype)
    for name, value in fields.items():
        args[name] = pointer(value) if isinstance(value, np.ndarray) or value is None else value
    return args


def random_values(rng, shape, dtype):
    v = rng.standard_normal(shape)
    return (v + 1j * rng.standard_normal(shape) if dtype in "FD" else v).astype(dtype)


@pytest.mark.parametrize("dtype", dtypes())
def test_values(dtype):
    rng = np.random.default_rng(1)
    source = rng.integers(0, 400, 700)
    source = np.where(rng.random(700) < 0.3, ~source, source)
    source_ptr = np.unique(np.concatenate([[0, 700], rng.integers(0, 700, 300)])).astype(np.int64)
    given = random_values(rng, 400, dtype)
    terms = np.where(source < 0, given[~source].conj(), given[source])
    status = np.zeros((), layout.struct("common/values.cu", "Status"))
    library = emulated.compile("common/values.cu", dtype)
    dtype_args = layout.arguments("common/values.cu")["gather_values"]

    def run(kernel, **fields):
        status[()] = 0
        out = fields["to"]
        library.launch(kernel, 3, 256, 64, filled(dtype_args, count=len(out), status=status, **fields), seed=3)

    out = np.zeros(len(source_ptr) - 1, dtype)
    run("gather_values", **{"from": given, "to": out, "source": source, "source_ptr": source_ptr})
    np.testing.assert_allclose(out, np.add.reduceat(terms, source_ptr[:-1]), rtol=1e-5)
    assert status["largest"] == pytest.approx(np.abs(out).max(), rel=1e-14 if dtype in "dD" else 1e-6)
    single = np.zeros(700, dtype)
    run("gather_values", **{"from": given, "to": single, "source": source, "source_ptr": None})
    assert np.array_equal(single, terms)
    copied = np.zeros(400, dtype)
    run("gather_values", **{"from": given, "to": copied, "source": None, "source_ptr": None})
    assert np.array_equal(copied, given)
    copied[[3, 7]] = np.nan, np.inf
    run("check_values", to=copied)
    assert status["not_finite"] == 2
    assert np.isfinite(status["largest"])


@pytest.mark.parametrize("conjugate", [0, 1])
@pytest.mark.parametrize("dtype", dtypes())
def test_values_are_compared(dtype, conjugate):
    """Through a map with duplicates and conjugates, for entries with a counterpart, without one, and on their own."""
    rng = np.random.default_rng(2)
    given = random_values(rng, 900, dtype)
    source = rng.integers(0, 900, 1500)
    source = np.where(rng.random(1500) < 0.3, ~source, source)
    source_ptr = np.unique(np.r_[0, 1500, rng.integers(0, 1500, 700)]).astype(np.int64)
    count = len(source_ptr) - 1
    values = np.add.reduceat(np.where(source < 0, given[~source].conj(), given[source]), source_ptr[:-1])
    other = rng.integers(-2, count, count).astype(np.int32)  # -1: not compared; -2: with zero
    counterpart = np.where(other >= 0, values[other], 0)
    expected = abs(values - (counterpart.conj() if conjugate else counterpart))[other != -1].max()
    file, out = "common/values.cu", np.zeros(count, dtype)
    status = np.zeros((), layout.struct(file, "Status"))
    arrays = {"from": given, "to": out, "source": source, "source_ptr": source_ptr, "other": other, "status": status}
    args = filled(layout.arguments(file)["gather_values"], count=count, conjugate=conjugate, **arrays)
    emulated.compile(file, dtype).launch("gather_values", 3, 256, 64, args, seed=3)
    assert status["asymmetry"] == pytest.approx(expected, rel=1e-14 if dtype in "dD" else 1e-5)
    assert status["not_finite"] == 0


@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("counts", [(0, 5), (4000, 0), (3001, 97), (3072, 6144)])
def test_arrays_are_moved(dtype, counts):
    rng, library = np.random.default_rng(1), emulated.compile("common/values.cu", dtype)
    first, second = (random_values(rng, count, dtype) for count in counts)
    to_first, to_second = (np.zeros(count + 3, dtype) for count in counts)
    fields = {"first_count": counts[0], "second_count": counts[1], "to_first": to_first, "to_second": to_second}
    args = filled(layout.arguments("common/values.cu")["move_arrays"], first=first, second=second, **fields)
    library.launch("move_arrays", 3, 256, 0, args, seed=3)
    for given, to in ((first, to_first), (second, to_second)):
        assert np.array_equal(to[:-3], given)
        assert not to[-3:].any()


def test_status_is_moved():
    status, report = (np.zeros((), layout.struct("common/values.cu", "Status")) for _ in range(2))
    status[()] = tuple(range(1, 1 + len(status.dtype)))
    args = filled(layout.arguments("common/values.cu")["move_status"], status=status, report=report)
    emulated.compile("common/values.cu", "d").launch("move_status", 1, 32, 0, args)
    assert report.item() == tuple(range(1, 1 + len(status.dtype)))
    assert not any(status.item())


def test_a_tally_forgets_nothing():
    status, accumulated = (
        np.zeros((), layout.struct("common/values.cu", name)) for name in ("Status", "AccumulatedStatus")
    )
    library, dtype = (
        emulated.compile("common/values.cu", "d"),
        layout.arguments("common/values.cu")["accumulate_status"],
    )

    def add(factored, solved, **found):
        status[()] = 0
        for name, value in found.items():
            status[name] = value
        args = filled(dtype, status=status, accumulated=accumulated, factored=factored, solved=solved)
        library.launch("accumulate_status", 1, 32, 0, args)
        assert not any(status.item())

    add(0, 1)
    add(1, 0, n_perturbed=3, growth=100.0)
    add(1, 1, n_tiny=2, not_finite=4, growth=np.nan)
    add(1, 1, n_perturbed=1, not_finite=1, growth=1e9)
    add(0, 1, n_tiny=1)
    assert accumulated["asymmetric"] == 0
    add(1, 0, asymmetry=9e2 * EPS["d"], largest=1.0)
    assert accumulated["asymmetric"] == 0
    add(1, 0, asymmetry=2.2e3 * EPS["d"], largest=2.0)
    add(1, 1, asymmetry=1.0, largest=100.0, n_perturbed=1, n_tiny=1, not_finite=1, growth=1e9)
    worst, last = accumulated["worst"], accumulated["last"]
    assert [worst[name] for name in ("n_perturbed", "n_tiny", "not_finite")] == [3, 2, 4]
    assert np.isnan(worst["growth"])
    assert [last[name] for name in ("n_perturbed", "n_tiny", "not_finite", "growth")] == [1, 1, 1, 1e9]
    counts = {"n_factored": 6, "n_solved": 5, "n_held": 1, "not_finite": 2, "worst_solve": 0, "error": 0}
    counts["asymmetric"] = 5
    assert {name: accumulated[name] for name in counts} == counts


@pytest.mark.parametrize("nrhs", [1, 6])
def test_backward_errors_go_to_the_tally(nrhs):
    """The largest of all columns and calls, and Inf for what is no number or has no size in this precision."""
    n = 40
    status, accumulated = (
        np.zeros((), layout.struct("common/residual.cu", name)) for name in ("Status", "AccumulatedStatus")
    )
    kernel = f"measure_residual_{1 if nrhs == 1 else 4}"
    dtype, library = layout.arguments("common/residual.cu")[kernel], emulated.compile("common/residual.cu", "d")
    ptr, ind, values = np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), np.full(n, 2.0)
    x, b, r = np.ones((n, nrhs), order="F"), np.full((n, nrhs), 2.0, order="F"), np.zeros((n, nrhs), order="F")
    arrays = {
        "ptr": ptr,
        "ind": ind,
        "values": values,
        "x": x,
        "b": b,
        "r": r,
        "accumulated": accumulated,
        "status": status,
    }
    sizes = {"ld": n, "n": n, "nrhs": nrhs, "done": np.zeros(1, np.uint32), "norms": np.zeros(1 + 3 * nrhs)}
    expected = []
    for number, (place, value) in enumerate([(3, 2.0), (5, 3.0), (7, 2.5), (9, np.nan), (11, 2.5)], 1):
        before, b[place, -1] = b[place, -1], value
        library.launch(kernel, 3, 256, 128, filled(dtype, factored=number % 2, **arrays, **sizes))
        b[place, -1] = before
        error = abs(value - 2) / (2 + max(value, 2))
        expected.append(np.inf if np.isnan(error) else max([error, *expected]))
        assert accumulated["error"] == expected[-1]
        assert not any(status.item())
    assert [accumulated[name] for name in ("n_factored", "n_solved", "n_held", "worst_solve")] == [3, 5, 0, 4]
    assert accumulated["last"]["residual"] == 0.5
    accumulated[()] = 0
    x[0, 0], values[1] = 1e300, 1e300
    library.launch(kernel, 3, 256, 128, filled(dtype, factored=0, **arrays, **sizes))
    assert (accumulated["error"], accumulated["n_held"]) == (np.inf, 1)


@pytest.mark.parametrize("lanes_log2", [0, 2, 5])
@pytest.mark.parametrize("nrhs", [1, 6])
@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", dtypes())
def test_residual(dtype, trans, nrhs, lanes_log2):
    rng = np.random.default_rng(2)
    n = 137
    A = sp.random_array((n, n), density=0.05, rng=rng).tolil()
    A[11, :] = A[:, 40] = 0.5  # long rows of A and of its transpose
    A = canonical(A)
    A.data = random_values(rng, A.nnz, dtype)
    A = sp.csc_array(A, dtype=dtype)
    x, b = (np.asfortranarray(random_values(rng, (n + 3, nrhs), dtype)) for _ in range(2))
    b *= 10 ** rng.integers(0, 3, nrhs).astype(b.real.dtype)
    wide = A.astype(np.result_type(dtype, np.float64))
    op = {"N": wide, "T": wide.T, "H": wide.conj().T}[trans]
    expected = b[:n] - op @ x[:n]
    ptr, ind, source = A.indptr.astype(np.int64), A.indices.astype(np.int32), None
    if trans == "N":
        by_rows = sp.csr_array(sp.csc_array((np.arange(A.nnz), A.indices, A.indptr), A.shape))
        ptr, ind, source = (
            by_rows.indptr.astype(np.int64),
            by_rows.indices.astype(np.int32),
            by_rows.data.astype(np.int32),
        )
    status = np.zeros((), layout.struct("common/residual.cu", "Status"))
    report = np.zeros((), status.dtype)
    done, norms = np.zeros(1, np.uint32), np.zeros(1 + 3 * nrhs)
    library = emulated.compile("common/residual.cu", dtype)
    kernel = f"measure_residual_{1 if nrhs == 1 else 4}"
    results = []
    for seed in (1, 2):
        r = np.full_like(b, np.nan)
        fields = {"ptr": ptr, "ind": ind, "source": source, "values": A.data, "x": x, "b": b, "r": r, "ld": n + 3}
        fields |= {
            "n": n,
            "nrhs": nrhs,
            "conjugate": trans == "H",
            "lanes_log2": lanes_log2,
            "norms": norms,
            "report": report,
        }
        args = filled(layout.arguments("common/residual.cu")[kernel], done=done, status=status, **fields)
        library.launch(kernel, 5, 256, 128, args, seed)
        results.append((r[:n].tobytes(), report.tobytes()))
        assert done[0] == 0
        assert not norms.any()
        assert status == np.zeros((), status.dtype)
    assert results[0] == results[1]
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(r[:n], expected, rtol=0, atol=4 * eps * np.abs(expected).max())
    expected_norms = {
        "x_norm": np.abs(x[:n]).max(0),
        "b_norm": np.abs(b[:n]).max(0),
        "residual": np.abs(expected).max(0),
    }
    a_norm = np.abs(op).sum(axis=1).max()
    worst = int(np.argmax(expected_norms["residual"] / (a_norm * expected_norms["x_norm"] + expected_norms["b_norm"])))
    assert report["a_norm"] == pytest.approx(a_norm)
    for name, value in expected_norms.items():
        assert report[name] == pytest.approx(value[worst], rel=1e-6), name
    if lanes_log2 == 0:
        r[5, 0] = x[0, 0] = np.nan
        library.launch(kernel, 5, 256, 128, args, 1)
        assert report["residual"] == np.inf


def test_add_step():
    x, step = np.arange(14.0), np.full(14, 0.5)
    args = filled(layout.arguments("common/residual.cu")["add_step"], x=x, step=step, ld=7, n=5, nrhs=2)
    emulated.compile("common/residual.cu").launch("add_step", 2, 32, 0, args)
    moved = np.arange(14) % 7 < 5
    assert np.array_equal(x, np.arange(14) + 0.5 * moved)


@pytest.mark.parametrize("conjugate", [0, 1])
@pytest.mark.parametrize("dtype", dtypes())
def test_sizes_of_rows(dtype, conjugate):
    n, nrhs = 70, 3
    A = random_matrix(n, dtype, density=0.2)
    rows = canonical(A.T)  # whose columns are the rows of A
    x, b = (np.asfortranarray(rhs(n, dtype, (nrhs,), seed=k)) for k in (1, 2))
    r, sizes = np.full_like(b, np.nan), np.full((n, nrhs), np.nan, order="F")
    order = np.random.default_rng(3).permutation(A.nnz).astype(np.int32)
    shuffled = np.empty_like(rows.data)
    shuffled[order] = rows.data
    norms = np.zeros((4, nrhs), order="F")
    for lanes_log2 in (0, 3, 5):
        args = np.zeros((), layout.arguments("common/row_sizes.cu")["row_sizes"])
        arrays = {"ptr": rows.indptr.astype(np.int64), "ind": rows.indices, "source": order, "values": shuffled}
        for name, array in {**arrays, "x": x, "b": b, "r": r, "sizes": sizes, "norms": norms}.items():
            args[name] = pointer(array)
        args["ld"] = args["n"] = n
        args["nrhs"], args["conjugate"], args["lanes_log2"] = nrhs, conjugate, lanes_log2
        emulated.compile("common/row_sizes.cu", dtype).launch("row_sizes", 2, 256, 64, args, seed=4)
        op = A.conj() if conjugate else A
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(r, b - op @ x, atol=100 * eps)
        np.testing.assert_allclose(sizes, abs(A) @ abs(x) + abs(b), rtol=100 * eps)
        expected = [abs(array).max(axis=0) for array in (r, x, sizes, r / sizes)]
        np.testing.assert_allclose(norms, expected, rtol=100 * eps, atol=10 * eps)
