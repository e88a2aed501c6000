"""Power flow of the European grid by pandapower."""

import numpy as np
import pandapower
import pandapower.networks


def series(steps, solve, seed):
    """A network, and one power flow after another with loads that change a little."""
    net = pandapower.networks.case9241pegase()
    pandapower.runpp(net, init="dc")
    loads, rng = net.load.p_mw.to_numpy(copy=True), np.random.default_rng(seed)
    factors = 1 + 0.02 * rng.normal(size=(steps, len(loads)))

    def run():
        angles = []
        for factor in factors:
            net.load["p_mw"] = loads * factor
            solve(net)
            angles.append(net.res_bus.va_degree.to_numpy(copy=True))
        return np.array(angles)

    return run


def newton_series(steps):
    """Newton's method, each step from the one before."""

    def solve(net):
        pandapower.runpp(net, init="results")

    return series(steps, solve, seed=0)


def dc_series(steps):
    """The linear approximation."""
    return series(steps, lambda net: pandapower.rundcpp(net), seed=1)
