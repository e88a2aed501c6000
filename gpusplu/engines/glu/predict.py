"""Constants of the predicted seconds of the glu engine; the prediction is that of all column engines."""

from ...cost.model import Costs

COSTS: Costs = {
    "glu.plan": {"call": 1e-5, "rows": 2.5e-7, "fill": 2.5e-7, "flops": 1e-12},
    # A level of the whole pattern costs about a hop between two blocks, 0.84 us, and less where blocks own several.
    "glu.refactor": {"call": 2e-6, "levels": 1e-6, "fill": 5.5e-10, "flops": 5.9e-12},
    "glu.solve": {"call": 2.1e-5, "levels": 9.8e-7, "fill": 3.9e-10},
}
