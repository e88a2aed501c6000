"""Arguments that several commands have."""

import argparse
from typing import Any

from gpusplu.cost.model import REFACTORIZATIONS
from gpusplu.gallery import FAMILIES

MATRIX = "a file (.mtx, .mtx.gz, .npz) or a name of the gallery (poisson:100x100)"
NAMES = f"names of the gallery: FAMILY:AxB or FAMILY:AxBxC, with a family of {', '.join(FAMILIES)}"


def add_matrix(parser: Any) -> None:
    """The matrix to work on."""
    parser.add_argument("matrix", metavar="MATRIX", help=MATRIX)


def add_kind(parser: Any) -> None:
    """Kind of factorization, LU by default."""
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--cholesky", action="store_true", help="A is Hermitian positive definite")
    kinds.add_argument("--ldlt", action="store_true", help="A is Hermitian or symmetric, definite or not")


def add_choices(parser: Any) -> None:
    """Choices that gpusplu makes by default."""
    parser.add_argument("--engine", default="auto", metavar="NAME", help="auto (default) or a name that doctor lists")
    parser.add_argument("--ordering", default="auto", metavar="NAME", help="auto (default), nd, amd or natural")
    add_refactors(parser)


def add_refactors(parser: Any, of: str = "how often the factor will be refactored and solved with") -> None:
    """Expected use, which choices depend on."""
    parser.add_argument(
        "--expected-refactors",
        type=float,
        default=REFACTORIZATIONS,
        metavar="N",
        help=f"{of}; {REFACTORIZATIONS} unless given",
    )


def add_output(parser: Any) -> None:
    """Output format."""
    parser.add_argument("--json", action="store_true", help="print one object of JSON, numbers in SI units")
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="say on standard error what is done; twice: every solve too"
    )


def kind_of(arguments: argparse.Namespace) -> str:
    """Keywords of the requested factorization."""
    return "ldlt" if arguments.ldlt else "cholesky" if arguments.cholesky else "lu"
