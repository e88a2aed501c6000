"""Finite volumes by FiPy, whose direct solver passes `diag_pivot_thresh` of its own to splu."""

import os

os.environ["FIPY_SOLVERS"] = "scipy"

import fipy
import numpy as np


def phase_separation(n):
    """The Cahn-Hilliard equation in two dimensions, steps that become longer."""
    mesh = fipy.Grid2D(nx=n, ny=n, dx=0.25, dy=0.25)
    begin = np.random.default_rng(0).normal(0.5, 0.01, n * n)

    def run():
        phase = fipy.CellVariable(mesh=mesh, value=begin)
        face = phase.arithmeticFaceValue
        well = fipy.DiffusionTerm(coeff=1 - 6 * face * (1 - face))
        equation = fipy.TransientTerm() == well - fipy.DiffusionTerm(coeff=(1.0, 1.0))
        solver = fipy.LinearLUSolver()
        for step in range(12):
            equation.solve(phase, dt=float(np.exp(step / 4 - 5)), solver=solver)
        return phase.value

    return run


def diffusion(n):
    """Diffusion and convection with a source that depends on the solution."""
    mesh = fipy.Grid2D(nx=n, ny=n, dx=1 / n, dy=1 / n)

    def run():
        u = fipy.CellVariable(mesh=mesh, value=0.0, hasOld=True)
        u.constrain(0.0, mesh.exteriorFaces)
        flow = fipy.PowerLawConvectionTerm(coeff=(3.0, 1.0))
        equation = fipy.TransientTerm() + flow == fipy.DiffusionTerm(coeff=0.1 + u**2) + 1.0
        solver = fipy.LinearLUSolver()
        for _ in range(6):
            u.updateOld()
            equation.solve(u, dt=0.05, solver=solver)
        return u.value

    return run
