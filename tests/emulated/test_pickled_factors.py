"""Factors of GPU engines that are unpickled where there is no device become factors of the CPU engine."""

import pickle
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu.cuda import devices
from gpusplu.errors import EngineUnavailableError
from support.processes import PYTHON, environment
from support.small_matrices import random_matrix, spd_matrix

FACTORS = {
    **{
        engine: lambda engine=engine: gs.splu(random_matrix(), engine=engine)
        for engine in ("glu", "sflu", "crisscross")
    },
    "supernodal": lambda: gs.splu(random_matrix(), engine="supernodal"),
    "supernodal, natural": lambda: gs.splu(random_matrix(), engine="supernodal", permc_spec="NATURAL"),
    "cholesky": lambda: gs.cholesky(spd_matrix(), engine="supernodal"),
}


def gone(which=None):
    raise EngineUnavailableError("no CUDA device can be used; pass engine='cpu'")


@pytest.mark.parametrize("name", FACTORS)
def test_without_the_device(device, monkeypatch, name):
    factor = FACTORS[name]()
    texts = pickle.dumps(factor), pickle.dumps(factor.symbolic)
    assert pickle.loads(texts[0]).engine == factor.engine
    monkeypatch.setattr(devices, "open_device", gone)
    copy, symbolic = map(pickle.loads, texts)
    b = np.arange(1.0, factor.shape[0] + 1)
    for made in (copy, symbolic.factor(factor._core.values()) if symbolic.parts()[0].pattern.core.identity else copy):
        assert type(made) is type(factor)
        assert made.engine == made.stats.engine == "cpu"
        assert f"cpu: pickled with engine='{factor.engine}', which cannot run here: no CUDA device" in made.explain()
        np.testing.assert_allclose(made.solve(b), factor.solve(b), rtol=1e-9)
    if name.endswith("natural"):
        np.testing.assert_array_equal(copy.perm_c, np.arange(factor.shape[0]))
    assert pickle.loads(pickle.dumps(copy)).engine == "cpu"


def test_in_another_process(device, tmp_path):
    (tmp_path / "factor.pickle").write_bytes(pickle.dumps(gs.splu(random_matrix(), engine="supernodal")))
    code = f"""
import pickle, sys
sys.modules["cupy"] = None
with open({str(tmp_path / "factor.pickle")!r}, "rb") as file:
    factor = pickle.load(file)
print(factor.engine, "GPU engines need CuPy" in factor.explain())
"""
    run = subprocess.run([*PYTHON, "-c", code], env=environment(), capture_output=True, text=True)
    assert run.stdout == "cpu True\n", run.stderr


@pytest.mark.parametrize("engine", ["cpu", "supernodal", "glu", "sflu", "crisscross"])
def test_natural_order_is_kept(device, engine):
    """As SciPy's test_natural_permc."""
    A = sp.csc_array(random_matrix(60))
    lu = gs.splu(A, permc_spec="NATURAL", engine=engine)
    assert lu.engine == engine
    np.testing.assert_array_equal(lu.perm_c, np.arange(60))
    np.testing.assert_allclose((lu.L @ lu.U).toarray()[lu.perm_r], A.toarray(), rtol=1e-10, atol=1e-10)
    lu.refactor(A.data * 2)
    np.testing.assert_array_equal(lu.perm_c, np.arange(60))
    np.testing.assert_allclose((lu.L @ lu.U).toarray()[lu.perm_r], 2 * A.toarray(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(A @ lu.solve(np.ones(60)), np.full(60, 0.5), rtol=1e-9)
    assert lu.stats.ordering == "natural"
