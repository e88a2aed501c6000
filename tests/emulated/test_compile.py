"""Kernels compile for every kind of architecture without a GPU, and the cache never hands out stale ones."""

import importlib.util
import os
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from gpusplu.cuda import cache, devices, layout, nvrtc
from gpusplu.cuda.nvrtc import CompileError

if importlib.util.find_spec("nvidia") is None:
    pytest.skip("no NVRTC (pip install nvidia-cuda-nvrtc)", allow_module_level=True)

# Double precision, which has most tensor core paths, for one architecture of each kind that sources tell apart (86
# stands for 89, 90 for 100); single for one without tensor cores and one with; the complex ones, which differ between
# them by the asynchronous copies only, for one. LDL^T, which shares these paths with LU and Cholesky, for one of each.
ARCHITECTURES_OF = {"f": (75, 90), "d": (75, 80, 86, 90, 120), "F": (75,), "D": (90,)}
OF_LDLT = (75, 80, 90)
BY_DEFAULT = ("d", 0, 90)  # other kinds run in the emulator
UNOPTIMIZED = "--Ofast-compile=max"  # a tenth of the time
FILES = sorted(str(path.relative_to(nvrtc.FOLDER)) for path in nvrtc.FOLDER.rglob("*.cu"))
FILES_OF_LDLT = {
    f"fronts/{name}.cu" for name in ("block_fronts", "complement", "large_fronts", "solve_fronts", "warp_fronts")
}


def kinds(file, scalar):
    """Kinds of factorization that a file is compiled for."""
    wanted = range(4) if file in FILES_OF_LDLT else (nvrtc.LU, nvrtc.CHOLESKY)
    return sorted({nvrtc.kind_of(file, scalar, kind) for kind in wanted})


CASES = [
    pytest.param(file, scalar, kind, arch, marks=[] if (scalar, kind, arch) == BY_DEFAULT else pytest.mark.thorough)
    for file in FILES
    for scalar in ARCHITECTURES_OF
    for kind in kinds(file, scalar)
    for arch in ARCHITECTURES_OF[scalar]
    if kind < nvrtc.HERMITIAN or arch in OF_LDLT
]


@pytest.fixture(scope="module")
def compiled(request):
    """Machine code of a case; all cases that were selected are compiled side by side, a process a processor."""
    wanted = [item.callspec.params for item in request.session.items if "compiled" in getattr(item, "fixturenames", ())]
    cases = [tuple(params[name] for name in ("file", "scalar", "kind", "arch")) for params in wanted]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        started = {case: pool.submit(nvrtc.compile_kernels, *case, UNOPTIMIZED) for case in cases}
        yield lambda case: started[case].result()


@pytest.mark.parametrize(("file", "scalar", "kind", "arch"), CASES)
def test_every_kernel_compiles(compiled, file, scalar, kind, arch):
    code = compiled((file, scalar, kind, arch))
    assert code[:4] == b"\x7fELF"
    names = layout.arguments(file)
    assert names
    assert all(name.encode() in code for name in names)


@pytest.fixture(scope="module")
def of_cuda_12():
    """Its front end refuses code that CUDA 13 compiles."""
    for path in nvrtc.candidates():
        if path.endswith(".so.12") and os.path.exists(path):
            return nvrtc.Nvrtc(path)
    pytest.skip("no NVRTC of CUDA 12 (pip install nvidia-cuda-nvrtc-cu12)")


@pytest.mark.thorough
@pytest.mark.parametrize("file", FILES)
def test_every_kernel_compiles_with_cuda_12(of_cuda_12, file):
    options = (*nvrtc.flags("d", nvrtc.LU, 90), f"--include-path={nvrtc.FOLDER}", UNOPTIMIZED)
    assert of_cuda_12.compile(file, nvrtc.sources(file)[file], options)[:4] == b"\x7fELF"


@pytest.mark.parametrize("file", FILES)
def test_host_reads_the_arguments_of_every_kernel(file):
    dtypes = layout.arguments(file)
    assert dtypes
    assert len(re.findall(r"^GPUSPLU_KERNEL\(", nvrtc.sources(file)[file], re.MULTILINE)) == len(dtypes)
    assert all(dtype.itemsize for dtype in dtypes.values())


