"""The table of constants: those that every device shares, and those that engines add when they are imported.

All are seconds per unit of a feature (model.py). They are those of an H200 and of its host, 16 threads of a Xeon, in
double precision and from Python; those of another machine are fitted by ``python -m gpusplu bench --calibrate``
(calibration.py).
"""

from __future__ import annotations

from .model import Costs, Term

_terms: dict[str, Term] = {
    # Import of CuPy and start of a context; kernels that are not in the cache yet; analysis of a matrix for a device by
    # every ordering worth considering; then, of a factor, uploads and the recording of graphs.
    "start.load": {"call": 1.0},
    "start.compile": {"call": 4.0},
    "start.analyze": {"call": 1.7e-3, "rows": 1e-6, "entries": 1.8e-8},
    "start.factor": {"call": 1.2e-3, "bytes": 8e-10},
    # Values and vectors by way of pinned memory of the host, moved by nodes of a graph; and for an engine on the
    # processor what is brought from the device and back.
    "move.to_device": {"call": 1e-6, "bytes": 5e-11},
    "move.to_host": {"call": 50e-6, "bytes": 1.2e-10},
}


def add(terms: Costs) -> None:
    """Add an engine's."""
    _terms.update(terms)


def shipped() -> Costs:
    """Constants that hold until a machine is calibrated."""
    return dict(_terms)
