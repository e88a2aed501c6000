"""Life cycle assessment by bw2calc: Monte Carlo over uncertain exchanges."""

import bw2calc
import bw_processing
import numpy as np

DRAWS = 20
NORMAL = 3  # uncertainty_type of a normal distribution


def monte_carlo(n):
    """Draws of a product system of `n` activities with a dozen inputs each."""
    rng = np.random.default_rng(0)
    consumer = np.repeat(np.arange(n), 12)
    supplier = (consumer + np.maximum(1, rng.zipf(1.6, consumer.size))) % n  # mostly from neighbours
    kept = np.unique(np.stack([supplier, consumer])[:, supplier != consumer], axis=1)
    indices = np.concatenate([np.stack([np.arange(n)] * 2), kept], axis=1)
    amounts = np.concatenate([np.ones(n), rng.uniform(0, 0.05, kept.shape[1])])
    flips = np.arange(indices.shape[1]) >= n
    data = bw_processing.create_datapackage()
    data.add_persistent_vector(
        matrix="technosphere_matrix",
        indices_array=as_indices(*indices),
        data_array=amounts,
        flip_array=flips,
        distributions_array=normal(amounts, flips),
    )
    flows = np.stack([np.full(n, n), np.arange(n)])
    emitted = rng.uniform(size=n)
    data.add_persistent_vector(matrix="biosphere_matrix", indices_array=as_indices(*flows), data_array=emitted)
    data.add_persistent_vector(
        matrix="characterization_matrix", indices_array=as_indices([n], [n]), data_array=np.ones(1)
    )

    def run():
        lca = bw2calc.LCA({0: 1}, data_objs=[data], use_distributions=True, seed_override=1)
        lca.lci()
        lca.lcia()
        scores = [lca.score]
        for _ in range(DRAWS):
            next(lca)
            scores.append(lca.score)
        return np.array(scores)

    return run


def as_indices(rows, columns):
    found = np.empty(len(rows), bw_processing.INDICES_DTYPE)
    found["row"], found["col"] = rows, columns
    return found


def normal(amounts, uncertain):
    """Distributions of a twentieth of the amounts; those that are not uncertain have none."""
    found = np.zeros(len(amounts), bw_processing.UNCERTAINTY_DTYPE)
    found["uncertainty_type"] = np.where(uncertain, NORMAL, 0)
    found["loc"], found["scale"] = amounts, np.where(uncertain, 0.05 * amounts, np.nan)
    for name in ("shape", "minimum", "maximum"):
        found[name] = np.nan
    return found
