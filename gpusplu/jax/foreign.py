"""Python functions that compiled programs call, by XLA's foreign function interface.

XLA calls a C function with a frame: addresses of operands and results, attributes, and a context that knows the stream.
One function made by ctypes serves all programs and platforms. An attribute of each call is the number of the `Site`
that was made when the program was lowered; it knows shapes and types, and what to do with the arrays.

The structures are those parts of XLA's C ABI that are needed here (XLA_FFI, major version 0, documented in
xla/ffi/api/c_api.h below jax.ffi.include_dir()). XLA asks for the version, and takes or refuses the function by it.
"""

from __future__ import annotations

import ctypes
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from ctypes import POINTER, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from functools import partial
from itertools import count
from secrets import randbits
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import jax
import numpy as np

from ..common.arrays import cupy_for_others, in_stream

TARGET, ATTRIBUTE = "gpusplu_call", "site"
MAJOR, MINOR = 0, 3  # version of the interface that is declared below
METADATA, EXECUTE, SCALAR = 1, 3, 3  # values of its enumerations
RESOURCE_EXHAUSTED, INTERNAL = 8, 13  # kinds of errors


class Record(ctypes.Structure):
    """What every structure begins with."""

    _fields_: ClassVar[Any] = (("size", c_size_t), ("extension", c_void_p))

    @classmethod
    def made(cls, *values: Any) -> Any:
        """A structure without an extension, with these values in its other fields."""
        return cls(ctypes.sizeof(cls), None, *values)


class Version(Record):
    _fields_ = (("major", c_int), ("minor", c_int))


class Metadata(ctypes.Structure):
    _fields_ = (("size", c_size_t), ("version", Version), ("traits", c_uint32), ("state", c_int64))


class Extension(ctypes.Structure):
    _fields_ = (("size", c_size_t), ("kind", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata)))


class Scalar(ctypes.Structure):
    _fields_ = (("dtype", c_int), ("value", c_void_p))


class Buffer(Record):
    _fields_ = (("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))


class Buffers(Record):
    _fields_ = (("count", c_int64), ("kinds", POINTER(c_int)), ("items", POINTER(c_void_p)))


class Attributes(Record):
    _fields_ = (("count", c_int64), ("kinds", POINTER(c_int)), ("names", c_void_p), ("items", POINTER(c_void_p)))


class NewError(Record):
    _fields_ = (("message", c_char_p), ("code", c_int))


class ErrorMessage(Record):
    _fields_ = (("error", c_void_p), ("message", c_char_p))


class OldError(Record):
    _fields_ = (("error", c_void_p),)


class StreamOf(Record):
    _fields_ = (("context", c_void_p), ("stream", c_void_p))


class Api(Record):
    _fields_ = (
        ("version", Version),
        ("internal", c_void_p),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(NewError))),
        ("message_of_error", ctypes.CFUNCTYPE(None, POINTER(ErrorMessage))),
        ("destroy_error", ctypes.CFUNCTYPE(None, POINTER(OldError))),
        ("register", c_void_p),
        ("stream_of", ctypes.CFUNCTYPE(c_void_p, POINTER(StreamOf))),
    )


