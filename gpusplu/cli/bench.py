"""``bench``: measured and predicted times of engines on a matrix; ``--calibrate``: constants of this machine."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scipy.sparse as sp
import scipy.sparse.linalg

from gpusplu import gallery
from gpusplu.common.stats import column, show, three_digits
from gpusplu.common.timing import Measured, backward_error, other_values, timed
from gpusplu.cost.model import fastest
from gpusplu.cuda.presence import no_device
from gpusplu.dispatch.report import predictions_of
from gpusplu.dispatch.selection import AUTO, engine_names
from gpusplu.engines import registry
from gpusplu.linalg import analyze

from . import calibrate
from .calibrate import failure, measure
from .files import matrix_of
from .report import MATRIX, NAMES, CommandError, Progress, add_output, print_json, refusing, table

GALLERY = calibrate.cases(
    "circuit:40x40 rlc:60x60 rlc:150x150 power:100x100", definite="poisson:200x200 elast:12x12x12"
)
SCIPY_FLOPS = 5e10  # SciPy is not measured above: minutes [flop]
PHASES = ("analyze", "factor", "refactor", "solve", "step")
LEGEND = """analyze, factor: the first call of each; refactor, solve, step: medians of synchronized calls from Python;
a step is one call of refactor_solve.
x SciPy: SciPy's seconds divided by those of a step of gpusplu; SciPy has no refactor, so its step is splu and solve.
predicted: seconds of a step, from which engine="auto" chooses; predicted / measured: 2 if twice the time was predicted.
backward error: after refactor, of the solution of the new values."""

Row = dict[str, Any]


def add_parser(commands: Any) -> None:
    """Describe the arguments."""
    parser = commands.add_parser("bench", help="compare the times of all engines and SciPy; or calibrate", epilog=NAMES)
    parser.add_argument("matrix", nargs="*", metavar="MATRIX", help=f"{MATRIX}; default: some of the gallery")
    parser.add_argument("--cholesky", action="store_true", help="the matrices are Hermitian positive definite")
    parser.add_argument("--engine", metavar="NAMES", help="comma-separated; default: all that can run")
    parser.add_argument("--on-device", action="store_true", help="values and vectors are on the device")
    parser.add_argument("--no-scipy", action="store_true", help="do not measure SciPy's splu")
    parser.add_argument(
        "--budget",
        type=float,
        default=0.2,
        metavar="S",
        help="how long refactor, solve and step are repeated, each [s]",
    )
    parser.add_argument("--calibrate", action="store_true", help="fit the cost model that chooses engines")
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one table per matrix, or fit and save constants."""
    if not 0 < arguments.budget < 3600:
        raise CommandError(f"--budget {arguments.budget}: must be positive")
    if arguments.calibrate:
        if arguments.json or arguments.matrix:
            raise CommandError("--calibrate takes no matrix and prints no JSON")
        return calibrate.run(arguments.budget)
    engines = which_engines(arguments.engine, arguments.on_device)
    found = []
    for name, A, cholesky in matrices(arguments):
        found.append(compare(name, A, cholesky, engines, arguments))
        if not arguments.json:
            print(text_of(found[-1]) + "\n", flush=True)
    unmeasured = [one["name"] for one in found if not any("step" in row for row in one["engines"])]
    if arguments.json:
        print_json({"matrices": found})
    elif len(unmeasured) < len(found):
        print(LEGEND)
    if unmeasured:
        raise CommandError(f"no engine has factored {', '.join(unmeasured)}")
    return 0


def which_engines(names: str | None, on_device: bool) -> list[str]:
    """The requested engines, else all available ones; `on_device`: with values on the device."""
    missing = no_device() if names is None or on_device else ""
    if on_device and missing:
        raise CommandError(f"--on-device: {missing}")
    if names is None:
        return [name for name in registry.names() if not (missing and registry.named(name).capabilities.on_device)]
    if not set(names.split(",")) <= set(engine_names()):
        raise CommandError(f"--engine {names}: not among {','.join(engine_names())}")
    return names.split(",")


def matrices(arguments: argparse.Namespace) -> Iterator[tuple[str, sp.csc_array, bool]]:
    """Name, matrix and whether definite."""
    if not arguments.matrix:
        for name, cholesky in GALLERY:
            yield name, gallery.named(name), cholesky
    for name in arguments.matrix:
        yield Path(name).name, matrix_of(name), arguments.cholesky


