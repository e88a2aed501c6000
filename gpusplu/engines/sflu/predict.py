"""Constants of the predicted seconds of the sflu engine; the prediction is that of all column engines."""

from ...cost.model import Costs

COSTS: Costs = {
    "sflu.plan": {"call": 3e-5, "rows": 2.5e-7, "fill": 1e-7, "flops": 1e-12},
    # A level of the whole pattern costs about a hop between two blocks, 0.84 us, and less where blocks own several.
    "sflu.refactor": {"call": 1.9e-5, "levels": 1.2e-6, "fill": 1.4e-10, "flops": 4.6e-12},
    "sflu.solve": {"call": 2.3e-5, "levels": 9.6e-7, "fill": 3.9e-10},
}
