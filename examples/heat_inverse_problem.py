"""A heat-equation inverse problem with JAX: which conductivity has a plate whose temperatures were measured?

The plate is heated for a while in one place and cools down; its temperatures follow from implicit Euler steps, each of
them a sparse solve. JAX differentiates through all of them, so that gradient descent finds the conductivity at every
node. All steps have one matrix: it is factored once in each iteration, and the backward pass uses that factor.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO

import gpusplu.jax

jax.config.update("jax_enable_x64", True)


class Plate:
    """A square of side x side nodes, its rim at zero degrees."""

    def __init__(self, side, dt=0.05, steps=20):
        self.side, self.n, self.dt, self.steps = side, side * side, dt, steps
        node = np.arange(self.n).reshape(side, side)
        across, down = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
        self.ends = np.hstack([[one.ravel() for one in pair] for pair in (across, down)])
        i, j = self.ends
        everyone = np.arange(self.n)
        self.indices = np.stack([np.r_[everyone, i, j, i, j], np.r_[everyone, i, j, j, i]], axis=1)
        rim = np.ones((side, side), bool)
        rim[1:-1, 1:-1] = False
        self.inner = jnp.asarray(~rim.ravel(), float)

    def matrix(self, conductivity):
        """Of one implicit step: the identity and, times dt, conductances between neighbours."""
        i, j = self.ends
        conductance = self.dt * 0.5 * (conductivity[i] + conductivity[j]) * (self.side / 8) ** 2
        outward, inward = conductance * self.inner[i], conductance * self.inner[j]
        values = jnp.concatenate([jnp.ones(self.n), outward, inward, -outward, -inward])
        return BCOO((values, self.indices), shape=(self.n, self.n))  # duplicates are summed

    def temperatures(self, conductivity, source):
        """At every step, shape (steps, n)."""
        A = self.matrix(conductivity)

        def step(u, time):
            u = gpusplu.jax.spsolve(A, u + self.dt * source * (time < self.steps // 2))
            return u, u

        return jax.lax.scan(step, jnp.zeros(self.n), jnp.arange(self.steps))[1]


def smoothness(plate, field):
    """How much neighbours differ: what the measurements do not tell."""
    i, j = plate.ends
    return ((field[i] - field[j]) ** 2).sum()


def adam(gradient, x, iterations, rate=0.05):
    """Minimize by Adam, Kingma and Ba's gradient descent; the last point and the losses on the way."""

    def iterate(carry, k):
        x, mean, square = carry
        loss, g = gradient(x)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        x = x - rate * (mean / (1 - 0.9**k)) / (jnp.sqrt(square / (1 - 0.999**k)) + 1e-12)
        return (x, mean, square), loss

    start = (x, jnp.zeros_like(x), jnp.zeros_like(x))
    (x, _, _), losses = jax.lax.scan(iterate, start, jnp.arange(1.0, iterations + 1))
    return x, losses


def main(side=16, iterations=150):
    plate = Plate(side)
    across, down = np.meshgrid(*[np.linspace(0, 1, side)] * 2)
    true = jnp.asarray(1 + 1.5 * np.exp(-20 * ((across - 0.35) ** 2 + (down - 0.6) ** 2)).ravel())
    places = [(0.3, 0.3), (0.7, 0.3), (0.3, 0.7), (0.7, 0.7)]
    sources = jnp.stack([plate.inner * np.exp(-80 * ((across - x) ** 2 + (down - y) ** 2)).ravel() for x, y in places])
    simulate = jax.vmap(plate.temperatures, (None, 0))  # four experiments: right-hand sides of one factor
    measured = simulate(true, sources)

    def loss(logarithm):
        misfit = simulate(jnp.exp(logarithm), sources) - measured
        return (misfit**2).sum() / (measured**2).sum() + 1e-7 * smoothness(plate, logarithm)

    logarithm, losses = jax.jit(lambda x: adam(jax.value_and_grad(loss), x, iterations))(jnp.zeros(plate.n))
    found, inside = jnp.exp(logarithm), plate.inner > 0
    error = float((abs(found - true) * inside).max())
    print(f"{plate.n} conductivities from {measured.size} temperatures, {iterations} iterations")
    print(f"loss {losses[0]:.1e} -> {losses[-1]:.1e}, largest error inside {error:.2f} of {float(true.max()):.2f}")
    return found, true, np.asarray(losses)


if __name__ == "__main__":
    main()
