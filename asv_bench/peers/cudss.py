"""NVIDIA cuDSS, through ctypes, on the caller's current stream.

Environment: CUDSS is the path of libcudss.so, CUDSS_MT that of its threading layer (its analysis then uses all cores).
Settings are the defaults, which were fastest; definite and symmetric matrices are passed as one triangle of their type.
"""

import ctypes
import os

import numpy as np
import scipy.sparse as sp

from .. import phases
from . import Peer

FLOAT64, INT32 = 1, 10  # cudaDataType
GENERAL, SYMMETRIC_TYPE, SPD = 0, 1, 3  # cudssMatrixType_t
FULL, UPPER = 0, 2  # cudssMatrixViewType_t
REORDERING, SYMBOLIC, FACTORIZATION, REFACTORIZATION, SOLVE = 1, 2, 4, 8, 1008  # cudssPhase_t
ENTRIES, FLOPS = 1, 26  # cudssDataParam_t
UBATCH_SIZE, SCHUR_MODE = 18, 23  # cudssConfigParam_t of cuDSS 1.0, ints: systems of a uniform batch; on or off
INTERFACE, COMPLEMENT = 18, 20  # cudssDataParam_t of cuDSS 1.0: 1 for unknowns of the interface; a dense matrix


class CuDSS(Peer):
    """NVIDIA cuDSS: LU, Cholesky and LDL^T on a GPU."""

    kinds, symmetric = (False, True), True

    def missing(self):
        return "" if os.path.exists(os.environ.get("CUDSS", "")) else "CUDSS has to name libcudss.so"

    def measure(self, problem):
        """Phases between CUDA events and from Python, as for gpusplu; values and right-hand side are on the device."""
        clock, b = problem.clock, problem.put(problem.b)
        opened = []

        def first():
            while opened:
                opened.pop().__exit__()
            solver = Solver(problem.A, b, problem.definite, symmetric=problem.symmetric).__enter__()
            opened.append(solver)
            return {"analyze": clock.once(solver.analyze)[0], "factor": clock.once(solver.factor)[0]}, solver

        try:
            found, solver = phases.least(first, problem.again)
            solver.values[...] = problem.put(Solver.stored(problem.scaled, problem.definite or problem.symmetric).data)
            solver.refactor()

            def solved(other):
                b[...] = other
                solver.solve()
                return solver.x

            found["backward_error"] = problem.error(solved)
            b[...] = problem.put(problem.b)
            found |= phases.repeated(clock, solver.refactor, solver.solve, lambda: (solver.refactor(), solver.solve()))
            found |= problem.walk(solver.step, Solver.order_of(problem.A))
            flops = solver.query(FLOPS)
            found |= {"flops": None if flops is None else float(flops), "entries": solver.query(ENTRIES)}
        finally:
            while opened:
                opened.pop().__exit__()
        return found


