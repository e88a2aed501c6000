"""``plot KIND FILE -o PICTURE``: pictures of the factorization of a matrix."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from gpusplu.common.installed import install_hint
from gpusplu.linalg import cholesky, splu

from .files import check_output, matrix_of
from .report import NAMES, CommandError, add_matrix, add_refactors, describe, refusing

KINDS = {
    "density": "density of the remaining submatrix, predicted and real",
    "requests": "memory requests on the matrix plane, unblocked and blocked",
    "strides": "memory strides on the matrix plane, unblocked and blocked",
    "levels": "columns of every level",
    "supernodes": "supernodes and operations of every level",
    "spy": "pattern of L + U, with fronts",
    "timeline": "phases of a factorization, and the fronts of each thread over time",
    "roofline": "the last factorization and solve below the roof of this machine",
}
PICTURES = (".pdf", ".png", ".svg")


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser(
        "plot",
        help="draw a picture of the factorization of a matrix",
        epilog="kinds: " + "; ".join(f"{kind}: {text}" for kind, text in KINDS.items()) + ". " + NAMES,
    )
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add_matrix(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="PICTURE", required=True, help=", ".join(PICTURES))
    parser.add_argument("--ordering", default="auto", help="auto (default), nd, amd or natural")
    add_refactors(parser, "as in explain: expected use, for the automatic ordering")
    parser.add_argument("--cholesky", action="store_true", help="of the Cholesky factor of a definite matrix")
    parser.add_argument("--engine", default="auto", help="timeline, roofline: auto (default) or the name of an engine")
    parser.add_argument(
        "--division",
        type=int,
        metavar="P",
        help="requests, strides: first column of the dense trailing block; default: where density passes 1/2",
    )
    parser.add_argument("--first", type=int, default=0, metavar="K", help="spy: first row and column of the picture")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw and write."""
    check_output(arguments.output, PICTURES)
    try:
        import matplotlib

        matplotlib.use("agg")
    except ImportError:
        raise CommandError(f"pictures need matplotlib: {install_hint('plot')}") from None
    A = matrix_of(arguments.matrix)
    with refusing(arguments.matrix):
        figure = draw(A, arguments)
    try:
        figure.savefig(arguments.output, dpi=150)
    except OSError as error:
        raise CommandError(f"{arguments.output}: cannot be written: {describe(error)}") from None
    print(f"{arguments.output}: {KINDS[arguments.kind]}")
    return 0


def draw(A: Any, arguments: argparse.Namespace) -> Any:
    """The figure of a kind."""
    from .. import plotting

    kind = arguments.kind
    if A.shape[0] == 0:
        raise ValueError("the matrix is empty")
    if kind in ("supernodes", "spy"):
        fronts = plotting.fronts(A, arguments.ordering, arguments.cholesky)
        spy = kind == "spy"
        return (plotting.draw_spy(fronts, arguments.first) if spy else plotting.draw_supernodes(fronts)).figure
    if kind in ("timeline", "roofline"):
        plot = factored(A, arguments).plot
        return plot.timeline() if kind == "timeline" else plot.roofline().figure
    structure = plotting.column_structure(A, arguments.ordering, arguments.expected_refactors)
    if kind == "requests":
        return plotting.draw_requests(structure, arguments.division)
    if kind == "strides":
        return plotting.draw_strides(structure, arguments.division)
    return (plotting.draw_levels if kind == "levels" else plotting.draw_density)(structure).figure


def factored(A: Any, arguments: argparse.Namespace) -> Any:
    """A factor after calls of all phases, the last of them warm."""
    factor = cholesky if arguments.cholesky else splu
    how = {"ordering": arguments.ordering, "expected_refactors": arguments.expected_refactors}
    made = factor(A, engine=arguments.engine, **how)
    b = np.ones(A.shape[0], made.dtype)
    for _ in range(3):
        made.refactor(A.data)
        made.solve(b)
    return made
