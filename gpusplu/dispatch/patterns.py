"""Pattern cache: analyses by the content of their patterns, controlled by cache_info, cache_clear and cache_limit.

The key of a pattern consists of the options and the index arrays. They are compared by a hash first and then entry by
entry (core/bind/patterns.hpp). Values are never cached: every call reads them again.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..common import matrix
from ..common.options import may_reuse_analysis, options_of_analysis

#: All patterns of the process.
STORE = _core.Patterns()
#: Functions that clear the other caches of this process.
FORGET_ALSO: list[Callable[[], None]] = []
#: Functions that return the bytes of other caches.
COUNT_ALSO: list[Callable[[], int]] = []
# Default limit of the memory of cached patterns [bytes], and the share of the machine's memory (1/16).
MOST_BYTES, SHARE_OF_MEMORY = 512 << 20, 16
STORE.set_limits(bytes=min(MOST_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE_OF_MEMORY))
atexit.register(STORE.clear)  # before devices that hold analyses are shut down

# Modules of the objects that belong to analyses; others, devices for example, are shared.
OWN_MODULES = ("gpusplu.engines.", "gpusplu.common.matrix")


class CacheInfo(NamedTuple):
    """Result of :func:`gpusplu.cache_info`: the fields of functools' cache_info, and bytes."""

    hits: int
    misses: int
    maxsize: int
    currsize: int
    bytes: int
    maxbytes: int


def cache_info() -> CacheInfo:
    """Hits, misses, size and limits of the pattern cache.

    Returns
    -------
    CacheInfo
        Named tuple of `hits` and `misses` (calls, since the last :func:`cache_clear`), `maxsize` and `currsize`
        (patterns), `bytes` and `maxbytes` (of the patterns, their analyses, factors that ``spsolve`` uses again, and
        factors of ``gpusplu.jax`` that no object holds).

    See Also
    --------
    cache_clear, cache_limit

    Examples
    --------
    >>> gs.cache_clear()
    >>> A = gs.gallery.poisson(10, 10)
    >>> first, second = gs.splu(A), gs.splu(2 * A)
    >>> info = gs.cache_info()
    >>> info.hits, info.misses, info.currsize
    (1, 1, 1)
    """
    store = STORE
    held = store.bytes + sum(count() for count in COUNT_ALSO)
    return CacheInfo(store.hits, store.misses, store.max_entries, len(store), held, store.max_bytes)


def cache_clear() -> None:
    """Clear the pattern cache and reset its counters. Factors and analyses that callers hold stay valid.

    See Also
    --------
    cache_info, cache_limit

    Examples
    --------
    >>> gs.cache_clear()
    >>> gs.cache_info().currsize
    0
    """
    for forget in (STORE.clear, *FORGET_ALSO):
        forget()


def cache_limit(entries: int | None = None, bytes: int | None = None) -> None:
    """Set the limits of the pattern cache; entries beyond them are dropped at once, the least recently used first.

    Parameters
    ----------
    entries : int, optional
        Number of patterns, 64 by default. With 0 every call analyses its matrix.
    bytes : int, optional
        Memory of the patterns; the default is the smaller of 512 MiB and a sixteenth of the machine's memory. A larger
        pattern is not cached. Factors of ``gpusplu.jax`` that adjoints of solves need have separate limits of the same
        size, one on the host and one on devices; there are at most 1,024 of them.

    Raises
    ------
    ValueError
        A limit is negative.

    See Also
    --------
    cache_info, cache_clear

    Examples
    --------
    >>> gs.cache_limit(entries=0)  # nothing is remembered
    >>> lu = gs.splu(gs.gallery.poisson(10, 10))
    >>> gs.cache_info().currsize
    0
    >>> gs.cache_limit(entries=64)
    """
    for name, limit in (("entries", entries), ("bytes", bytes)):
        if limit is not None and limit < 0:
            raise ValueError(f"cache_limit: {name} must not be negative, got {limit}")
    STORE.set_limits(entries, bytes)


class PatternKey(NamedTuple):
    """Key of a matrix in the pattern cache."""

    tag: tuple[Any, ...]
    n: int
    first: np.ndarray
    second: np.ndarray


def pattern_key_of(A: Any, kind: str, options: Any, request: Any) -> PatternKey | None:
    """Key of a matrix from `matrix.read_matrix`; None if its analysis must not be reused.

    An analysis is not reused if the caller forbids it, or if pivots chosen for other values would not be checked.
    """
    if not (request.remembered and may_reuse_analysis(kind, options)):
        return None
    perm = None if options.perm is None else options.perm.tobytes()
    tag = (kind, A.format, matrix.float_dtype(A.dtype).char, options_of_analysis(options), perm, request)
    return PatternKey(tag, A.shape[0], *matrix.index_arrays(A))


def keep(key: PatternKey, symbolic: Any) -> None:
    """Cache an analysis."""
    problem, analysis = symbolic.parts()
    size = _core.bytes_of(problem.pattern.core) + _core.bytes_of(analysis.core)
    others = [
        thing for thing in (analysis.plan, *problem.memo.values()) if thing is not None and thing is not analysis.core
    ]
    STORE.keep(*key, symbolic, size + (held_bytes(others) if others else 0))


def give(known: Any, factor: Any) -> None:
    """Let the next call borrow an engine's factor that no caller holds, if it still has the pattern's analysis."""
    core = known.value[1] if isinstance(known.value, tuple) else known.value.parts()[1].core
    if factor.symbolic is core:
        size = getattr(factor, "bytes", None)
        STORE.give(known, factor, factor.stats()["bytes"] if size is None else size)


def drop() -> bool:
    """Free the memory of all patterns and the core's pool of freed arrays; returns whether there were patterns."""
    held = len(STORE) > 0
    cache_clear()
    _core.drop_kept_memory()
    return held


def held_bytes(thing: Any, seen: set[int] | None = None) -> int:
    """Approximate host and device memory of a gpusplu object and all objects that it refers to [bytes]."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, (_core.Symbolic, _core.Canonical)):
        return _core.bytes_of(thing)
    return own_bytes(thing) + sum(held_bytes(part, seen) for part in parts_of(thing))


def own_bytes(thing: Any) -> int:
    """Device memory of the object itself [bytes]."""
    size = getattr(thing, "nbytes", 0) if type(thing).__module__.startswith(OWN_MODULES) else 0
    return size if isinstance(size, int) else 0


def parts_of(thing: Any) -> list[Any]:
    """Objects that a gpusplu object or a collection refers to."""
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, (list, tuple)):
        return list(thing)
    if isinstance(thing, _core.Delays):
        return [thing.symbolic]
    if isinstance(thing, _core.Plan):  # its arrays
        return [getattr(thing, name) for name in dir(thing) if not name.startswith("_")]
    if not type(thing).__module__.startswith(OWN_MODULES):
        return []
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [getattr(thing, name, None) for name in slots] + list(getattr(thing, "__dict__", {}).values())
