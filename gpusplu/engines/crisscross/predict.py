"""Constants of the predicted seconds of the crisscross engine; the prediction is that of all column engines."""

from ...cost.model import Costs

COSTS: Costs = {
    "crisscross.plan": {"call": 1e-3, "rows": 3.5e-6, "fill": 2e-7, "flops": 1e-12},
    "crisscross.refactor": {"call": 3.4e-5, "levels": 5.9e-7, "fill": 7e-10, "flops": 4e-12},
    "crisscross.solve": {"call": 5.9e-5, "levels": 2.1e-7, "fill": 2.2e-10},
}
