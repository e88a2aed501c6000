"""Agreement of ranks: all ranks continue or all raise, because an error of one must not leave the others waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import errors

T = TypeVar("T")


def check_communicator(comm: Any) -> None:
    """Refuse an invalid communicator.

    Raises
    ------
    TypeError
    """
    if not hasattr(comm, "allgather") or getattr(comm, "is_inter", False):
        raise TypeError(f"comm must be an intracommunicator of mpi4py, such as MPI.COMM_WORLD, not {comm!r}")


def agreed(comm: Any, call: tuple[Any, ...], work: Callable[[], tuple[Any, T]]) -> T:
    """The result of `work` on this rank, once it has succeeded on all ranks.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    call : tuple
        Name and arguments of the call, which must be equal on all ranks; also printed in messages.
    work : callable
        Local; returns more that has to be alike, and the result.

    Raises
    ------
    ValueError
        Ranks call different things, or with different arguments.
    Exception
        What `work` raised on the first rank where it did, of the same class, on every rank.
    """
    made: Any = None
    failure = None
    try:
        more, made = work()
        call = (*call, more)
    except Exception as error:
        failure = (known_class(error), str(error))
    met = comm.allgather((call, failure))
    for rank, (_, failure) in enumerate(met):
        if failure is not None:
            kind, message = failure
            raise kind(f"{message} (rank {rank})")
    for rank, (other, _) in enumerate(met):
        if other != met[0][0]:
            raise ValueError(f"ranks differ: rank 0 calls {shown(met[0][0])}, rank {rank} {shown(other)}")
    return made


def known_class(error: Exception) -> Any:
    """The nearest base class of an exception that exists on every rank and is constructed from a message."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ in ("builtins", errors.__name__))


def shown(call: tuple[Any, ...]) -> str:
    name, *arguments = call
    return f"{name}({', '.join(str(argument) for argument in arguments if argument is not None)})"
