"""Constants of the accuracy policy (core/certify/accuracy_policy.hpp) for code that has no core, or does not call it.

`tests/cpu/test_accuracy_policy.py` compares them with the core. Reasons: docs/internals/decisions/0003.
"""

from __future__ import annotations

#: Backward errors up to which a solution is not refined, and up to which it is accepted after refinement [units of the
#: precision].
ENOUGH, ACCEPTED = 8, 100
#: Steps of refinement.
MOST_STEPS = 3
#: Random right-hand sides that certify an inertia, and the largest estimate of ||I - A M^-1|| that they may show.
INERTIA_SAMPLES, CERTAIN_DISTANCE = 8, 0.01
