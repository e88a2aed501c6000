"""Functions of the core that take the constants of predictions, with those that hold here."""

from gpusplu import _core
from gpusplu.cost.calibration import for_core


def analyze(ptr, ind, values, **options):
    return _core.analyze(ptr, ind, values, for_core(), **options)


def analyze_fronts(ptr, ind, values, **options):
    return _core.analyze_candidates(ptr, ind, values, for_core(), method="front", **options)


def analyze_columns(ptr, ind, values, **options):
    return _core.analyze_candidates(ptr, ind, values, for_core(), method="column", **options)


def supernodal_structure(ptr, ind, perm, *arguments, **options):
    from gpusplu import _core_testing  # not everywhere

    return _core_testing.supernodal_structure(ptr, ind, perm, for_core(), *arguments, **options)


def factor_canonical(symbolic, canonical, values, **options):
    """A factor of the core of canonical values; `options` as `_core.FactorSpec` takes them."""
    return _core.factor(_core.FactorSpec("lu", "csc", None, **options), canonical, symbolic, _core.Delays(), values)
