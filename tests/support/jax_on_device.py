"""Compiled programs of JAX whose arrays are taken for those of the emulated device."""

from contextlib import contextmanager, nullcontext
from functools import partial

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


class EmulatedSite(foreign.DeviceSite):
    """A site that finds the memory of a device where the processor has its own."""

    def device_of(self, addresses):
        return 0

    def working(self, frame, device):
        return nullcontext()

    def array(self, device, kind, address):
        return kind.at(address).view(fake_cupy.ndarray)


@contextmanager
def programs_on_device(monkeypatch):
    """What is compiled inside goes the way of a GPU."""
    monkeypatch.setattr(device, "DeviceSite", EmulatedSite)
    jax.clear_caches()
    for primitive, rule in ON_DEVICE.items():
        register_lowering(primitive, rule, platform="cpu")
    try:
        yield
    finally:
        for primitive in ON_DEVICE:
            callback = getattr(host, primitive.name.removeprefix("gpusplu_"))
            rule = partial(foreign.lower, foreign.HostSite, callback)
            register_lowering(primitive, rule, platform="cpu")
        jax.clear_caches()
        device.STORE.clear()