def compare(name: str, A: sp.csc_array, cholesky: bool, engines: list[str], arguments: argparse.Namespace) -> Row:
    """Measurements of a matrix, one row per engine; times in seconds."""
    rows: list[Row] = []
    with Progress(name, len(engines) + 1) as progress, refusing(name):
        for engine in engines:
            progress.show(engine)
            on_device = arguments.on_device and (engine == AUTO or registry.named(engine).capabilities.on_device)
            found = failure(
                lambda engine=engine, on_device=on_device: measure(  # type: ignore[misc]
                    A, engine, cholesky=cholesky, on_device=on_device, budget=arguments.budget
                )
            )
            measured = isinstance(found, Measured)
            rows.append(measured_row(engine, found, on_device) if measured else {"engine": engine, "note": found})
            progress.advance("SciPy")
        able = any("step" in row for row in rows)  # else SciPy may crash
        scipys = scipy_row(A, cholesky) if able and not arguments.no_scipy else None
        auto = chosen(A, cholesky)
    for row in rows:
        row["x_scipy"] = scipys["step"] / row["step"] if scipys and "step" in row else None
    facts = {"name": name, "n": A.shape[0], "nnz": A.nnz, "definite": cholesky}
    return {**facts, "engines": rows, "scipy": scipys, "auto": auto}


def measured_row(engine: str, found: Any, on_device: bool) -> Row:
    """Row of one of gpusplu's engines."""
    symbolic = found.factor_object.symbolic
    predictions = {p.engine: p for p in predictions_of(symbolic)}
    prediction = predictions.get(symbolic.engine)
    predicted = None if prediction is None else prediction.step - (prediction.moving if on_device else 0.0)
    return {
        "engine": engine,
        **{phase: getattr(found, phase) for phase in PHASES},
        "predicted_step": predicted,
        "predicted_over_measured": None if predicted is None else predicted / found.step,
        "backward_error": found.backward_error,
    }


def scipy_row(A: sp.csc_array, cholesky: bool) -> Row | None:
    """Row of SciPy's splu; None if that takes too long."""
    if analyze(A, engine=registry.DEFAULT, cholesky=cholesky).flops * (2 if cholesky else 1) > SCIPY_FLOPS:
        return None
    scaled = other_values(A, cholesky)
    b = scaled @ A.dtype.type(1).repeat(A.shape[0])
    took, lu = timed(lambda: scipy.sparse.linalg.splu(A))
    again, lu = timed(lambda: scipy.sparse.linalg.splu(scaled))
    solving, x = min((timed(lambda: lu.solve(b)) for _ in range(3)), key=lambda pair: pair[0])
    seconds = {"analyze": None, "factor": took, "refactor": again, "solve": solving, "step": again + solving}
    return {"engine": "SciPy", **seconds, "backward_error": backward_error(scaled, x, b)}


def chosen(A: sp.csc_array, cholesky: bool) -> Row:
    """Choice of auto by default, and for 0, 5 and 1000 refactorizations."""
    symbolic = analyze(A, cholesky=cholesky)
    predictions = predictions_of(symbolic)
    by_count = {str(count): fastest(predictions, count).engine for count in (0, 5, 1000)} if predictions else {}
    return {"engine": symbolic.engine, "reason": symbolic.choice.reason, "by_refactorizations": by_count}


def text_of(found: Row) -> str:
    """A table of the measurements, one unit per column."""
    rows = [row for row in found["engines"] if "step" in row]
    rows += [found["scipy"]] if found["scipy"] else []
    columns = [["", *(row["engine"] for row in rows)]]
    columns += [column(phase, [row[phase] for row in rows]) for phase in PHASES]
    if found["scipy"]:
        columns.append(ratios("x SciPy", [row.get("x_scipy") for row in rows]))
    columns.append(column("predicted", [row.get("predicted_step") for row in rows]))
    columns.append(ratios("predicted / measured", [row.get("predicted_over_measured") for row in rows]))
    columns.append(["backward error", *(f"{row['backward_error']:.0e}" for row in rows)])
    header, *cells = zip(*columns, strict=True)
    notes = [f"{row['engine']}: {row['note']}" for row in found["engines"] if "note" in row]
    n, auto = show(found["n"]), found["auto"]
    by_count = set(auto["by_refactorizations"].values())
    counts = f"; for 0, 5, 1000 refactorizations {', '.join(auto['by_refactorizations'].values())}"
    return "\n".join(
        [
            f"{found['name']}: {n} x {n}, {show(found['nnz'])} entries" + (", definite" if found["definite"] else ""),
            *([table(header, cells)] if cells else []),
            *notes,
            f"auto: {auto['engine']}, {auto['reason']}" + (counts if len(by_count) > 1 else ""),
        ]
    )


def ratios(title: str, values: list[float | None]) -> list[str]:
    """Cells of a column; a dash for none."""
    return [title, *("-" if value is None else three_digits(value) for value in values)]
