"""``demo``: a nonlinear circuit and a finite element problem, solved here and with SciPy's own routines."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse.linalg

import gpusplu
from gpusplu import gallery
from gpusplu.common.stats import column, show
from gpusplu.common.timing import backward_error, timed

from .report import Progress, add_output, print_json, table

Vector = np.ndarray[Any, np.dtype[np.float64]]

STEP = 1e-11  # time step of the transient [s]
LARGEST_UPDATE = 0.5  # of a node voltage in one Newton step [V]
CONVERGED = 1e-6  # largest update of a node voltage in the last Newton step [V]


@dataclass
class Side:
    """Times and accuracy of one solver."""

    first: float = 0.0  # factorization with its analysis [s]
    steps: list[float] = field(default_factory=list)  # each later system [s]
    error: float = 0.0  # worst backward error

    def step(self) -> float:
        """Mean of the later systems [s]."""
        return float(np.mean(self.steps))


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("demo", help="solve a circuit and a finite element problem with gpusplu and SciPy")
    parser.add_argument("--quick", action="store_true", help="small problems, a second or two")
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Solve both problems and print one table."""
    start = time.perf_counter()
    mesh, newton_steps, every, elements, loads = (20, 40, 4, 5, 2) if arguments.quick else (100, 300, 10, 20, 8)
    circuit = gallery.circuit(mesh, mesh)
    own, scipys, time_steps = transient(circuit, newton_steps, every)
    found = [compare("circuit", circuit.n, "Newton step", own, scipys, newton_steps)]
    K = gallery.elasticity(elements, elements, elements)
    found.append(compare("elasticity", K.shape[0], "right-hand side", *structure(K, loads), loads))
    if arguments.json:
        print_json({"problems": found})
        return 0
    print(table(("", "gpusplu", "SciPy", "x SciPy"), [row for one in found for row in rows_of(one)]))
    sample = f"every {every}th of the same systems ({len(scipys.steps)} of {newton_steps})"
    print(f"""
The circuit took {time_steps} time steps, refactor and solve in each Newton step. SciPy has no refactor: splu and solve,
timed on {sample}; its total is scaled up from their mean.
x SciPy: SciPy's seconds divided by gpusplu's. Elasticity compares cholesky with splu. Backward errors are the largest
of all systems solved.
The demo took {time.perf_counter() - start:.0f} s.""")
    return 0


def compare(name: str, n: int, unit: str, own: Side, scipys: Side, count: int) -> dict[str, Any]:
    """Times of both solvers for one problem [s], and their backward errors."""
    return {
        "name": name,
        "unknowns": n,
        "unit": unit,
        "count": count,
        "factorization": {"gpusplu": own.first, "scipy": scipys.first},
        "step": {"gpusplu": own.step(), "scipy": scipys.step()},
        "total": {"gpusplu": own.first + count * own.step(), "scipy": scipys.first + count * scipys.step()},
        "backward_error": {"gpusplu": own.error, "scipy": scipys.error},
    }


def rows_of(one: dict[str, Any]) -> list[list[str]]:
    """Rows of the table, one unit per row."""
    unit, errors = one["unit"], one["backward_error"].values()
    rows = [[f"{one['name']}, {show(one['unknowns'])} unknowns", "", "", ""]]
    titles = {"factorization": "factorization", "step": unit, "total": f"total with {one['count']} {unit}s"}
    for key, title in titles.items():
        own, scipys = one[key].values()
        rows.append([f"  {cell}" if not k else cell for k, cell in enumerate(column(title, [own, scipys]))])
        rows[-1].append(f"{scipys / own:.1f}")
    return [*rows, ["  backward error", *(f"{error:.1e}" for error in errors), ""]]


def transient(circuit: gallery.Circuit, newton_steps: int, every: int) -> tuple[Side, Side, int]:
    """Integrate the circuit for `newton_steps` Newton steps; SciPy solves some of them too, at a fixed interval.

    Returns
    -------
    own, scipys : Side
    time_steps : int
        Finished ones.
    """
    own, scipys = Side(), Side()
    A = circuit.matrix()
    own.first, lu = timed(lambda: gpusplu.splu(A))
    scipys.first, _ = timed(lambda: scipy.sparse.linalg.splu(A))
    x = previous = circuit.rest()
    time_steps = 0
    with Progress("circuit   ", newton_steps) as progress:
        for newton in range(newton_steps):
            values, residual = circuit.stamp(x, previous, STEP * (time_steps + 1), STEP)
            update = noted(own.steps, lambda: (lu.refactor(values), lu.solve(residual))[1])  # noqa: B023
            A.data = values
            own.error = max(own.error, backward_error(A, update, residual))
            if newton % every == 0:
                peer = noted(scipys.steps, lambda: scipy.sparse.linalg.splu(A).solve(residual))  # noqa: B023
                scipys.error = max(scipys.error, backward_error(A, peer, residual))
            update[: circuit.nodes] = np.clip(update[: circuit.nodes], -LARGEST_UPDATE, LARGEST_UPDATE)
            x = x - update
            if abs(update[: circuit.nodes]).max() < CONVERGED:
                previous, time_steps = x, time_steps + 1
            progress.advance(f"{STEP * time_steps * 1e9:.2f} ns")
    return own, scipys, time_steps


def structure(K: Any, loads: int) -> tuple[Side, Side]:
    """Factor a stiffness matrix once and solve for several loads, with cholesky and with SciPy's splu."""
    forces = np.random.default_rng(0).normal(size=(loads, K.shape[0]))
    sides = []
    with Progress("elasticity", 2 * (loads + 1)) as progress:
        for factorize in (gpusplu.cholesky, scipy.sparse.linalg.splu):
            first, factor = timed(partial(factorize, K))
            side = Side(first)
            progress.advance()
            for force in forces:
                u = noted(side.steps, partial(factor.solve, force))
                side.error = max(side.error, backward_error(K, u, force))
                progress.advance()
            sides.append(side)
    return sides[0], sides[1]


def noted(record: list[float], solve: Callable[[], Vector]) -> Vector:
    """Call `solve` and append its seconds."""
    start = time.perf_counter()
    x = solve()
    record.append(time.perf_counter() - start)
    return x
