"""Matrices of any size for tests, benchmarks and examples: circuits, power grids, finite elements, saddle points.

Every generator is vectorized, takes a seed where it draws random numbers, and returns a canonical `csc_array` of
float64 with int32 indices. :func:`named` makes one from the short names that tables and benchmarks use.

>>> A = gs.gallery.named("poisson:20x20")
>>> A.shape
(400, 400)
"""

from collections.abc import Callable

from scipy.sparse import csc_array

from .circuits import Circuit, circuit, power_mesh, rlc_lines, rlc_mesh
from .fields import convection_diffusion, elasticity, poisson
from .saddles import helmholtz, kkt, mixed_elements, stokes

__all__ = [
    "Circuit",
    "circuit",
    "convection_diffusion",
    "elasticity",
    "helmholtz",
    "kkt",
    "mixed_elements",
    "named",
    "poisson",
    "power_mesh",
    "rlc_lines",
    "rlc_mesh",
    "stokes",
]

FAMILIES: dict[str, Callable[..., csc_array]] = {
    "circuit": lambda *shape: circuit(*shape).matrix(),
    "convdiff": lambda *shape: convection_diffusion(*(shape * 3 if len(shape) == 1 else shape)),
    "elast": elasticity,
    "helmholtz": helmholtz,
    "kkt": lambda variables, constraints, digits=3: kkt(variables, constraints, 10.0**-digits),
    "lines": rlc_lines,
    "mixed": mixed_elements,
    "poisson": poisson,
    "power": power_mesh,
    "rlc": rlc_mesh,
    "stokes": stokes,
}


def named(name: str) -> csc_array:
    """Make a matrix from its short name, a family and a size.

    Parameters
    ----------
    name : str
        ``family:AxB`` or ``family:AxBxC`` with a family of ``circuit`` (the Jacobian of :func:`circuit` at rest),
        ``convdiff`` (one number means a cube), ``elast``, ``helmholtz``, ``kkt`` (:func:`kkt`; with a third number, the
        barrier parameter is ten to minus it), ``lines`` (:func:`rlc_lines`), ``mixed`` (:func:`mixed_elements`),
        ``poisson``, ``power``, ``rlc`` or ``stokes``.

    Returns
    -------
    csc_array

    Raises
    ------
    ValueError
        If the family is unknown, or the size is not as many positive integers as it takes, joined by ``x``.

    Examples
    --------
    >>> from gpusplu import gallery
    >>> gallery.named("poisson:20x20").shape
    (400, 400)
    """
    family, _, size = name.partition(":")
    parts = size.split("x")
    if family not in FAMILIES or not all(part.isdecimal() and int(part) > 0 for part in parts):
        known = ", ".join(FAMILIES)
        raise ValueError(f"name={name!r} is not family:AxB or family:AxBxC with a family of {known}")
    try:
        return FAMILIES[family](*map(int, parts))
    except TypeError as error:  # of the call
        raise ValueError(f"name={name!r} has another number of sizes than {family} takes: {error}") from None
