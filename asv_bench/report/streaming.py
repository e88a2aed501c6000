"""The table of factors that are given less and less device memory, milliseconds."""

from .tables import markdown

TIMES = ("refactor_s", "predicted_refactor_s", "solve_s", "predicted_solve_s", "both_s")


def tables(records):
    """A row a case and share of what it needs."""
    header = ["case", "GB allowed", "segments that stream", "GB on the host"]
    header += ["refactor", "predicted", "solve", "predicted", "refactor_solve", "same bits", "error"]
    rows = [row(record) for record in records if "share" in record]
    return "Seconds of a call from Python, synchronization included, in ms.\n\n" + markdown(header, rows)


def row(record):
    allowed = f"{1e-9 * record['memory_bytes']:.2f}{' (all)' if record['share'] == 1 else ''}"
    if "smallest_bytes" in record:
        return [record["case"], allowed, f"needs {1e-9 * record['smallest_bytes']:.2f} GB", *8 * ["-"]]
    segments = f"{record['n_windows']} of {record['n_segments']}"
    cells = [record["case"], allowed, segments, f"{1e-9 * record['host_bytes']:.2f}"]
    cells += [f"{1e3 * record[key]:.1f}" for key in TIMES]
    return [*cells, "yes" if record["same"] else "no", f"{record['backward_error']:.0e}"]
