"""The matrices that the supernodal GPU engine is measured on: name, whether definite, group, seconds allowed."""

from typing import NamedTuple


class Case(NamedTuple):
    name: str
    definite: bool
    group: str
    limit: float = 60.0


CASES = [
    Case("memplus", False, "circuit"),
    Case("case_ACTIVSg10k_nrjac", False, "circuit"),
    Case("ibmpg1t_mna_tran", False, "circuit"),
    Case("ibmpg2t_mna_tran", False, "circuit"),
    Case("ibmpg2t_spd_tran", True, "circuit"),
    Case("anemometer1_A1", False, "middle"),
    Case("faer_matrix_n19168", False, "middle"),
    Case("bcsstk16", True, "middle"),
    Case("bcsstk18", True, "middle"),
    Case("bodyy4", True, "middle"),
    Case("Dubcova1", True, "middle"),
    Case("cotlap_armadillo", True, "middle"),
    Case("rail_20209_negA", True, "middle"),
    Case("elast:20x20x20", True, "middle"),  # 26,460 unknowns
    Case("convdiff:50", False, "large"),
    Case("poisson:1000x1000", True, "large", 90.0),
    Case("poisson:80x80x80", True, "large", 90.0),
    Case("elast:40x40x40", True, "large", 90.0),  # 201,720
    Case("G3_circuit", True, "large", 120.0),
    Case("rlc:700x700", False, "large", 120.0),  # 979,517
    Case("elast:60x59x59", True, "large", 180.0),  # 648,000
]


def select(words):
    """Cases by name or group; all of them for no words or "all". Other gallery names are taken as general matrices."""
    if not words or words == ["all"]:
        return CASES
    chosen = []
    for word in words:
        found = [case for case in CASES if word in (case.name, case.group)]
        if not found and ":" not in word:
            raise SystemExit(f"no case or group {word!r}; groups are {', '.join(sorted({c.group for c in CASES}))}")
        chosen += found or [Case(word, word.startswith(("elast", "poisson")), "other")]
    return chosen
