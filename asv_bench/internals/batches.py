"""Batches of the engines, below the facade."""

import gpusplu as gs
from gpusplu.engines import registry
from gpusplu.engines.supernodal import lanes, lockstep


def engine_batch(A, definite, count, grain=None, rows=None):
    """The supernodal engine's batch for `count` systems like A; `grain` and `rows` instead of its own."""
    gs.cache_clear()
    if grain:
        lockstep.LEAST_GRAIN = lockstep.MOST_GRAIN = grain
    if rows:
        lanes.TEAM_ROWS, lanes.WIDE_ROWS, lanes.SINGLE_WARP_ROWS = rows
    problem, analysis = gs.analyze(A, cholesky=definite, engine="supernodal").parts()
    return registry.named("supernodal").factor_batch(problem, analysis, count)


def batch_kernels(batch, values, b, clock):
    """Microseconds of every launch of a refactorization and a solve, in their order, by CUDA events."""
    import cupy

    from gpusplu.cuda.stream import Stream

    marks, launch = [], Stream.launch

    def marked(self, kernel, *arguments, **options):
        events = cupy.cuda.Event(), cupy.cuda.Event()
        events[0].record()
        launch(self, kernel, *arguments, **options)
        events[1].record()
        marks.append((kernel.name, *events))

    Stream.launch = marked
    try:
        clock.spin_for(2e-3)
        batch.refactor(values)
        batch.solve(b)
        clock.synchronize()
    finally:
        Stream.launch = launch
    return ", ".join(f"{name} {1e3 * cupy.cuda.get_elapsed_time(*events):.0f}" for name, *events in marks)
