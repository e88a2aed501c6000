"""Programs on ranks, by the Python that has petsc4py: GPUSPLU_DISTRIBUTED_PYTHON says which, else that of the tests."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu as gs
from gpusplu import gallery

PROGRAM = Path(__file__).parent / "on_ranks.py"
# MPICH: ranks that wait give their processor away, of which there are fewer than ranks.
GENTLE = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def pairs(n):
    """Regular, and after one pivot of a pair the other is zero."""
    A = sp.kron(sp.eye_array(n // 2), np.ones((2, 2)))
    return sp.csr_array(A + sp.diags_array([1e-3, 1e-3], offsets=[2, -2], shape=(n, n)))


def matrices():
    rng = np.random.default_rng(0)
    general = gallery.convection_diffusion(9, 9) + sp.random_array((81, 81), density=0.03, rng=rng)
    return {
        "general": general,
        "definite": gallery.poisson(9, 10),
        "indefinite": gallery.kkt(80, 30),
        "large": gallery.poisson(12, 12, 12),
        "larger": gallery.poisson(32, 32, 32),
        "pairs": pairs(40),
    }


class Ranks:
    """Starts programs with mpiexec, and knows what they left."""

    def __init__(self, python, mpiexec, folder):
        self._command, self.folder = [mpiexec, "-n"], folder
        packages = folder / "packages"  # gpusplu, and nothing that was compiled for the Python of the tests
        packages.mkdir()
        (packages / "gpusplu").symlink_to(Path(gs.__file__).parent)
        self._environment = {**os.environ, **GENTLE, "PYTHONPATH": str(packages)}
        self._python = python
        self.matrices = matrices()
        for name, A in self.matrices.items():
            sp.save_npz(folder / f"{name}.npz", A)

    def start(self, ranks, *checks):
        return self.run(ranks, PROGRAM, self.folder, *checks)

    def run(self, ranks, program, *arguments):
        """A program on so many ranks, once it has ended."""
        command = [*self._command, str(ranks), self._python, "-P", str(program), *map(str, arguments)]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=300)

    def arrays(self, name, ranks):
        with np.load(self.folder / f"{name}.{ranks}.npz") as kept:
            return dict(kept)

    def told(self, name, ranks):
        return json.loads((self.folder / f"{name}.{ranks}.json").read_text())


@pytest.fixture(scope="session")
def starter(tmp_path_factory):
    python = os.environ.get("GPUSPLU_DISTRIBUTED_PYTHON", sys.executable)
    if python == sys.executable and not find_spec("petsc4py"):
        pytest.skip("no petsc4py (set GPUSPLU_DISTRIBUTED_PYTHON to a Python that has it)")
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join((str(Path(python).parent), os.environ["PATH"])))
    if mpiexec is None:
        pytest.skip("no mpiexec")
    return Ranks(python, mpiexec, tmp_path_factory.mktemp("ranks"))


@pytest.fixture(scope="session", params=[2, *(pytest.param(ranks, marks=pytest.mark.thorough) for ranks in (1, 4))])
def ran(starter, request):
    """All checks done on so many ranks, and how many those are."""
    checks = ["mumps", "superlu_dist", "cholesky", "ldlt", "zero_rows", "refusals", "singular", "growth"]
    done = starter.start(request.param, *checks)
    assert done.returncode == 0, done.stdout + done.stderr
    return starter, request.param


@pytest.fixture(scope="session")
def serial(starter):
    """Factors of the CPU engine."""
    made = {"general": gs.splu, "definite": gs.cholesky, "indefinite": gs.ldlt}
    return {name: make(sp.csc_array(starter.matrices[name]), engine="cpu") for name, make in made.items()}
