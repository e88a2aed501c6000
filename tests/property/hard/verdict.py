"""What is right: a small backward error in extended precision, or an answer that SciPy does not give better."""

import warnings

import numpy as np
import scipy.sparse.linalg as spla

# Of the precision: the backward error of an answer that is right; the CPU engine accepts what it measures below 100.
BOUND = 128
WORSE = 10  # SciPy's error times this is as bad


def backward_error(M, x, b):
    """Normwise, in the infinity norm; what a last bit of a subnormal number can do is left out. Infinite if x is not."""
    if not np.isfinite(x).all():
        return np.inf
    info = np.finfo(x.dtype)
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    M, x, b = M.astype(wide), x.astype(wide), b.astype(wide)
    residual = abs(b - M @ x).max(initial=0)
    norm = abs(M).sum(axis=1).max(initial=0)
    if residual <= 4 * np.longdouble(info.smallest_subnormal) * (x.size + norm):
        return 0.0
    return float(residual / (norm * abs(x).max(initial=0) + abs(b).max(initial=0)))


def solve_as_scipy(A, b, trans):
    """SciPy's answer, or None where it says that A is singular."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return spla.splu(A).solve(b, trans)
        except RuntimeError:
            return None


def is_singular_to_precision(M):
    """After scaling by columns and rows: what scaling can mend is not singular."""
    dense = abs(M).astype(np.longdouble) * 0 + M.astype(np.clongdouble if M.dtype.kind == "c" else np.longdouble)
    for axis in (0, 1) * 4:
        size = abs(dense).max(axis=axis, keepdims=True)
        dense = dense / np.where(size > 0, size, 1)
    values = np.linalg.svd(dense.astype("D" if M.dtype.kind == "c" else "d"), compute_uv=False)
    return bool(values[-1] <= 1e3 * np.finfo(M.dtype).eps * values[0])


def judge(A, M, b, trans, answer, warned):
    """One of "right", "as SciPy", "out of range", "singular"; anything that begins with "wrong" is a defect.

    `answer` is the solution of op(A) x = b, or None where A was called singular; M is op(A), dense.
    """
    if answer is None:
        scipys = solve_as_scipy(A, b, trans)
        unsolved = scipys is None or not np.isfinite(scipys).all()
        return "singular" if unsolved or is_singular_to_precision(M) else "wrong: called singular"
    limit = BOUND * np.finfo(A.dtype).eps
    error = backward_error(M, answer, b)
    if error <= limit:
        return "right"
    scipys = solve_as_scipy(A, b, trans)
    best = np.inf if scipys is None else backward_error(M, scipys, b)
    if np.isfinite(answer).all():
        return "as SciPy" if WORSE * best >= error else f"wrong: {error:.1e}, SciPy {best:.1e}"
    if not warned:
        return "wrong: not finite, and no warning"
    return "out of range" if WORSE * best >= 1 else f"wrong: not finite, SciPy {best:.1e}"
