"""``bench``: what the engines take on a matrix, measured and predicted; ``--calibrate``: constants of this machine."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scipy.sparse as sp
import scipy.sparse.linalg

from gpusplu import gallery
from gpusplu.cost.model import fastest
from gpusplu.cuda.presence import no_device
from gpusplu.engines import registry
from gpusplu.linalg import analyze
from gpusplu.measure import failure, measure
from gpusplu.report import predictions_of
from gpusplu.selection.request import AUTO, engine_names
from gpusplu.timing import Measured, backward_error, other_values, timed

from . import calibrate
from .files import read_matrix
from .report import CommandError, describe, seconds, table

GALLERY = calibrate.cases(
    "circuit:40x40 rlc:60x60 rlc:150x150 power:100x100", definite="poisson:200x200 elast:12x12x12"
)
SCIPY_FLOPS = 5e10  # SciPy is not measured above: minutes [flop]
HEADER = ("", "analyze", "factor", "refactor", "solve", "predicted", "ratio", "error")


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("bench", help="measure what each engine takes, beside SciPy; or calibrate")
    parser.add_argument("file", nargs="*", metavar="FILE", help="matrix: .mtx, .mtx.gz, .npz, or a gallery name")
    parser.add_argument("--cholesky", action="store_true", help="the files are Hermitian positive definite")
    parser.add_argument("--engine", help="names joined by commas; all that can run unless given")
    parser.add_argument("--on-device", action="store_true", help="values and vectors are on the device")
    parser.add_argument("--no-scipy", action="store_true", help="without SciPy's splu")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds that refactor and solve are repeated, each")
    parser.add_argument("--calibrate", action="store_true", help="fit the constants that engines are chosen by")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a table a matrix, or fit and keep constants."""
    if not 0 < arguments.budget < 3600:
        raise CommandError(f"--budget {arguments.budget}: must be positive")
    if arguments.calibrate:
        return calibrate.run(arguments.budget)
    engines = which_engines(arguments.engine)
    for name, A, cholesky in matrices(arguments):
        print(f"{name}: {A.shape[0]:,} x {A.shape[0]:,}, {A.nnz:,} entries" + (", definite" if cholesky else ""))
        print(compare(A, cholesky, engines, arguments))
        print(chosen(A, cholesky) + "\n", flush=True)
    print("refactor and solve: medians of calls from Python, waited for; SciPy's refactor is another splu.")
    print("predicted: both by refactor_solve; ratio: over measured. error: backward error after refactor.")
    return 0


def which_engines(names: str | None) -> list[str]:
    """Those asked for, else those that can run here."""
    if names is None:
        missing = no_device()
        return [name for name in registry.names() if not (missing and registry.named(name).on_device)]
    if not set(names.split(",")) <= set(engine_names()):
        raise CommandError(f"--engine {names}: not among {','.join(engine_names())}")
    return names.split(",")


def matrices(arguments: argparse.Namespace) -> Iterator[tuple[str, sp.csc_array, bool]]:
    """Name, matrix and whether definite."""
    if not arguments.file:
        for name, cholesky in GALLERY:
            yield name, gallery.named(name), cholesky
    for file in arguments.file:
        if ":" in file and not Path(file).exists():
            try:
                yield file, gallery.named(file), arguments.cholesky
            except ValueError as error:
                raise CommandError(f"{file}: {describe(error)}") from None
        else:
            A = read_matrix(Path(file))
            yield Path(file).name, A.astype(float) if A.dtype.kind in "biu" else A, arguments.cholesky


def compare(A: sp.csc_array, cholesky: bool, engines: list[str], arguments: argparse.Namespace) -> str:
    """A row an engine."""
    rows, notes = [], []
    for engine in engines:
        on_device = arguments.on_device and (engine == AUTO or registry.named(engine).on_device)
        found = failure(
            lambda engine=engine, on_device=on_device: measure(  # type: ignore[misc]
                A, engine, cholesky=cholesky, on_device=on_device, budget=arguments.budget
            )
        )
        if isinstance(found, Measured):
            rows.append(measured_row(engine, found, A, on_device))
        else:
            notes.append(f"{engine}: {found}")
    if not arguments.no_scipy:
        row = scipy_row(A, cholesky)
        rows += [row] if row else []
    return "\n".join([table(HEADER, rows), *notes])


def measured_row(engine: str, found: Measured, A: sp.csc_array, on_device: bool) -> list[str]:
    """Cells of one of our engines."""
    symbolic = found.factor_object.symbolic
    predictions = {p.engine: p for p in predictions_of(symbolic)}
    prediction = predictions.get(symbolic.engine)
    cells = [seconds(value) for value in (found.analyze, found.factor, found.refactor, found.solve)]
    if prediction:
        predicted = prediction.step - (prediction.moving if on_device else 0.0)
        cells += [seconds(predicted), f"{predicted / found.step:.2f}"]
    else:
        cells += ["-", "-"]
    return [engine, *cells, f"{found.backward_error:.0e}"]


def scipy_row(A: sp.csc_array, cholesky: bool) -> list[str] | None:
    """Cells of SciPy's splu; None where that takes long."""
    if analyze(A, engine=registry.DEFAULT, cholesky=cholesky).flops * (2 if cholesky else 1) > SCIPY_FLOPS:
        return None
    scaled = other_values(A, cholesky)
    b = scaled @ A.dtype.type(1).repeat(A.shape[0])
    took, lu = timed(lambda: scipy.sparse.linalg.splu(A))
    again, lu = timed(lambda: scipy.sparse.linalg.splu(scaled))
    solving, x = min((timed(lambda: lu.solve(b)) for _ in range(3)), key=lambda pair: pair[0])
    cells = [seconds(value) for value in (took, again, solving)]
    return ["SciPy", "-", *cells, "-", "-", f"{backward_error(scaled, x, b):.0e}"]


def chosen(A: sp.csc_array, cholesky: bool) -> str:
    """What auto would take."""
    symbolic = analyze(A, cholesky=cholesky)
    predictions = predictions_of(symbolic)
    many = [p.engine for p in (fastest(predictions, count) for count in (0, 5, 1000))] if predictions else []
    text = f"auto: {symbolic.engine}, {symbolic.choice.reason}"
    return text + (f"; for 0, 5, 1000 refactorizations {', '.join(many)}" if len(set(many)) > 1 else "")
