"""``explain MATRIX``: the choices for a matrix, and their reasons."""

import argparse
from typing import Any

from gpusplu.dispatch.report import explain_matrix, facts_of_matrix
from gpusplu.dispatch.selection import read_request
from gpusplu.factors.analysis import analyzed_as

from .files import matrix_of
from .report import NAMES, add_matrix, add_options, kind_of, print_json, refusing


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("explain", help="show what gpusplu would do with a matrix, and why", epilog=NAMES)
    add_matrix(parser)
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print traits, orderings, predicted seconds and the choice."""
    A = matrix_of(arguments.matrix)
    with refusing(arguments.matrix):
        request = read_request(arguments.engine, expected_refactors=arguments.expected_refactors)
        found = analyzed_as(kind_of(arguments), A, request, arguments.ordering)
        if arguments.json:
            print_json({"name": arguments.matrix, **facts_of_matrix(*found)})
        else:
            print(explain_matrix(*found))
    return 0
