"""Finite elements by scikit-fem and felupe."""

import felupe
import numpy as np
import skfem
from scipy.sparse.linalg import splu
from skfem.helpers import ddot, dot, grad, sym_grad, trace
from skfem.models.poisson import laplace, mass


def heat(n):
    """The heat equation by Crank and Nicolson: one factorization, a solve a step."""
    basis = skfem.Basis(skfem.MeshTri.init_tensor(*2 * [np.linspace(0, 1, n + 1)]), skfem.ElementTriP1())
    step, inner = 1e-3, basis.complement_dofs(basis.get_dofs())
    begin = np.sin(np.pi * basis.doflocs[0]) * np.sin(np.pi * basis.doflocs[1])

    def run():
        stiffness, masses = laplace.assemble(basis), mass.assemble(basis)
        left, right = ((masses + sign * step / 2 * stiffness)[inner][:, inner] for sign in (1, -1))
        solve, u = splu(left.T.tocsc()).solve, begin[inner]
        for _ in range(100):
            u = solve(right @ u, "T")
        return u

    return run


def semilinear(n):
    """-div grad u + u^3 = 10 by Newton's method, each matrix of the same pattern."""
    basis = skfem.Basis(skfem.MeshTri.init_tensor(*2 * [np.linspace(0, 1, n + 1)]), skfem.ElementTriP2())
    inner = basis.complement_dofs(basis.get_dofs())

    @skfem.BilinearForm
    def jacobian(u, v, w):
        return dot(grad(u), grad(v)) + 3 * w["before"] ** 2 * u * v

    @skfem.LinearForm
    def residual(v, w):
        return dot(w["before"].grad, grad(v)) + w["before"] ** 3 * v - 10 * v

    def run():
        u = np.zeros(basis.N)
        for _ in range(6):
            before = basis.interpolate(u)
            system = jacobian.assemble(basis, before=before), -residual.assemble(basis, before=before)
            u += skfem.solve(*skfem.condense(*system, I=inner))
        return u

    return run


def elasticity(n):
    """A cantilever of hexahedra under several loads."""
    mesh = skfem.MeshHex.init_tensor(np.linspace(0, 2, 2 * n + 1), *2 * [np.linspace(0, 1, n + 1)])
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex1()))
    held = basis.get_dofs(lambda x: x[0] == 0)

    @skfem.BilinearForm
    def stiffness(u, v, w):
        strain, test = sym_grad(u), sym_grad(v)
        return ddot(strain, test) + 0.5 * trace(strain) * trace(test)

    def run():
        found = []
        matrix = stiffness.assemble(basis)
        for direction in range(3):
            load = np.zeros(basis.N)
            load[basis.get_dofs(lambda x: x[0] == 2).all(f"u^{direction + 1}")] = 1
            found.append(skfem.solve(*skfem.condense(matrix, load, D=held)))
        return np.array(found)

    return run


def hyperelasticity(n):
    """A block of rubber, pulled in steps, by felupe, whose solver is a default argument."""
    mesh = felupe.Cube(n=n)
    field = felupe.FieldContainer([felupe.Field(felupe.RegionHexahedron(mesh), dim=3)])
    boundaries = felupe.dof.uniaxial(field, clamped=True, return_loadcase=False)
    solid = felupe.SolidBody(felupe.NeoHooke(mu=1, bulk=5), field)
    pull = felupe.Step([solid], ramp={boundaries["move"]: felupe.math.linsteps([0, 0.6], num=4)}, boundaries=boundaries)

    def run():
        felupe.Job([pull]).evaluate(verbose=0)
        return field[0].values

    return run
