"""How compiled programs call Python (gpusplu/jax/foreign.py): arrays in place, errors, and what lives how long."""

import gc
import subprocess
import sys
import weakref
from functools import partial

import numpy as np
import pytest

from support.jaxes import gj, jax, jnp

foreign = gj.foreign
ERRORS = (jax.errors.JaxRuntimeError, ValueError)  # of a program that nobody waits for, and of one that is waited for


def program(work, **parameters):
    """A compiled function of arrays that gives results like its operands, by a call of `work`."""
    primitive = jax.extend.core.Primitive("test_foreign")
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda *avals, **_: [jax.core.ShapedArray(a.shape, a.dtype) for a in avals])
    rule = partial(foreign.lower, foreign.on_host, work)
    jax.interpreters.mlir.register_lowering(primitive, rule, platform="cpu")
    return jax.jit(lambda *arrays: primitive.bind(*arrays, **parameters))


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D", "i", "q", "B", "?"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_arrays_are_what_they_were(dtype, shape):
    given = jnp.asarray(np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype))
    (found,) = program(lambda array: [array])(given)
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(found, given)


def test_operands_are_seen_where_they_lie():
    seen = []
    given = jnp.arange(100.0)
    program(lambda array: seen.append((array.ctypes.data, array.flags.writeable)) or [array])(given)[
        0
    ].block_until_ready()
    assert seen == [(given.unsafe_buffer_pointer(), False)]


def fail(array):
    raise KeyError("nothing like that")


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (fail, "nothing like that"),
        (lambda array: [], "zip"),
        (lambda array: [array.astype("f")], "Cannot cast"),
        (lambda array: [np.zeros(5)], "could not broadcast"),
        (lambda array: array.fill(0), "read-only"),
        (lambda array: sys.exit("out"), "SystemExit: out"),
    ],
)
def test_exceptions_become_errors_of_jax(work, message):
    compiled = program(work)
    for _ in range(3):
        with pytest.raises(ERRORS, match=message):
            jax.block_until_ready(compiled(jnp.arange(3.0)))


class Parameter:
    pass


def test_parameters_live_as_long_as_their_program():
    compiled = program(lambda array, parameter: [array + 1], parameter=Parameter()).lower(jnp.arange(3.0)).compile()
    jax.clear_caches()
    gc.collect()
    (alive,) = (weakref.ref(each) for each in gc.get_objects() if type(each) is Parameter)
    assert compiled(jnp.arange(3.0))[0][1] == 2
    del compiled
    gc.collect()
    assert alive() is None


AT_EXIT = """
import jax, jax.numpy as jnp
from jax.experimental.sparse import BCSR
import gpusplu.jax
A = BCSR.fromdense(jnp.eye(300))
steps = jax.jit(lambda b: jax.lax.scan(lambda x, _: (gpusplu.jax.spsolve(A, x), None), b, length=5000)[0])
x = steps(jnp.ones(300))
"""


def test_a_process_may_end_while_a_program_runs():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
