"""``explain FILE``: what would be done with a matrix, and why."""

import argparse
from pathlib import Path
from typing import Any

import gpusplu

from .files import read_matrix
from .report import CommandError, describe


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("explain", help="say what would be done with a matrix, and why")
    parser.add_argument("file", type=Path, metavar="FILE", help="matrix: .mtx, .mtx.gz or .npz")
    parser.add_argument("--cholesky", action="store_true", help="A is Hermitian positive definite")
    parser.add_argument("--ldlt", action="store_true", help="A is Hermitian or symmetric, definite or not")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print traits, orderings, predicted seconds and the choice."""
    A = read_matrix(arguments.file)
    try:
        print(gpusplu.explain(A, cholesky=arguments.cholesky, ldlt=arguments.ldlt))
    except (RuntimeError, ValueError, ArithmeticError, MemoryError) as error:
        raise CommandError(f"{arguments.file}: {describe(error)}") from None
    return 0
