"""One analysis, factored from several threads at once: what it lacks is made once, and bits are those of one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpusplu as gs
from gpusplu import gallery
from gpusplu.engines.supernodal.engine import SupernodalEngine
from support.small_matrices import canonical, rhs

pytestmark = pytest.mark.usefixtures("device")

THREADS = 4


def together(work):
    """Results of `work(k)`, all of which begin at once."""
    barrier = threading.Barrier(THREADS, timeout=60)
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(lambda k: (barrier.wait(), work(k))[1], range(THREADS)))


@pytest.mark.parametrize("engine", ["cpu", "supernodal", "sflu", "crisscross"])  # glu adds in any order
def test_factors_of_several_threads(engine):
    A = canonical(gallery.rlc_mesh(5, 5))
    b = rhs(A.shape[0])
    expected = [gs.analyze(A, engine=engine).factor((1 + k) * A.data).solve(b) for k in range(THREADS)]
    symbolic = gs.analyze(A, engine=engine)
    found = together(lambda k: symbolic.factor((1 + k) * A.data).solve(b))
    for x, alone in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, alone)


def test_a_plan_is_uploaded_once(monkeypatch):
    uploads, upload = [], SupernodalEngine.upload
    late = threading.Event()

    def slow(self, *arguments):
        uploads.append(threading.current_thread())
        late.wait(0.05)  # for whoever does not wait
        return upload(self, *arguments)

    monkeypatch.setattr(SupernodalEngine, "upload", slow)
    A = canonical(gallery.poisson(6, 6))
    symbolic = gs.analyze(A, cholesky=True, engine="supernodal")
    factors = together(lambda k: symbolic.factor((1 + k) * A.data))
    assert len(uploads) == 1
    assert len({id(factor.parts()[0].commands.program) for factor in factors}) == 1
