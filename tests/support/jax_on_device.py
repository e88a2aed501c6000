"""Compiled programs of JAX whose arrays are taken for those of the emulated device."""

from contextlib import contextmanager
from functools import partial

import numpy as np

from . import fake_cupy
from .jaxes import gj, jax

device, foreign, host, primitives = gj.device, gj.foreign, gj.host, gj.primitives
register_lowering = jax.interpreters.mlir.register_lowering

ON_DEVICE = {
    primitives.solve_p: device.lower_solve,
    primitives.product_p: primitives.by_xla(primitives.product),
    primitives.pairs_p: primitives.by_xla(primitives.pairs),
    primitives.slogdet_p: device.lower_by_host(host.slogdet),
    primitives.selected_p: device.lower_by_host(host.selected),
    primitives.turned_p: device.lower_by_host(host.turned),
}


def emulated_place(work, context, results, *operands):
    """Finds the memory of a device where the processor has its own."""
    made = work(*map(array_of, operands))
    for result, array in zip(results, made, strict=True):
        array_of(result)[...] = array


def array_of(buffer):
    return np.asarray(buffer).view(fake_cupy.ndarray)


@contextmanager
def programs_on_device(monkeypatch):
    """What is compiled inside goes the way of a GPU."""
    monkeypatch.setattr(foreign, "on_device", emulated_place)
    jax.clear_caches()
    for primitive, rule in ON_DEVICE.items():
        register_lowering(primitive, rule, platform="cpu")
    try:
        yield
    finally:
        for primitive in ON_DEVICE:
            callback = getattr(host, primitive.name.removeprefix("gpusplu_"))
            rule = partial(foreign.lower, foreign.on_host, callback)
            register_lowering(primitive, rule, platform="cpu")
        jax.clear_caches()
        device.STORE.clear()
