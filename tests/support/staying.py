"""That values and vectors stay on a device, emulated or not."""

from contextlib import contextmanager

from gpusplu.engines.device.buffers import Staging
from gpusplu.engines.device.call import CommandGraphs

#: Functions of factors that take values or vectors of a device to the host, or from there.
WAYS = ((CommandGraphs, "values"), (CommandGraphs, "send"), (CommandGraphs, "vector"), (Staging, "take"))


def forbid(patch, *ways):
    """Have the functions of factors, and others by their owners and names, fail."""

    def refuse(*_, **__):
        raise AssertionError("an array leaves the device, or comes there")

    for owner, name in (*WAYS, *ways):
        patch.setattr(owner, name, refuse)


@contextmanager
def staying(monkeypatch, *ways):
    """The same as a context."""
    with monkeypatch.context() as patch:
        forbid(patch, *ways)
        yield
