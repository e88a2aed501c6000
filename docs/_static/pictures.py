"""Draws the pictures of docs/use/pictures.md, for light pages and for dark ones, beside this file.

python docs/_static/pictures.py
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

import gpusplu as gs
from gpusplu import plotting

STYLES = {"light": "default", "dark": "dark_background"}


def factors() -> tuple[Any, Any]:
    """Of a circuit by columns, and of finite elements by fronts, both refactored and solved with."""
    circuit = gs.splu(gs.gallery.rlc_mesh(40, 40), pivoting="partial")
    A = gs.gallery.elasticity(14, 14, 14)
    solid = gs.cholesky(A)
    for _ in range(3):
        solid.refactor(A.data)
        solid.solve(np.ones(A.shape[0]))
    return circuit, solid


def main() -> None:
    """Draw all of them in both styles."""
    matplotlib.use("agg")
    circuit, solid = factors()
    times = [plotting.timeline(solid) for _ in range(5)][-1]  # when the threads are awake
    here, phases = plotting.machine(), plotting.points(solid)
    for name, style in STYLES.items():
        with pyplot.style.context(style):
            figures = {
                "density": circuit.plot.density().figure,
                "spy": solid.plot.spy().figure,
                "supernodes": solid.plot.supernodes().figure,
                "timeline": plotting.draw_timeline(times),
                "roofline": plotting.draw_roofline(here, phases).figure,
            }
            for kind, figure in figures.items():
                figure.savefig(Path(__file__).with_name(f"{kind}_{name}.png"), dpi=90, transparent=True)


if __name__ == "__main__":
    main()
