"""``solve FILE [RHS] -o X``: one linear system from files."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import gpusplu

from .files import SOLUTIONS, check_solution_path, read_matrix, read_rhs, write_solution
from .report import CommandError, backward_error, describe, seconds


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("solve", help="solve a linear system from files")
    parser.add_argument("file", type=Path, metavar="FILE", help="matrix: .mtx, .mtx.gz or .npz")
    parser.add_argument(
        "rhs", type=Path, metavar="RHS", nargs="?", help="right-hand sides: the same or .npy; without, A @ ones"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="X", help=f"solution: {', '.join(SOLUTIONS)}")
    parser.add_argument("--cholesky", action="store_true", help="A is Hermitian positive definite")
    parser.add_argument("--engine", default="auto", help="auto (default) or an engine's name, see doctor")
    parser.add_argument("--ordering", default="auto", help="auto (default), nd, amd or natural")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Factor, solve, write, and print engine, seconds and backward error."""
    if arguments.output is not None:
        check_solution_path(arguments.output)
    A = read_matrix(arguments.file)
    b = A @ np.ones(A.shape[0]) if arguments.rhs is None else read_rhs(arguments.rhs, A.shape[0])
    factorize = gpusplu.cholesky if arguments.cholesky else gpusplu.splu
    start = time.perf_counter()
    try:
        factor = factorize(A, engine=arguments.engine, ordering=arguments.ordering)
        factored = time.perf_counter()
        x = factor.solve(b)
    except (RuntimeError, ValueError, ArithmeticError, MemoryError) as error:
        raise CommandError(f"{arguments.file}: {describe(error)}") from None
    solved = time.perf_counter()
    print(f"matrix          {A.shape[0]} x {A.shape[1]}, {A.nnz} entries, {A.dtype}")
    print(f"right-hand side {'A @ ones' if arguments.rhs is None else arguments.rhs}")
    print(f"engine          {factor.engine}")
    print(f"factor          {seconds(factored - start)}")
    print(f"solve           {seconds(solved - factored)}")
    print(f"backward error  {backward_error(A, x, b):.2g}")
    if arguments.output is not None:
        write_solution(arguments.output, x)
        print(f"solution        {arguments.output}")
    return 0
