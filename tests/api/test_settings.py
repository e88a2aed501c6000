"""GPUSPLU_NUM_THREADS and what refactor takes for values."""

import subprocess

import numpy as np
import pytest

import gpusplu as gs
from support.processes import PYTHON, environment
from support.small_matrices import random_matrix

SPLU = "import gpusplu, scipy.sparse as sp; gpusplu.splu(sp.eye_array(3, format='csc'))"


@pytest.mark.parametrize("value", ["1e3", "", "0", "-1", "2x", " 4 ", "99999999999"])
def test_numbers_of_threads_that_are_none(value):
    variables = environment(GPUSPLU_NUM_THREADS=value)
    run = subprocess.run([*PYTHON, "-c", SPLU], env=variables, capture_output=True, text=True)
    expected = f"ValueError: GPUSPLU_NUM_THREADS must be a whole number from 1 on, such as 4, got '{value}'"
    assert run.stderr.strip().splitlines()[-1].strip() == expected.strip()
    assert run.returncode == 1


def test_a_number_of_threads():
    variables = environment(GPUSPLU_NUM_THREADS="3")
    code = f"{SPLU}; print(gpusplu._core.num_threads())"
    run = subprocess.run([*PYTHON, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert run.stdout == "3\n"


@pytest.mark.parametrize("values", ["abc", None, object(), b"abc", ["a", "b"], {}])
def test_refactor_takes_numbers(values):
    A, b = random_matrix(), np.ones(60)
    lu = gs.splu(A)
    with pytest.raises(TypeError, match="refactor: values must be numbers or a matrix, not "):
        lu.refactor(values)
    with pytest.raises(TypeError, match="refactor: values must be numbers or a matrix, not "):
        lu.symbolic.factor(values)
    np.testing.assert_allclose(A @ lu.solve(b), b, rtol=1e-10)
