"""What half the time of a case would take: which regime takes it, what bounds that, and what is known to help.

The remedies and what they promise come from the profiles of the prototypes that the kernels grew from; they are
predictions, not measurements.
"""

from .tables import seconds

CHAIN_OF_BLOCKS = (
    "inverses of 16 x 16 blocks, latency of 0.13 us a pivot and 0.5 to 0.9 us a block, joined from 8 x 8 ones by "
    "tensor cores, and two batches of the children's items in flight instead of one"
)
REMEDIES = {
    (
        "warp",
        "chain",
    ): "whole subtrees in a warp, contribution blocks kept in shared memory: 3.7 us a front to about 1.3",
    (
        "warp",
        "places",
    ): "whole subtrees in a warp, contribution blocks kept in shared memory: 3.7 us a front to about 1.3",
    ("small", "chain"): CHAIN_OF_BLOCKS,
    ("small", "places"): "less of the fixed 6 us a front, or more fronts on a multiprocessor at a time",
    ("block", "chain"): CHAIN_OF_BLOCKS,
    ("block", "places"): "less of the fixed 6 us a front, or more fronts on a multiprocessor at a time",
    (
        "large",
        "chain",
    ): "0.21 us a pivot to about 0.12: steps of 128 columns as 2 x 2 tiles in a block, the panel of the "
    "next step split over several blocks",
    (
        "large",
        "arithmetic",
    ): "the main loop of the updates nearer to a large matrix product (46 to 55 TFLOP/s: a warp that "
    "only loads, tiles stored contiguously), and fewer zeros of merged fronts",
    ("large", "places"): "more blocks for tiles at a time",
}
TRAFFIC = (
    "contribution blocks that are written and read fewer times, by larger fronts or in the memory of their children"
)
LOST = "what bounds the regime is far below what it takes: the time is lost elsewhere, and a profile must say where"
LOST_ABOVE = 2.5  # times the bound


def limit(record, measured, floors_of):
    """What limits a case, and what would help.

    Parameters
    ----------
    record : dict
        Of the refactorization.
    measured : dict
        Seconds by regime.
    floors_of : callable
        Floors by name of an entry of ``record["regimes"]``.

    Returns
    -------
    remedy, finding : str
    """
    took = {entry["regime"]: measured.get(entry["regime"], entry["predicted_s"]) for entry in record["regimes"]}
    total = sum(took.values()) + measured.get("else", 0.0)
    entry = max(record["regimes"], key=lambda entry: took[entry["regime"]])
    regime, floors = entry["regime"], floors_of(entry)
    bound = max(floors, key=floors.get)
    finding = f"{took[regime] / total:.0%} {regime}, {seconds(took[regime])}; {bound} {seconds(floors[bound])}"
    if took[regime] > LOST_ABOVE * floors[bound]:
        return LOST, finding
    return TRAFFIC if bound == "traffic" else REMEDIES[regime, bound], finding
