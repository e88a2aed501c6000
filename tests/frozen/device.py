"""The same hashes of GPU engines whose bits repeat, in the emulator: of matrices that are small."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import gpusplu as gs

from . import bits
from .matrices import CASES, FOR_DEVICES, in_scalar, other_values, right_hand_sides

ENGINES = {"supernodal": ("lu", "cholesky", "ldlt"), "sflu": ("lu",), "crisscross": ("lu",)}
SCALARS = "dD"


def collect() -> dict[str, str]:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from property.hard.emulated_engines import use_emulated_device

    undo, entries = use_emulated_device(), {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in FOR_DEVICES:
                for scalar in SCALARS:
                    entries |= {f"{name}, {scalar}, {how}": bits.flat(facts) for how, facts in of_case(name, scalar)}
    finally:
        undo()
    return entries


def of_case(name: str, scalar: str) -> Any:
    case = CASES[name]
    for engine, kinds in ENGINES.items():
        for kind in set(case.kinds) & set(kinds):
            gs.cache_clear()
            A = in_scalar(case.make(), scalar)
            b = right_hand_sides(A.shape[0], scalar)
            facts = {"input": bits.digest(A, b)}
            facts |= bits.of_factor(lambda A, kind=kind, engine=engine: bits.MAKE[kind](A, engine=engine), A, kind, b)
            if engine == "supernodal" and kind != "ldlt":
                batch = {"lu": gs.splu_batch, "cholesky": gs.cholesky_batch}[kind]
                values = np.stack([A.data, 2 * A.data, other_values(A, kind != "lu")])
                facts["batch"] = bits.outcome(
                    lambda A=A, b=b, values=values, batch=batch: bits.digest(
                        batch(A, values, engine="supernodal").solve(b[:, 0].copy())
                    )
                )
            yield f"{engine}, {kind}", facts


compare = bits.compare
