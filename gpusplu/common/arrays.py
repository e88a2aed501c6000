"""Conversion of other libraries' arrays to arrays of NumPy, SciPy and CuPy and back.

No library is imported for the check: a caller with such an array has imported it. Arrays share memory and are not
copied, on a device by DLPack. Work on them is queued in the stream that their library uses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import scipy.sparse as sp

from .installed import install_hint

NO_STREAM = nullcontext()  # of the host
P = ParamSpec("P")
R = TypeVar("R")


def is_pydata(A: Any) -> bool:
    """Whether `A` is a pydata/sparse array."""
    return type(A).__module__.partition(".")[0] == "sparse" and hasattr(A, "to_scipy_sparse")


def is_cupy(A: Any) -> bool:
    """Whether `A` is CuPy's, dense or sparse: on a CUDA device."""
    return type(A).__module__.partition(".")[0] in ("cupy", "cupyx")


def is_cupy_array(A: Any) -> bool:
    """Whether `A` is a dense array on a CUDA device."""
    return type(A).__module__.partition(".")[0] == "cupy"


def is_compressed_on_device(A: Any) -> bool:
    """Whether `A` is CuPy's sparse matrix in compressed columns or rows."""
    return is_cupy(A) and getattr(A, "format", None) in ("csc", "csr")


class ForeignColumns(sp.csc_array):  # type: ignore[misc]
    """Compressed columns of another library's array."""

    on_device = False  # whether its library has it on a device


class ForeignRows(sp.csr_array):  # type: ignore[misc]
    """Compressed rows of another library's array: no reason for a warning, they are what that library has."""

    on_device = False


class ForeignEntries(sp.coo_array):  # type: ignore[misc]
    """Coordinates of another library's array."""

    on_device = False


FOREIGN = (ForeignColumns, ForeignRows, ForeignEntries)


