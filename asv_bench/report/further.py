"""Columns of tables that only some suites have, of a row's records by phase: numbers, which get a mean, or texts."""

from .tables import number, time


def first(found):
    return next(iter(found.values()))


def over(left, *rights):
    """The quotient of a value of the first record and the sum of others."""

    def value_of(found):
        below = sum(first(found).get(name) or 0 for name in rights)
        return float(first(found)[left] / below) if below else "-"

    return value_of


def text(name, style=""):
    """A value of the first record."""
    return lambda found: number(first(found).get(name), style)


def duration(name):
    """The same of seconds."""
    return lambda found: time(first(found).get(name))


def systems(found):
    """How many were solved side by side."""
    return "-" if (batch := found.get("vmap") or found.get("batch")) is None else str(batch["systems"])


def rate(side):
    """Multiply-adds and divisions of a second, in units of 1e9."""

    def value_of(found):
        seconds = first(found)[side]
        return float(1e-9 * first(found)["flops"] / seconds) if seconds else "-"

    return value_of


def modelled(found):
    """Predicted over measured seconds of each phase."""
    return " ".join(f"{record['predicted_s'] / record['ours_s']:.2f}" for record in found.values())


def stages(found):
    return ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in first(found)["stages"].items())


def flag(found):
    return "too large" if first(found)["flagged"] else "-"


TRANSPOSED = {
    "error of A^T": text("transposed_error", ".0e"),
    "its": text("peer_transposed_error", ".0e"),
    "flagged": flag,
}
COLUMNS = {
    "memory": {
        **{f"{name} [bytes]": text(f"{name}_bytes", ",") for name in ("input", "factor", "peak")},
        "peak over both": over("peak_bytes", "input_bytes", "factor_bytes"),
    },
    "ldlt": {
        **{f"{name} over its": over(name, f"peer_{name}") for name in ("entries", "bytes")},
        "delayed": text("n_delayed"),
        "inertia": text("inertia"),
        "its": text("peer_inertia"),
    },
    "gradients": {"systems": systems},
    "tensors": {"systems": systems},
    "orderings": {name: over(name, f"peer_{name}") for name in ("lnz", "flops", "levels")},
    "dense": {"Gflop/s": rate("ours_s"), "the peer's": rate("peer_s")},
    "methods": {"modelled / measured": modelled},
    "analysis": {"stages [ms]": stages, "ordering": text("chosen"), "nnz(L)": text("lnz", ",")},
    "one_shot": TRANSPOSED,
    "sequences": TRANSPOSED | {"steps": text("steps"), "repivoted": text("n_repivoted")},
    "devices": {
        "devices": text("devices"),
        "times as fast": text("times_as_fast", ".2f"),
        "from the host": lambda found: number(found.get("host", {}).get("times_as_fast"), ".2f"),
        "refactor": duration("refactor_s"),
        "solve": duration("solve_s"),
        "same bits": text("same"),
    },
    "moves": {"best": text("best"), "ended on": text("ended")},
    "crisscross_fit": {
        "trailing block": text("trailing"),
        "faster than none": over("unblocked_s", "ours_s"),
        "at best": over("unblocked_s", "best_s"),
        "best": text("best_trailing"),
    },
}
