"""LDL^T by the supernodal engine on a device, with values and right-hand sides there."""

import numpy as np
import pytest

from gpusplu import gallery
from support.indefinite import KINDS, check_indefinite

pytestmark = pytest.mark.gpu

GALLERY = ["kkt:3000x1000x1", "kkt:3000x1000x6", "stokes:40x40", "stokes:9x9x9", "mixed:40x40", "helmholtz:80x80"]
LARGE = ["kkt:100000x40000x6", "stokes:200x200", "stokes:16x16x16", "mixed:200x200", "helmholtz:300x300"]


@pytest.mark.parametrize(("dtype", "hermitian"), KINDS)
@pytest.mark.parametrize("name", GALLERY)
def test_gallery(cupy, name, dtype, hermitian):
    def put(array):
        return cupy.asarray(np.asfortranarray(array))

    held = dtype in "dD" or not name.startswith("helmholtz")  # thousands of negative eigenvalues near zero
    check_indefinite(gallery.named(name), dtype, hermitian, put, [(), (1,), (3,), (17,)], held)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LARGE, "helmholtz:22x22x22"])
def test_large_gallery(cupy, name):
    check_indefinite(gallery.named(name), "d", True, cupy.asarray, [()])
