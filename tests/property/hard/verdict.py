"""What is right: a small backward error in extended precision, or an answer that SciPy does not give better."""

import warnings

import numpy as np
import scipy.sparse.linalg as spla

# Of the precision: the backward error of an answer that is right; the CPU engine accepts what it measures below 100.
BOUND = 128
WORSE = 10  # SciPy's error times this is as bad


def extended(M):
    return M.astype(np.clongdouble if M.dtype.kind == "c" else np.longdouble)


def backward_error(M, x, b):
    """Normwise, in the infinity norm; what a last bit of a subnormal number can do is left out; inf if x is."""
    if not np.isfinite(x).all():
        return np.inf
    info = np.finfo(x.dtype)
    M, x, b = map(extended, (M, x, b))
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


def equilibrated(M):
    """Scaled by columns and rows, in extended precision, and the scales of the columns."""
    scaled, scale = extended(M), np.ones(M.shape[1], np.longdouble)
    for axis in (0, 1) * 4:
        size = abs(scaled).max(axis=axis, keepdims=True)
        size[size == 0] = 1
        scaled = scaled / size
        if axis == 0:
            scale = scale / size[0]
    return scaled, scale


def is_singular_to_precision(M):
    """What scaling can mend is not singular."""
    dense = equilibrated(M)[0].astype("D" if M.dtype.kind == "c" else "d")
    values = np.linalg.svd(dense, compute_uv=False)
    return bool(values[-1] <= 1e3 * np.finfo(M.dtype).eps * values[0])


def is_out_of_range(M, b):
    """Whether the solution leaves the range of the type, or nearly; by Gauss and Jordan in extended precision."""
    scaled, scale = equilibrated(M)
    place = abs(scaled).argmax(axis=1)
    rows = scaled[np.arange(len(b)), place] / (extended(M)[np.arange(len(b)), place] * scale[place])
    work = np.column_stack((scaled, extended(b) * rows))
    for k in range(len(b)):
        pivot = k + abs(work[k:, k]).argmax()
        work[[k, pivot]] = work[[pivot, k]]
        if work[k, k] == 0:
            return True
        work[k] = work[k] / work[k, k]
        others = np.arange(len(b)) != k
        work[others] -= np.outer(work[others, k], work[k])
    return bool(abs(work[:, -1] * scale).max() > np.finfo(M.dtype).max / 16)


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
        if WORSE * best < error:
            return f"wrong: {error:.1e}, SciPy {best:.1e}" + " (said so)" * warned
        return "not accurate, and said so" if warned else "as SciPy"
    if not warned:
        return "wrong: not finite, and no warning"
    lost = best <= limit and not is_out_of_range(M, b) and not is_singular_to_precision(M)
    return f"wrong: not finite, SciPy {best:.1e}" if lost else "out of range"
