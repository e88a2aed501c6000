"""What explain() says a factorization needs, and the table of docs/use/scaling.md."""

from math import log
from pathlib import Path

import pytest

import gpusplu as gs
from asv_bench import records
from gpusplu import gallery
from gpusplu.common.traits import Structure
from gpusplu.cost.scale import DEVICE_BYTES, LARGE, UNSPLIT, lasting, may_stream, needs, size
from gpusplu.dispatch.report import scale_text
from gpusplu.engines.problem import Request

ROOT = Path(__file__).parents[2]
#: Measured factors (performance/results/supernodal.md): unknowns, entries of L, flops, columns of the widest supernode.
ANCHORS = {
    "2D Poisson": (1_000_000, 3.6e7, 1.09e10, 1500),
    "3D Poisson": (512_000, 2.9e8, 1.06e12, 11208),
    "3D elasticity": (201_720, 2.4e8, 7.69e11, 8580),
}
UNKNOWNS = (10**6, 4 * 10**6, 2 * 10**7, 10**8, 10**9)


def grown(family, n):
    """Fill, flops and widest supernode at n unknowns, as nested dissection has it (George; Lipton, Rose and Tarjan)."""
    first, fill, flops, widest = ANCHORS[family]
    ratio = n / first
    if family.startswith("2D"):
        return fill * ratio * log(n) / log(first), flops * ratio**1.5, widest * ratio**0.5
    return fill * ratio ** (4 / 3), flops * ratio**2, widest * ratio ** (2 / 3)


def row(family, n):
    fill, flops, widest = grown(family, n)
    needed = needs(fill, flops, 8, 1, widest)
    holds, streams = needed.device <= DEVICE_BYTES, may_stream(needed, DEVICE_BYTES)
    device = lasting(needed.on_device if holds else needed.streamed) if flops >= LARGE and (holds or streams) else "-"
    way = "in one piece" if holds else "streaming" if streams else "does not fit"
    cells = (size(needed.factors), size(needed.device), f"{flops:.2g}", way, device)
    return f"| {family} | {n:.0e} | {' | '.join(cells)} | {needed.machines} | {lasting(needed.on_machines)} |".replace(
        "e+0", "e"
    )


@pytest.mark.parametrize("n", UNKNOWNS)
@pytest.mark.parametrize("family", ANCHORS)
def test_the_table_of_the_page_is_what_the_model_says(family, n):
    assert row(family, n) in (ROOT / "docs" / "use" / "scaling.md").read_text().splitlines()


def test_the_model_is_near_to_what_streaming_measured():
    """Device memory of factors in one piece, of Poisson's 80^3 and elasticity's 40^3 on an H200, in segments."""
    factors = {"poisson:80x80x80": 2.9e8 * 8, "elast:40x40x40": 2.4e8 * 8}
    found = dict.fromkeys(factors, float("inf"))
    for record in records.read(records.files("streaming")):
        if record["case"] in factors and record.get("host_bytes") == 0:
            ratio = record["memory_bytes"] / factors[record["case"]]
            found[record["case"]] = min(found[record["case"]], ratio)
    for case, ratio in found.items():
        assert 0.7 * UNSPLIT < ratio < 1.2 * UNSPLIT, case


def structure(fill, flops, widest=100, **changes):
    known = {"n": 1000, "nnz": 9000, "itemsize": 8, "cholesky": True, "method": "front", "ordering": "nd"}
    sizes = {"fill": fill, "flops": flops, "column_levels": 9, "super_levels": 3, "widest": widest}
    return Structure(**known, **sizes, **changes)


def test_each_regime_is_named():
    def text(fill, flops, widest=100, **request):
        return scale_text(Request(**request), structure(fill, flops, widest))

    assert text(1_000_000, 1e8) == "8 MB of factors, about 32 MB on a device: one GPU is enough"
    assert text(10**9, 2.8e13).endswith("one GPU is enough, 1 s a refactorization on an H200")
    large = text(10**10, 2.8e14)
    assert large.startswith("80 GB of factors, about 320 GB on a device, more than 141 GB: one GPU through which they")
    assert (
        "stream, 10 s a refactorization, or 3 GPUs of one host, device='all', 6.2 s, or a machine without GPUs" in large
    )
    assert large.endswith(", 10 min: gpusplu.distributed")
    assert "stream" not in text(10**10, 2.8e14, widest=100_000)
    assert text(10**12, 1e18).split(": ")[1].startswith("a cluster, 36 x 512 GB, 17 h")
    several = text(10**10, 2.8e14, device=0, devices=(0, 1, 2, 3), device_memory=100 * 10**9)
    assert several.endswith("320 GB on a device, more than 100 GB: these 4 GPUs hold them, 5.7 s a refactorization")
    assert "more than 1 MB: one GPU through which they stream" in text(1_000_000, 1e8, device_memory=10**6)


def test_lu_has_two_triangles():
    fill = needs(1e9, 1e12, 8, 1, 10)
    assert needs(1e9, 1e12, 8, 2, 10).factors == 2 * fill.factors


def test_explain_says_what_is_needed():
    A = gallery.poisson(12, 12)
    assert "\nscale     " in gs.explain(A)
    assert "one GPU is enough" in gs.explain(A, cholesky=True)
