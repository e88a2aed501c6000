"""One small case of every kind for compute-sanitizer, which makes kernels 10 to 100 times slower:

    compute-sanitizer --tool memcheck python asv_bench/device/sanitize.py
    compute-sanitizer --tool racecheck python asv_bench/device/sanitize.py

Factors, refactors and solves by LU and Cholesky in each number type on the device, and checks the backward errors.
CuPy's memory pool is turned off, so that an access beyond an array is an access beyond an allocation. The matrices are
just large enough for fronts of every class.
"""

import argparse

import cupy
import numpy as np
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery
from gpusplu.cli.report import backward_error


def systems(scalar):
    """Name, matrix and function that factors it."""
    for name in ("rlc:16x16", "convdiff:11", "poisson:9x9x9", "elast:5x5x5"):
        factorize = gs.cholesky if name.startswith(("poisson", "elast")) else gs.splu
        A = gallery.named(name).astype(scalar)
        if A.dtype.kind == "c":
            turn = np.exp(1j * np.arange(A.shape[0])).astype(scalar)
            A = sp.csc_array(sp.diags_array(turn) @ A @ sp.diags_array(turn.conj()))
        yield name, A, factorize


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scalars", default="fdFD", help="letters of f, d, F, D")
    arguments = parser.parse_args()
    cupy.cuda.set_allocator(None)
    for scalar in arguments.scalars:
        limit = 1e3 * np.finfo(scalar).eps
        for name, A, factorize in systems(scalar):
            factor = factorize(A, engine="supernodal")
            factor.refactor(cupy.asarray(A.data))
            b = np.asfortranarray(np.random.default_rng(0).normal(size=(A.shape[0], 3)).astype(scalar))
            for trans, M in (("N", A), ("T", A.T), ("H", A.conj().T)):
                error = backward_error(M, factor.solve(cupy.asarray(b), trans).get(), b)
                assert error < limit, f"{name} {scalar} {trans}: backward error {error:.1e}"
            print(f"{name} {scalar}: well", flush=True)


if __name__ == "__main__":
    main()