class Solver:
    """One matrix, one block of right-hand sides. Use as a context: device memory is freed at its end.

    Parameters
    ----------
    A : sparse array, shape (n, n)
        float64.
    b : cupy.ndarray, shape (n,) or (n, k), by columns, or (systems, n), by rows
    definite : bool
        Symmetric positive definite.
    systems : int, optional
        Of a uniform batch; their values lie one after another.
    symmetric : bool, optional
    interface : ndarray of int, optional
        Unknowns whose Schur complement a factorization leaves, for `complement`.
    """

    def __init__(self, A, b, definite, systems=0, symmetric=False, interface=None):
        import cupy

        self.cupy = cupy
        self.library = ctypes.CDLL(os.environ["CUDSS"])
        self.order = rows = self.stored(A, definite or symmetric)
        self.values = cupy.tile(cupy.asarray(rows.data), systems) if systems else cupy.asarray(rows.data)
        self.systems = systems
        self.interface, self.schur = interface, None
        self.x = cupy.zeros_like(b)
        self.held = [cupy.asarray(rows.indptr.astype(np.int32)), cupy.asarray(rows.indices.astype(np.int32)), b]
        names = ("handle", "config", "data", "matrix", "rhs", "solution")
        self.handle, self.config, self.data, self.matrix, self.rhs, self.solution = (ctypes.c_void_p() for _ in names)
        self.kind = (SPD, UPPER) if definite else (SYMMETRIC_TYPE, UPPER) if symmetric else (GENERAL, FULL)

    @staticmethod
    def stored(A, one_triangle):
        """The entries that cuDSS is given, in its order: rows, or the upper triangle by rows."""
        rows = sp.csr_array(sp.triu(A) if one_triangle else A)
        rows.sort_indices()
        return rows

    @classmethod
    def order_of(cls, A):
        """Which entries of A.data those are."""
        numbers = sp.csc_array((np.arange(1.0, A.nnz + 1), A.indices, A.indptr), shape=A.shape)
        return cls.stored(numbers, False).data.astype(np.int64) - 1

    def __enter__(self):
        library, ref, n = self.library, ctypes.byref, ctypes.c_int64(self.order.shape[0])
        check(library.cudssCreate(ref(self.handle)))
        if os.environ.get("CUDSS_MT"):
            check(library.cudssSetThreadingLayer(self.handle, os.environ["CUDSS_MT"].encode()))
        check(library.cudssSetStream(self.handle, ctypes.c_void_p(self.cupy.cuda.get_current_stream().ptr)))
        check(library.cudssConfigCreate(ref(self.config)))
        if self.systems:
            size = ctypes.c_int(self.systems)
            check(library.cudssConfigSet(self.config, UBATCH_SIZE, ref(size), ctypes.sizeof(size)))
        check(library.cudssDataCreate(self.handle, ref(self.data)))
        if self.interface is not None:
            self.leave(self.interface)
        pointers, columns, b = self.held
        structure = (
            pointer(pointers),
            None,
            pointer(columns),
            pointer(self.values),
            INT32,
            INT32,
            FLOAT64,
            *self.kind,
            0,
        )
        check(library.cudssMatrixCreateCsr(ref(self.matrix), n, n, ctypes.c_int64(self.order.nnz), *structure))
        for vector, array in ((self.rhs, b), (self.solution, self.x)):
            count = ctypes.c_int64(1 if self.systems or array.ndim == 1 else array.shape[1])
            check(library.cudssMatrixCreateDn(ref(vector), n, count, n, pointer(array), FLOAT64, 0))
        return self

    def __exit__(self, *_):
        self.cupy.cuda.get_current_stream().synchronize()
        for matrix in (self.matrix, self.rhs, self.solution):
            self.library.cudssMatrixDestroy(matrix)
        self.library.cudssDataDestroy(self.handle, self.data)
        self.library.cudssConfigDestroy(self.config)
        self.library.cudssDestroy(self.handle)

    def leave(self, interface):
        """Have factorizations leave out these unknowns."""
        on, among = ctypes.c_int(1), np.zeros(self.order.shape[0], np.int32)
        among[interface] = 1
        check(self.library.cudssConfigSet(self.config, SCHUR_MODE, ctypes.byref(on), ctypes.sizeof(on)))
        size = ctypes.c_size_t(among.nbytes)
        check(self.library.cudssDataSet(self.handle, self.data, INTERFACE, among.ctypes.data_as(ctypes.c_void_p), size))
        self.among = among

    def complement(self):
        """The Schur complement of the last factorization, shape (m, m); one triangle where that was given."""
        m, matrix, written = ctypes.c_int64(self.interface.size), ctypes.c_void_p(), ctypes.c_size_t()
        if self.schur is None:
            self.schur = self.cupy.zeros((m.value, m.value), order="F")
        library, made = self.library, pointer(self.schur)
        check(library.cudssMatrixCreateDn(ctypes.byref(matrix), m, m, m, made, FLOAT64, 0))
        size = ctypes.c_size_t(ctypes.sizeof(matrix))
        read = (self.handle, self.data, COMPLEMENT, ctypes.byref(matrix), size, ctypes.byref(written))
        try:
            check(library.cudssDataGet(*read))
        finally:
            library.cudssMatrixDestroy(matrix)
        return self.schur

    def execute(self, phase):
        check(
            self.library.cudssExecute(self.handle, phase, self.config, self.data, self.matrix, self.solution, self.rhs)
        )

    def analyze(self):
        self.execute(REORDERING)
        self.execute(SYMBOLIC)

    def factor(self):
        self.execute(FACTORIZATION)

    def refactor(self):
        self.execute(REFACTORIZATION)

    def solve(self):
        self.execute(SOLVE)

    def step(self, values):
        """Refactor with these values and solve; the solution."""
        self.values[...] = values
        self.refactor()
        self.solve()
        return self.x

    def query(self, name):
        """An int64 that cuDSS knows about its factors: ENTRIES or FLOPS; None where it does not say."""
        value, written = ctypes.c_int64(), ctypes.c_size_t()
        arguments = (self.handle, self.data, name, ctypes.byref(value), ctypes.c_size_t(8), ctypes.byref(written))
        return None if self.library.cudssDataGet(*arguments) else value.value


def pointer(array):
    return ctypes.c_void_p(array.data.ptr)


def check(status):
    """Raise RuntimeError unless cuDSS reports success."""
    if status:
        raise RuntimeError(f"cuDSS returned status {status}")
