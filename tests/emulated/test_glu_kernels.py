"""Factorizations of the glu engine in every mode against the reference, on the emulator."""

import numpy as np
import pytest

from gpusplu.common.matrix import canonicalize, read_matrix
from gpusplu.cuda.layout import record, struct
from gpusplu.engines.columns.plan import make_column_plan
from gpusplu.engines.device.buffers import STATUS, Buffers
from gpusplu.engines.glu import engine  # noqa: F401 (brings the constants of its model)
from gpusplu.engines.glu.program import MODES, SHARED, GluProgram, Tuning
from support.column_reference import factor, make_columns, random_columns
from support.emulated_device import EmulatedDevice, memory_at
from support.small_matrices import EPS, dtypes

PIECE, TASK = (struct(SHARED, name) for name in ("GluChunk", "GluTask"))


class Factorization(GluProgram):
    """The program of a random matrix on an emulated device."""

    def __init__(self, A, reference, mode=None, seed=0, most_mapped=1e8):
        self.reference, self.A = reference, A
        pattern = canonicalize(read_matrix(A))[0]
        perms = reference.row_perm.astype(np.int32), reference.col_perm.astype(np.int32)
        scales = reference.row_scale.astype(float), reference.col_scale.astype(float)
        plan = make_column_plan(pattern, *perms, *scales, most_mapped=most_mapped)
        super().__init__(EmulatedDevice(seed=seed), plan, pattern, A.dtype, tuning=Tuning(mode=mode))
        self.ready_to_factor()
        self.buffers = Buffers(self)
        memory_at(self.buffers.values.pointer, A.data.nbytes)[:] = A.data.view(np.uint8)

    @property
    def result(self):
        self.device.check()
        buffer = self.buffers.own["factor"]
        return memory_at(buffer.pointer, buffer.nbytes).view(self.dtype)

    @property
    def status(self):
        return memory_at(self.buffers.device_status.pointer, STATUS.itemsize).view(STATUS)[0]

    def run(self):
        self.factor(self.device.own_stream(), self.buffers, self.buffers.values)
        return self.result.copy()

    def error(self):
        """Largest difference from the reference, relative to the largest entry of its column."""
        plan, expected = self.reference, factor(self.reference, self.A.data)
        largest = np.zeros(plan.n)
        np.maximum.at(largest, plan.column, np.abs(expected))
        return float((np.abs(self.result - expected) / largest[plan.column]).max()) / EPS[self.dtype.char]


@pytest.mark.parametrize("dtype", dtypes())
@pytest.mark.parametrize("mode", [None, *MODES])
def test_every_mode(mode, dtype):
    A, plan = random_columns(60, 0.06, dtype, seed=1)
    made = Factorization(A, plan, mode, seed=2)
    made.run()
    assert made.error() < 50
    if mode:
        assert set(made.runs["mode"]) == {MODES.index(mode)}
    made.run()  # counters are ready again
    assert made.error() < 50


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("n", "density", "symmetric"), [(1, 0.5, False), (200, 0.005, True), (150, 0.08, False)])
def test_shapes_of_levels(n, density, symmetric, mode):
    made = Factorization(*random_columns(n, density, seed=n, symmetric=symmetric), mode, seed=1)
    made.run()
    assert made.error() < 50


@pytest.mark.parametrize("mode", MODES)
def test_positions_are_found_without_maps(mode):
    made = Factorization(*random_columns(90, 0.05, seed=4), mode, most_mapped=0)
    assert not made.plan.has_maps
    made.run()
    assert made.error() < 50


def test_model_divides_the_work():
    made = Factorization(*random_columns(600, 0.003, seed=5, symmetric=True))
    assert len(made.runs) > 1
    made.run()
    assert made.error() < 50


def test_model_may_leave_columns_to_levels():
    """As it does where subtrees take too long."""
    A, plan = random_columns(300, 0.008, seed=6)
    made = Factorization(A, plan)
    made.run()
    assert made.error() < 50


def run_by_levels(made, level):
    """Cluster mode with levels of the test's own, a task a block."""
    device, buffers = made.device, made.buffers
    stream = device.own_stream()
    made._assemble(stream, buffers, buffers.values)
    tasks = made.schedule.task_bytes.view(TASK)
    source = made.plan.row[tasks["upper"]]
    for number in range(level.max() + 1):
        chosen = np.flatnonzero(level[source] == number)
        if not len(chosen):
            continue
        pieces = np.zeros(len(chosen), PIECE)
        pieces["begin"], pieces["end"], pieces["wait_level"] = chosen, chosen + 1, -1
        kernel = device.kernel("columns/glu.cu", "update_levels", made.dtype.char, 0)
        fields = {name: buffer.pointer if buffer else 0 for name, buffer in made._glu_arrays.items()}
        fields |= {"chunks": pieces.ctypes.data, "begin": 0, "end": len(pieces), "tiny": made.tiny}
        fields |= {"factor": buffers.own["factor"].pointer, "ticket": 0, "done": 0}
        stream.launch(kernel, len(pieces), 256, 8, record(kernel.arguments, **fields))
    made._finish(stream, buffers)
    return made.error()


def test_levels_of_glu_1_read_what_is_not_written_yet():
    """The read-after-write hazard: U's pattern alone gives levels whose result depends on the order of blocks."""
    A, plan = random_columns(40, 0.06, seed=7)
    made = [Factorization(A, plan, "cluster", seed) for seed in range(4)]
    assert all(run_by_levels(each, each.plan.level) < 50 for each in made)
    assert any(run_by_levels(each, each.plan.level_left) > 1e6 for each in made)


@pytest.mark.parametrize("dtype", dtypes())
def test_small_pivots_and_growth(dtype):
    A, plan = random_columns(30, 0.1, dtype, seed=8, shuffled=False)
    A = A.tolil()
    A[5, :5] = A[:5, 5] = 0
    A[5, 5] = 1e-36
    A[9, 5] = 3.0
    made = Factorization(A.tocsc(), make_columns(A.tocsc(), plan.row_perm, plan.col_perm))
    lu = made.run()
    status = made.status
    assert status["n_perturbed"] == 1
    assert status["n_tiny"] == 1
    pivot = lu[made.plan.diag[5]]
    assert pivot == pytest.approx(made.tiny, rel=1e-6)
    assert status["growth"] == pytest.approx(3 / made.tiny, rel=0.01)
    assert status["not_finite"] == 0


def test_pivots_that_overflow_are_counted():
    A, plan = random_columns(20, 0.2, seed=9)
    made = Factorization(A, plan)
    assert made.run() is not None
    assert made.status["not_finite"] == 0
    A.data[0] = np.inf
    made = Factorization(A, plan)
    made.run()
    assert made.status["not_finite"] > 0
