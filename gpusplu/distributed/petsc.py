"""Import of petsc4py from any of its sources."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from ..common.installed import install_hint
from ..errors import EngineUnavailableError


@cache
def load() -> Any:
    """The module petsc4py.PETSc, initialized.

    Raises
    ------
    EngineUnavailableError
        It is not installed, or cannot be loaded.
    """
    try:
        if find_spec("dolfinx_solver"):
            import dolfinx_solver  # noqa: F401 - has to come first where it is what brings petsc4py
        import petsc4py

        petsc4py.init(["gpusplu", "-no_signal_handler"])  # does nothing where a program has done so before
        from petsc4py import PETSc
    except (ImportError, RuntimeError) as error:
        raise EngineUnavailableError(
            f"distributed factorizations need petsc4py: {install_hint('distributed')}, or a cluster's own; {error}"
        ) from error
    return PETSc
