"""A new engine comes in by its interface alone: dense LU by LAPACK, which no other file knows (CONTRIBUTING.md)."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg.lapack import get_lapack_funcs

import gpusplu as gs
from gpusplu import cli
from gpusplu.common.timing import backward_error
from gpusplu.cost.model import Prediction
from gpusplu.engines import registry
from gpusplu.engines.interface import Analysis, Engine
from support.small_matrices import EPS, random_matrix, rhs


class ToyFactor:  # without L, U, permutations, determinants and condition numbers
    def __init__(self, symbolic, pattern, values):
        self.method, self.backward_error = "dense", -1.0
        self.symbolic, self.pattern, self.n, self.nnz = symbolic, pattern, pattern.n, pattern.n**2
        self.getrf, self.getrs = get_lapack_funcs(("getrf", "getrs"), (values,))
        self.refactor(values)

    def refactor(self, values, source=None):
        values = (values if source is None else values[source]).copy()
        if not np.isfinite(values).all():
            return int(np.isfinite(values).argmin())
        lu, swaps, info = self.getrf(sp.csc_array((values, self.pattern.ind, self.pattern.ptr)).toarray())
        if info:
            raise RuntimeError("Factor is exactly singular")
        self.held = lu, swaps, values
        return -1

    def solve(self, b, trans=0):
        return self.getrs(*self.held[:2], b, trans=trans)[0]

    def values(self):
        return self.held[2]

    def stats(self):
        return {"bytes": self.held[0].nbytes, "factor_seconds": 0.0, "refactor_seconds": 0.0, "solve_seconds": 0.0}


class ToyEngine(Engine):
    name, kinds = "toy", ("lu",)

    def predict(self, problem):
        return Prediction("toy", factor=1e-9, refactor=1e-9, solve=1e-9)

    def analyze(self, problem):
        return problem.memo("toy", lambda: Analysis(problem.for_processor()))

    def adopt(self, problem, analysis):
        problem.memo("toy", lambda: analysis)

    def factor(self, problem, analysis, values):
        return ToyFactor(analysis.core, problem.pattern, values)


@pytest.mark.parametrize("engine", ["toy", "auto"])
def test_a_new_engine_is_an_engine_like_any_other(engine, capsys):
    A, b = random_matrix(40), rhs(40)
    with registry.registered(ToyEngine()):
        lu = gs.splu(A, engine=engine)
        lu.refactor(2 * A.data)
        for factor in (lu, pickle.loads(pickle.dumps(lu))):
            assert (factor.engine, factor.stats.engine, factor.stats.nnz_factor) == ("toy", "toy", 1600)
            assert "engine    toy: " in factor.explain() and "\n  toy " in gs.explain(A, engine=engine)
            assert backward_error(2 * A, factor.solve(b), b) < 100 * EPS["d"]
        with pytest.raises(gs.EngineUnavailableError, match="engine='toy' has no cholesky factorization"):
            gs.cholesky(A @ A.T, engine="toy")
        assert cli.main(["doctor"]) == 0 and "toy          available" in capsys.readouterr().out


def test_bench_measures_it():
    with registry.registered(ToyEngine()):
        assert cli.main(["bench", "rlc:6x6", "--budget", "0.01", "--engine", "toy"]) == 0
