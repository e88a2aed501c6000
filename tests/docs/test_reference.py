"""The reference has a page for everything public, and "What is counted" in docs/use/options.md is true."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import gpusplu as gs
from gpusplu import gallery, plotting

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
#: Of the package's names: `linalg` is SciPy's names and these, the others are pages of their own.
MODULES = {"distributed", "gallery", "linalg", "plotting", "typing"}
LISTED = re.compile(r"^\.\. currentmodule:: (\S+)$|^   (\w+)$", re.MULTILINE)


def listed():
    """Names that tables of the reference list, by module."""
    found, module = {}, None
    for path in REFERENCE.glob("*.md"):
        for current, name in LISTED.findall(path.read_text()):
            module = current or module
            found.setdefault(module, []).extend([name] if name else [])
    return found


@pytest.mark.parametrize("module", ["", "errors", "gallery", "plotting", "torch", "jax", "distributed"])
def test_every_public_name_has_a_page(module):
    pages, whole = listed(), f"gpusplu.{module}".rstrip(".")
    if module in ("torch", "jax"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    public = set(import_module(whole).__all__)
    if not module:
        public -= {*pages["gpusplu.errors"], *MODULES}
    assert sorted(pages[whole]) == sorted(public)


def said(text, name):
    """The line of explain() of a name."""
    return next(line for line in text.splitlines() if line.startswith(f"{name} "))


def test_entries_and_operations():
    A = gallery.poisson(60, 60)
    options = {"ordering": "amd", "diag_pivot_thresh": 0.5}  # which keeps LU from being LDL^T
    lu, n = gs.splu(A, **options), A.shape[0]
    fronts = plotting.fronts(A, ordering="amd")
    assert lu.stats.method == "front" and not lu.stats.symmetric
    pattern = lu.L.nnz + lu.U.nnz - n
    assert lu.nnz == lu.stats.nnz_factor == plotting.entries_by_cell(fronts)[1].sum() + n > pattern + n
    assert said(lu.explain(), "factor").startswith(f"factor    {lu.nnz:,} entries stored including zeros in fronts, ")
    assert fronts.flops.sum() > lu.stats.flops


@pytest.mark.parametrize("cholesky", [False, True])
def test_what_is_predicted_is_the_pattern(cholesky):
    A = gallery.poisson(30, 30) if cholesky else gallery.convection_diffusion(8, 8, 8)
    factor = gs.cholesky(A, ordering="amd") if cholesky else gs.splu(A, ordering="amd")
    counted = factor.L.nnz if cholesky else factor.L.nnz + factor.U.nnz - A.shape[0]
    text = gs.explain(A, ordering="amd", cholesky=cholesky)
    found = re.match(r"predicted ([\d,]+) entries of (.*?), (\S+) flop", said(text, "predicted"))
    assert int(found[1].replace(",", "")) == counted
    assert found[2] == ("L" if cholesky else "L + U")
    assert float(found[3]) == pytest.approx(factor.stats.flops, rel=1e-3)