def compressed(kind: Any, arrays: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> Any:
    """A matrix of a class of `FOREIGN` with these values, indices and pointers, which are not checked here."""
    made = kind.__new__(kind)
    made.__dict__.update(_without_arrays(kind, shape))
    made.data, made.indices, made.indptr = arrays
    return made


@lru_cache(64)
def _without_arrays(kind: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """Attributes of SciPy's matrices of a shape that are not arrays."""
    return {name: value for name, value in vars(kind(shape)).items() if not isinstance(value, np.ndarray)}


def is_on_device(A: Any) -> bool:
    """Whether the caller's matrix `A` is on a CUDA device."""
    return is_cupy(A) or (isinstance(A, FOREIGN) and A.on_device)


class StreamOfOthers:
    """A CUDA stream by its address, as CuPy takes those of other libraries."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


@contextmanager
def in_stream(device: int, address: int) -> Iterator[None]:
    """Context with a device and a stream of another library.

    Raises
    ------
    ImportError
        CuPy is not installed.
    """
    cupy = cupy_for_others()
    with cupy.cuda.Device(device), cupy.cuda.Stream.from_external(StreamOfOthers(address)):
        yield


def cupy_for_others() -> Any:
    """CuPy, for arrays of another library on a device."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(f"arrays on a CUDA device need CuPy: {install_hint('cuda13', 'cuda12')}") from error
    return cupy


class Torch:
    """Tensors of PyTorch."""

    dtypes = ("torch.float32", "torch.float64", "torch.complex64", "torch.complex128")

    def owns(self, x: Any) -> bool:
        module = sys.modules.get("torch")
        return module is not None and isinstance(x, getattr(module, "Tensor", ()))

    def place(self, tensor: Any) -> str:
        """Where a tensor is, in words."""
        return str(tensor.device)

    def check(self, name: str, tensor: Any) -> None:
        """Refuse tensors if their numbers or gradients would be lost.

        Raises
        ------
        TypeError, RuntimeError
        """
        import torch

        if str(tensor.dtype) not in self.dtypes:
            raise TypeError(f"{name}: a tensor of {tensor.dtype} is not of {', '.join(self.dtypes)}; use .to(dtype)")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{name}: a tensor requires grad, which would be lost; use gpusplu.torch, or tensor.detach()"
            )
        if tensor.device.type not in ("cpu", "cuda"):
            raise TypeError(f"{name}: a tensor is on {tensor.device}; only cpu and cuda work")

    def wrap(self, name: str, tensor: Any) -> Any:
        """The array of a dense tensor, the matrix of a sparse one."""
        import torch

        tensor = tensor.detach()
        if tensor.layout is torch.strided:
            return self.array(tensor)
        if tensor.layout is torch.sparse_coo:
            tensor = tensor.coalesce().to_sparse_csr()
        if tensor.ndim != 2:
            raise ValueError(f"{name}: a batch of sparse matrices needs gpusplu.torch, or splu_batch")
        if tensor.layout is torch.sparse_csr:
            kind, indices = ForeignRows, (tensor.col_indices(), tensor.crow_indices())
        elif tensor.layout is torch.sparse_csc:
            kind, indices = ForeignColumns, (tensor.row_indices(), tensor.ccol_indices())
        else:
            raise TypeError(f"{name}: a tensor in {tensor.layout} layout; use .to_sparse_csr()")
        on_device = tensor.device.type == "cuda"
        parts = tensor.values(), *indices
        arrays = tuple(self.array(one.cpu() if on_device else one) for one in parts)
        A = compressed(kind, arrays, tuple(tensor.shape))
        A.on_device = on_device
        return A

    def array(self, tensor: Any) -> Any:
        """The numbers of a dense tensor: NumPy's or CuPy's array of the same memory."""
        if tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
            tensor = tensor.detach().resolve_conj().resolve_neg()
        if tensor.device.type == "cpu":
            return tensor.numpy()
        import cupy

        return cupy.from_dlpack(tensor)

    def given_back(self, result: Any, like: Any) -> Any:
        """The tensor of NumPy's or CuPy's array, a sparse one on the device of `like`, or the result."""
        import torch

        if isinstance(result, np.ndarray):
            return torch.from_numpy(result)
        if is_cupy_array(result):
            return torch.from_dlpack(result)
        if not isinstance(result, (ForeignColumns, ForeignRows)):
            return result
        make = torch.sparse_csr_tensor if isinstance(result, ForeignRows) else torch.sparse_csc_tensor
        arrays = map(torch.from_numpy, (result.indptr, result.indices, result.data))
        return make(*arrays, result.shape).to(like.device)

    def working(self, tensor: Any) -> AbstractContextManager[None]:
        """On the device and in the stream that torch uses for a tensor.

        Raises
        ------
        ImportError
            CuPy is not installed, and the tensor is on a device.
        """
        return NO_STREAM if tensor.device.type == "cpu" else self._in_stream(tensor)

    def _in_stream(self, tensor: Any) -> AbstractContextManager[None]:
        import torch

        return in_stream(tensor.device.index, torch.cuda.current_stream(tensor.device).cuda_stream)


class Jax:
    """Arrays of JAX, and matrices of jax.experimental.sparse: BCSR and BCOO."""

    parts: Mapping[str, tuple[str, ...]] = {"BCSR": ("data", "indices", "indptr"), "BCOO": ("data", "indices")}

    def owns(self, x: Any) -> bool:
        module, sparse = sys.modules.get("jax"), sys.modules.get("jax.experimental.sparse")
        return isinstance(x, (getattr(module, "Array", ()), getattr(sparse, "JAXSparse", ())))

    def leaves(self, x: Any) -> list[Any]:
        """The arrays that an array or a matrix consists of."""
        import jax

        if isinstance(x, jax.Array):
            return [x]
        names = self.parts.get(type(x).__name__)  # in a sixth of the time
        return jax.tree.leaves(x) if names is None else [getattr(x, name) for name in names]

    def devices(self, x: Any) -> set[Any]:
        """Devices of the arrays of an array or a matrix."""
        return {device for array in self.leaves(x) for device in array.devices()}

    def place(self, x: Any) -> str:
        """Where an array is, in words."""
        return " and ".join(sorted(map(str, self.devices(x))))

    def check(self, name: str, x: Any) -> None:
        """Refuse arrays that have no numbers yet, or have them in several places.

        Raises
        ------
        TypeError
        """
        import jax

        if any(isinstance(array, jax.core.Tracer) for array in self.leaves(x)):
            raise TypeError(
                f"{name}: got an array that JAX traces; gpusplu.jax has spsolve, factorized and slogdet for jit, grad "
                "and vmap"
            )
        devices = self.devices(x)
        if len(devices) > 1 or next(iter(devices)).platform not in ("cpu", "gpu"):
            raise TypeError(f"{name}: an array is on {self.place(x)}; only one device, a cpu or a gpu, works")

    def wrap(self, name: str, x: Any) -> Any:
        """The array of a dense array, the matrix of a sparse one without its padding."""
        import jax

        if isinstance(x, jax.Array):
            return self.array(x)
        if x.n_batch or x.n_dense:
            raise ValueError(f"{name}: a batch of sparse matrices needs jax.vmap of gpusplu.jax, or splu_batch")
        values, index, *pointers = map(np.asarray, self.leaves(x))
        made: Any
        if pointers:
            count = pointers[0][-1]
            arrays = values[:count], index[:count], pointers[0].astype(index.dtype, copy=False)
            made = compressed(ForeignRows, arrays, x.shape)
        else:
            inside = (index < x.shape).all(axis=1)
            values, index = (values, index) if inside.all() else (values[inside], index[inside])
            made = ForeignEntries((values, tuple(index.T)), shape=x.shape)
        made.on_device = self.is_on_device(x.data)
        return made

    def is_on_device(self, x: Any) -> bool:
        """Whether an array is on a GPU."""
        return bool(next(iter(x.devices())).platform == "gpu")

    def array(self, x: Any) -> Any:
        """NumPy's or CuPy's array of the same memory."""
        if not self.is_on_device(x):
            return np.asarray(x)
        import cupy

        return cupy.from_dlpack(x)

    def given_back(self, result: Any, like: Any) -> Any:
        """The array of NumPy's or CuPy's array, a sparse one as `like`, or the result."""
        import jax

        device = next(iter(self.leaves(like)[0].devices()))
        if isinstance(result, np.ndarray):
            with jax.default_device(device):
                return jax.numpy.asarray(result)  # in half the time of jax.device_put
        if is_cupy_array(result):
            return jax.dlpack.from_dlpack(result)
        if isinstance(result, FOREIGN):
            from jax.experimental import sparse

            kind = sparse.BCSR if isinstance(result, ForeignRows) else sparse.BCOO
            return jax.device_put(kind.from_scipy_sparse(result), device)
        return result

    def working(self, x: Any) -> AbstractContextManager[Any]:
        """Context with the device of an array. JAX does not expose its stream: DLPack orders earlier and later work.

        Raises
        ------
        ImportError
            CuPy is not installed, and the array is on a device.
        """
        device = next(iter(self.leaves(x)[0].devices()))
        if device.platform == "cpu":
            return NO_STREAM
        return cupy_for_others().cuda.Device(device.local_hardware_id)


LIBRARIES = (Torch(), Jax())
#: Common types of arguments that belong to no other library and need no check. symbolic.py adds its class.
PLAIN = {type(None), bool, int, float, str, np.ndarray, sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix}


def library_of(x: Any) -> Any:
    """The library of the array `x` other than NumPy, SciPy and CuPy; None for anything else."""
    if type(x) in PLAIN:
        return None
    for library in LIBRARIES:
        if library.owns(x):
            return library
    return None


def takes_arrays(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a function for NumPy, SciPy and CuPy also accepts and returns arrays of other libraries."""

    @wraps(function)
    def takes_all(*arguments: P.args, **options: P.kwargs) -> R:
        plain = PLAIN.issuperset(map(type, arguments)) and PLAIN.issuperset(map(type, options.values()))
        if not plain and any(map(library_of, (*arguments, *options.values()))):
            return call_with_foreign(function, *arguments, **options)
        return function(*arguments, **options)

    return takes_all


def call_with_foreign(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function with the arrays of another library among its arguments; an array that it returns is one of them.

    Raises
    ------
    TypeError
        Arrays of two libraries, or numbers of a type that is not computed with.
    ValueError
        Arrays on two devices.
    RuntimeError
        The gradient of an array would be lost.
    """
    name, everything = function.__name__, (*arguments, *options.values())
    first = next(filter(library_of, everything))
    library = library_of(first)
    for x in everything:
        if library_of(x) is not library:
            if library_of(x) or isinstance(x, np.ndarray) or sp.issparse(x) or is_cupy(x):
                raise TypeError(f"{name}: got {type_name(first)} and {type_name(x)}; pass arrays of one library")
            continue
        library.check(name, x)
        if x is not first and library.place(first) != library.place(x):
            places = f"{library.place(first)} and {library.place(x)}"
            raise ValueError(f"{name}: got arrays on {places}; move them to one device")

    def native(x: Any) -> Any:
        return library.wrap(name, x) if library_of(x) is library else x

    with library.working(first):
        result = function(*map(native, arguments), **{key: native(x) for key, x in options.items()})
        return library.given_back(result, first)


def type_name(x: Any) -> str:
    return f"{type(x).__module__.partition('.')[0]}.{type(x).__name__}"