def test_kernel_names_are_unique():
    names = [name for file in FILES for name in layout.arguments(file)]
    assert len(names) == len(set(names))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of kernels of its own: header.cuh and a file that includes it."""
    (tmp_path / "header.cuh").write_text(
        "struct Args { const int *first, *second; /* a */ unsigned n; double x, y[3], *z; };\n"
    )
    (tmp_path / "file.cu").write_text(
        '#include "header.cuh"\nextern "C" __global__ void kernel(Args a) { *(double*)a.first = a.x; }\n'
    )
    monkeypatch.setattr(nvrtc, "FOLDER", tmp_path)
    monkeypatch.setenv("GPUSPLU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_an_architecture_this_nvrtc_does_not_know_gets_ptx(folder):
    assert b".target sm_" in nvrtc.compile_kernels("file.cu", "d", 0, 999)


def test_errors_and_warnings_are_reported(folder):
    (folder / "file.cu").write_text('extern "C" __global__ void kernel() { int unused; }\n')
    with pytest.raises(CompileError, match="unused"):
        nvrtc.compile_kernels("file.cu", "d", 0, 80)
    (folder / "file.cu").write_text("this is no kernel\n")
    with pytest.raises(CompileError, match=r"file\.cu --gpu-architecture=sm_80"):
        nvrtc.compile_kernels("file.cu", "d", 0, 80)


def test_key_covers_headers_flags_and_architecture(folder):
    keys = [cache.key("file.cu", scalar, kind, arch) for scalar in "fd" for kind in (0, 1) for arch in (80, 90)]
    (folder / "header.cuh").write_text((folder / "header.cuh").read_text() + "// changed\n")
    keys.append(cache.key("file.cu", "f", 0, 80))
    assert len(set(keys)) == len(keys)


def test_cache_compiles_once(folder, monkeypatch):
    first = cache.kernels("file.cu", "d", 0, 80)
    monkeypatch.setattr(cache, "compile_kernels", None)
    assert cache.kernels("file.cu", "d", 0, 80) == first
    assert len(os.listdir(folder / "cache")) == 1


def test_cache_may_be_filled_from_many_threads(folder):
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: cache.kernels("file.cu", "d", 0, 80), range(4)))
    assert len(set(found)) == 1
    assert len(os.listdir(folder / "cache")) == 1


def test_a_device_knows_what_is_in_the_cache(folder):
    """Whoever compiled it."""
    both = [object.__new__(devices.Device) for _ in range(2)]
    for device in both:
        device._modules, device._prepared, device._places, device.arch = {}, set(), {}, 80
    assert not both[0].compiled(["file.cu"], "d", 0)
    both[0].prepare(["file.cu"], "d", 0)
    assert both[0].compiled(["file.cu"], "d", 0)
    assert both[1].compiled(["file.cu"], "d", 0)
    assert not both[1].compiled(["file.cu"], "f", 0)
    assert not both[1].compiled(["file.cu"], "d", 1)


def test_cache_that_cannot_be_written_is_done_without(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("GPUSPLU_CACHE_DIR", str(folder / "file" / "below"))
    assert cache.kernels("file.cu", "d", 0, 80)[:4] == b"\x7fELF"


def forget_headers():
    for known in (layout.struct, layout.bodies, layout.texts):
        known.cache_clear()


def test_struct_has_the_bytes_of_the_header(folder):
    dtype = layout.struct("file.cu", "Args")
    expected = [("first", "u8"), ("second", "u8"), ("n", "u4"), ("x", "f8"), ("y", "f8", 3), ("z", "u8")]
    assert dtype == np.dtype(expected, align=True)
    forget_headers()
    (folder / "header.cuh").write_text(
        "constexpr int COUNT = 3;\nstruct Inner { int a; long long b; };\nstruct Args { Inner inner[COUNT]; int k; };\n"
    )
    assert layout.struct("file.cu", "Args").itemsize == 3 * 16 + 8
    with pytest.raises(KeyError, match="no struct Other"):
        layout.struct("file.cu", "Other")


def test_struct_that_the_host_cannot_read(folder):
    forget_headers()
    (folder / "header.cuh").write_text("struct Args { int (*function)(int); };\n")
    with pytest.raises(ValueError, match="cannot read"):
        layout.struct("file.cu", "Args")
    forget_headers()