class Frame(Record):
    _fields_ = (
        ("api", POINTER(Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("operands", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
    )


class Site(ABC):
    """A call of a compiled program, which keeps this object alive.

    Parameters
    ----------
    work : callable
        From arrays to arrays.
    operands, results : sequence of objects with shape and dtype
    """

    def __init__(self, work: Callable[..., Sequence[Any]], operands: Sequence[Any], results: Sequence[Any]):
        self.work = work
        self.operands, self.results = (tuple(map(Kind, avals)) for avals in (operands, results))
        self.number = next(_numbers)
        _sites[self.number] = self

    def __call__(self, *_: Any) -> Any:
        """Must be callable, because JAX keeps this object with the program as a callback."""
        raise NotImplementedError

    @abstractmethod
    def run(self, frame: Frame) -> None:
        """Do the work for the arrays of a frame."""


class Kind:
    """Shape and type of an array at an address that is not known yet."""

    __slots__ = ("dtype", "memory", "nbytes", "shape")

    def __init__(self, aval: Any):
        self.shape, self.dtype = tuple(aval.shape), np.dtype(aval.dtype)
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.memory = c_char * self.nbytes

    def at(self, address: int) -> np.ndarray:
        """The array, on the host."""
        return np.ndarray(self.shape, self.dtype, self.memory.from_address(address))


class HostSite(Site):
    """Arrays on the host: operands are views, and results are copied to their place."""

    def run(self, frame: Frame) -> None:
        arrays = [kind.at(address) for kind, address in zip(self.operands, addresses(frame.operands), strict=True)]
        for array in arrays:
            array.flags.writeable = False
        made = self.work(*arrays)
        for kind, address, array in zip(self.results, addresses(frame.results), made, strict=True):
            np.copyto(kind.at(address), array, casting="no")


class DeviceSite(Site):
    """Arrays on a CUDA device: CuPy arrays of the same memory, in XLA's stream."""

    def run(self, frame: Frame) -> None:
        operands, results = addresses(frame.operands), addresses(frame.results)
        if not any(results):
            return  # no memory to write to
        device = self.device_of(results)
        with self.working(frame, device):
            made = self.work(*(self.array(device, *each) for each in zip(self.operands, operands, strict=True)))
            for kind, address, array in zip(self.results, results, made, strict=True):
                self.array(device, kind, address)[...] = array

    def device_of(self, addresses: Sequence[int]) -> int:
        """The number of the device that addresses are of."""
        runtime = cupy_for_others().cuda.runtime
        return int(runtime.pointerGetAttributes(next(filter(None, addresses))).device)

    def working(self, frame: Frame, device: int) -> AbstractContextManager[None]:
        """On a device, and in XLA's stream."""
        args = StreamOf.made(frame.context)
        error = frame.api.contents.stream_of(ctypes.byref(args))
        if error:
            raise RuntimeError(taken(frame.api.contents, error))
        return in_stream(device, args.stream or 0)

    def array(self, device: int, kind: Kind, address: int) -> Any:
        """CuPy's array of memory that XLA owns."""
        import cupy

        if not kind.nbytes:
            return cupy.empty(kind.shape, kind.dtype)
        memory = cupy.cuda.UnownedMemory(address, kind.nbytes, None, device)
        return cupy.ndarray(kind.shape, kind.dtype, cupy.cuda.MemoryPointer(memory, 0))


#: Sites of living programs. A number is of this process alone: programs kept on disk must not find another one's.
_sites: WeakValueDictionary[int, Site] = WeakValueDictionary()
_numbers = count(randbits(62))


def lower(
    kind: type[Site], work: Callable[..., Sequence[Any]], context: Any, *operands: Any, **parameters: Any
) -> Sequence[Any]:
    """The lowering rule of a primitive that calls ``work(*arrays, **parameters)``."""
    site = kind(partial(work, **parameters), context.avals_in, context.avals_out)
    context.module_context.add_host_callback(site)
    return jax.ffi.ffi_lowering(TARGET)(context, *operands, **{ATTRIBUTE: np.int64(site.number)})


def handle(address: int) -> int | None:
    """Take the frame at an address; an error of XLA's, or None."""
    frame = Frame.from_address(address)
    try:
        extension = Extension.from_address(frame.extension) if frame.extension else None
        if extension is not None and extension.kind == METADATA:
            tell_version(frame.api.contents.version, extension.metadata.contents)
        elif frame.stage == EXECUTE:
            site_of(frame).run(frame)
    except BaseException as error:  # none may go on into C++
        return refused(frame.api.contents, error)
    return None


def site_of(frame: Frame) -> Site:
    attributes = frame.attributes
    if attributes.count != 1 or attributes.kinds[0] != SCALAR:
        raise RuntimeError(f"{TARGET} has one attribute, {ATTRIBUTE}")
    number = c_int64.from_address(Scalar.from_address(attributes.items[0]).value).value
    site = _sites.get(number)
    if site is None:
        raise RuntimeError("gpusplu.jax was called by a program that another process compiled; compile it again")
    return site


def addresses(buffers: Buffers) -> list[int]:
    """Addresses of the memory of buffers; 0 without memory."""
    items = buffers.items
    return [Buffer.from_address(items[k]).data or 0 for k in range(buffers.count)]


def tell_version(loaded: Version, metadata: Metadata) -> None:
    """Report to XLA the version of the interface."""
    if loaded.major != MAJOR:
        raise RuntimeError(f"gpusplu.jax supports version {MAJOR} of XLA's FFI, not {loaded.major}; update gpusplu")
    metadata.version = Version.made(MAJOR, min(MINOR, loaded.minor))
    metadata.traits, metadata.state = 0, 0  # not for command buffers; keeps nothing between calls


def refused(api: Api, error: BaseException) -> int:
    """An exception as XLA's error."""
    message = "".join(traceback.format_exception(error)).encode()
    code = RESOURCE_EXHAUSTED if isinstance(error, MemoryError) else INTERNAL
    return api.create_error(ctypes.byref(NewError.made(message, code)))


def taken(api: Api, error: int) -> str:
    """The message of one of XLA's errors, which is freed."""
    args = ErrorMessage.made(error)
    api.message_of_error(ctypes.byref(args))
    message = (args.message or b"").decode()
    api.destroy_error(ctypes.byref(OldError.made(error)))
    return message


#: The function that XLA calls.
handler = ctypes.CFUNCTYPE(c_void_p, c_void_p)(handle)
for platform in ("cpu", "CUDA"):
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform)
