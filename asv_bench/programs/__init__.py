"""Programs of others as their users write them: nothing here knows gpusplu.

A program is a function of a size that makes what is given (meshes, networks, data) and returns a function without
arguments that does the work, assembly and all, and returns numbers that tell whether it did. Names are
``module.function``.
"""

import sys
from importlib import import_module
from types import ModuleType

#: Of every program: the usual size.
SIZES = {
    "power.newton_series": 12,
    "power.dc_series": 40,
    "elements.heat": 160,
    "elements.semilinear": 80,
    "elements.elasticity": 10,
    "elements.hyperelasticity": 9,
    "life_cycle.monte_carlo": 4_000,
    "control.interior_point": 200,
    "volumes.phase_separation": 90,
    "volumes.diffusion": 160,
    "odes.bdf": 70,
    "odes.radau": 50,
    "odes.boundary_values": 60,
    "eigenvalues.shifted": 22,
    "eigenvalues.spectral_embedding": 20_000,
}


def made(name, size):
    """The work of a program of this size, ready to be done.

    Raises
    ------
    ImportError
        A package that it needs is not installed: ``pip install --group programs``.
    """
    module, function = name.split(".")
    return getattr(import_module(f"{__name__}.{module}"), function)(size)


def modules_with(name, value):
    """Modules that are loaded and have this value by this name."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [module for module in modules if vars(module).get(name) is value]
