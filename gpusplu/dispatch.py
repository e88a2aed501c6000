"""Which engine runs, and why."""

from __future__ import annotations

from typing import NamedTuple

from .errors import EngineUnavailableError

ENGINES = ("auto", "cpu", "glu", "sflu", "crisscross", "supernodal")


class Choice(NamedTuple):
    """An engine and the sentence that explain() prints about it."""

    engine: str
    reason: str


def choose_engine(engine: str, device: object = None) -> Choice:
    """Resolve ``engine=`` and ``device=``.

    Raises
    ------
    ValueError
        `engine` is not one of `ENGINES`.
    EngineUnavailableError
        A GPU engine or a device was asked for by name. Only ``"auto"`` may fall back.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r} is not one of {', '.join(map(repr, ENGINES))}")
    if engine not in ("auto", "cpu"):
        raise EngineUnavailableError(
            f"engine={engine!r} needs a GPU engine and this version of gpusplu has none; "
            "pass engine='auto' or engine='cpu'"
        )
    if device is not None and device != "cpu":
        raise EngineUnavailableError(
            f"device={device!r} needs a GPU engine and this version of gpusplu has none; leave device=None"
        )
    if engine == "cpu":
        return Choice("cpu", "asked for by name")
    return Choice("cpu", "engine='auto' and this version of gpusplu has no GPU engine")
