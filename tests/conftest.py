"""What all tests share.

Real matrices are where GPUSPLU_MATRICES says, else in ../shared/matrices next to the checkout.
"""

import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gpusplu

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # of XLA: programs of tests are compiled and run once

pytest.register_assert_rewrite("support")

from support import ROOT  # noqa: E402

#: Selected files from which on there is a worker for each processor; fewer take less than workers take to start.
FILES_FOR_WORKERS = 4
#: Folders whose files take longest: they begin first, so that no worker is left with one of them at the end.
FIRST = ("conformance", "gradients", "contract", "faults", "property", "emulated")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """No workers for a few files, nor on a GPU, which all would share."""
    if "gpu" in config.option.markexpr.replace("not gpu", ""):
        return 0
    paths = [Path(argument.partition("::")[0]) for argument in config.args]
    files = [path for each in paths for path in (each.rglob("test_*.py") if each.is_dir() else [each])]
    return len(os.sched_getaffinity(0)) if len(files) >= FILES_FOR_WORKERS else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    rank = {name: k for k, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path.relative_to(here).parts[0], len(FIRST)))


@pytest.fixture
def quick_collections():
    """Timings collect garbage first: that must not go through all that tests have imported and made by now."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def matrix_folder() -> Path | None:
    folder = Path(os.environ.get("GPUSPLU_MATRICES", ROOT.parent / "shared" / "matrices"))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def real_matrix():
    """Load a real matrix by name as CSC, or skip with the reason."""

    def load(name):
        folder = matrix_folder()
        if folder is None or not (folder / f"{name}.npz").exists():
            pytest.skip(f"no {name}.npz (set GPUSPLU_MATRICES)")
        return sp.csc_array(sp.load_npz(folder / f"{name}.npz"))

    return load


@pytest.fixture(scope="session")
def real_sequence():
    """Load a sequence of matrices on one pattern by name: (indptr, indices, shape, data), or skip with the reason."""

    def load(name):
        folder = matrix_folder()
        path = folder.parent / "sequences" / f"{name}.npz" if folder else None
        if path is None or not path.exists():
            pytest.skip(f"no sequences/{name}.npz beside the matrices (set GPUSPLU_MATRICES)")
        with np.load(path) as arrays:
            return arrays["indptr"], arrays["indices"], tuple(arrays["shape"]), arrays["data"]

    return load


@pytest.fixture(autouse=True)
def no_patterns():
    """What tests did before is forgotten."""
    gpusplu.cache_clear()


@pytest.fixture
def threads():
    """A function that sets how many threads the core uses in this test."""
    from gpusplu import _core, _core_testing

    def use(count):
        for module in (_core, _core_testing):
            module.set_num_threads(count)

    yield use
    use(0)


@pytest.fixture
def own_cache(tmp_path, monkeypatch, quick_collections):
    """A folder for fitted constants of a test that measures."""
    from gpusplu.cost import calibration

    monkeypatch.setenv("GPUSPLU_CACHE_DIR", str(tmp_path / "cache"))
    calibration.forget()
    yield tmp_path / "cache"
    calibration.forget()


@pytest.fixture
def stand_in(monkeypatch):
    """A CuPy in host memory (support/stand_in) can be imported, and has not been; the folder it is in."""
    ours = "gpusplu.install.compat_cupyx"

    def imported():
        return [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx") or name == ours]

    for name in imported():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(sys.modules["gpusplu.install"], "compat_cupyx", raising=False)
    folder = Path(__file__).parent / "support" / "stand_in"
    monkeypatch.syspath_prepend(folder)
    yield folder
    gpusplu.uninstall()
    for name in imported():
        del sys.modules[name]
    vars(sys.modules["gpusplu.install"]).pop("compat_cupyx", None)


@pytest.fixture
def cupyx(stand_in):
    """The stand-in, imported."""
    from support.cupys import Cupyx

    return Cupyx()
