"""``solve MATRIX [RHS] [-o X]``: one linear system."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import gpusplu
from gpusplu.common.stats import column, show
from gpusplu.common.timing import backward_error, timed
from gpusplu.dispatch.report import method_text

from .files import SOLUTIONS, check_output, matrix_of, read_rhs, write_solution
from .report import NAMES, add_matrix, add_options, facts, kind_of, print_json, refusing

FIRST = 5  # entries of the solution that are printed


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("solve", help="solve a linear system, and report its accuracy", epilog=NAMES)
    add_matrix(parser)
    parser.add_argument(
        "rhs", type=Path, metavar="RHS", nargs="?", help="file of right-hand sides, also .npy; default: A @ ones"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="X", help=f"write the solution: {', '.join(SOLUTIONS)}")
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Factor, solve, write, and print a summary with the backward error."""
    if arguments.output is not None:
        check_output(arguments.output, SOLUTIONS)
    A = matrix_of(arguments.matrix)
    b = A @ np.ones(A.shape[0], A.dtype) if arguments.rhs is None else read_rhs(arguments.rhs, A.shape[0])
    if not np.can_cast(b.real.dtype, A.data.real.dtype):
        A = A.astype(np.result_type(A.dtype, b.real.dtype))  # solved in the precision of both
    factorize: Any = {"lu": gpusplu.splu, "cholesky": gpusplu.cholesky, "ldlt": gpusplu.ldlt}[kind_of(arguments)]
    with refusing(arguments.matrix):
        how = {name: getattr(arguments, name) for name in ("engine", "ordering", "expected_refactors")}
        factor: Any = factorize(A, **how)
        took, x = timed(lambda: factor.solve(b))
    found = findings(arguments, A, b, factor, x, took)
    if arguments.output is not None:
        write_solution(arguments.output, x)
    if arguments.json:
        print_json(found)
    else:
        print(text_of(found))
    return 0


def findings(
    arguments: argparse.Namespace, A: Any, b: np.ndarray, factor: Any, x: np.ndarray, took: float
) -> dict[str, Any]:
    """Facts of the system and its solution; norms are the largest row sum and the largest entry."""
    stats, norm_A = factor.stats, float(abs(A).sum(axis=1).max(initial=0.0))
    return {
        "name": arguments.matrix,
        "matrix": {"n": A.shape[0], "nnz": A.nnz, "dtype": A.dtype.name},
        "right_hand_side": {"name": str(arguments.rhs or "A @ ones"), "columns": 1 if b.ndim == 1 else b.shape[1]},
        "engine": factor.engine,
        "reason": factor.symbolic.choice.reason,
        "method": method_text(stats["method"], stats["symmetric"]),
        "ordering": stats["ordering"],
        "entries": factor.nnz,
        "seconds": {**stats["seconds"], "solve": took},
        "norms": {"A": norm_A, "b": largest(b), "x": largest(x), "residual": largest(b - A @ x)},
        "backward_error": backward_error(A, x, b),
        "first_entries": x[:FIRST] if x.ndim == 1 else x[:FIRST, :1].ravel(),
        "solution": None if arguments.output is None else str(arguments.output),
    }


def largest(x: np.ndarray) -> float:
    """Modulus of the largest entry; NaN if an entry is NaN."""
    return float(abs(x).max(initial=0.0))


def text_of(found: dict[str, Any]) -> str:
    """The same as text."""
    matrix, norms, columns = found["matrix"], found["norms"], found["right_hand_side"]["columns"]
    phases = {phase: value for phase, value in found["seconds"].items() if value}
    title, *cells = column("seconds", list(phases.values()))
    entries = ", ".join(f"{entry:.6g}" for entry in found["first_entries"])
    more = ", ..." if entries and matrix["n"] > FIRST else ""
    return facts(
        [
            ("matrix", f"{show(matrix['n'])} x {show(matrix['n'])}, {show(matrix['nnz'])} entries, {matrix['dtype']}"),
            ("right-hand side", found["right_hand_side"]["name"] + (f", {columns} columns" if columns > 1 else "")),
            ("engine", f"{found['engine']}: {found['reason']}"),
            ("method", f"{found['method']}; ordering {found['ordering']}"),
            ("factor", f"{show(found['entries'])} entries"),
            (title, ", ".join(f"{phase} {cell}" for phase, cell in zip(phases, cells, strict=True))),
            (
                "infinity norms",
                f"A {norms['A']:.4g}, b {norms['b']:.4g}, x {norms['x']:.4g}, b - A x {norms['residual']:.4g}",
            ),
            ("backward error", f"{found['backward_error']:.2g}"),
            ("x" if columns == 1 else "x, column 1", entries + more or "-"),
            *([("solution", found["solution"])] if found["solution"] else []),
        ]
    )
