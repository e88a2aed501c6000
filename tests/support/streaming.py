"""How much memory a factor of fronts takes, and how little it can do with."""

from dataclasses import replace

from gpusplu.engines.supernodal import memory
from gpusplu.engines.supernodal.plan import make_plan


def limit_between(symbolic, share, plan=None, **parameters):
    """Bytes between the least that a factor can do with (share 0) and what it takes (1).

    `parameters` are those that the plan was made with; `plan`: if it is not the one of the analysis.
    """
    problem, analysis = symbolic.parts()
    pattern, plan = problem.pattern, plan or analysis.plan
    least = make_plan(analysis.core, pattern, plan.scalar, replace(plan.limits, memory_bytes=1), **parameters)
    most = memory.needed_bytes(plan, pattern)
    few = memory.needed_bytes(least, pattern) + memory.all_vector_bytes(least, 4)
    assert few < most
    return int(few + share * (most - few))
