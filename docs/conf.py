"""Sphinx configuration. gpusplu has to be installed: the API reference is read from its docstrings."""

import re
from importlib.util import find_spec
from pathlib import Path

import gpusplu

project = "gpusplu"
author = "gpusplu developers"
copyright = "2026, gpusplu developers"
release = gpusplu.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "myst_parser", "numpydoc"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nitpicky = True
nitpick_ignore = [("py:class", "numpy.linalg.LinAlgError")]  # NumPy's pages are not fetched by a build
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "gpusplu"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
toc_object_entries_show_parents = "hide"  # the column beside a page is narrow
published = Path(__file__).resolve().parents[1] / ".asv/site"  # by `asv publish`; the site has them in asv/
if published.is_dir():
    html_extra_path = [str(published)]
    tags.add("asv")  # noqa: F821, Sphinx's
html_theme_options = {
    "logo": {"text": "gpusplu"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}

# Beside circuit and machine, whatever the disk makes of capitals.
autosummary_filename_map = {
    f"gpusplu.{name}": f"gpusplu.{name}_class" for name in ("gallery.Circuit", "plotting.Machine")
}
autodoc_typehints = "none"
autodoc_mock_imports = [name for name in ("jax", "torch") if not find_spec(name)]  # not everybody has them
numpydoc_show_class_members = False


def setup(app):
    """Classes of objects that functions make are shown without a constructor: nobody calls it."""
    made = re.compile("(Factor|Symbolic|Stats|Explanation|Inertia|CacheInfo|SlogDet|Maps|Fronts|Structure|Plots)$")

    def signature(app, what, name, *_):
        return ("", None) if what == "class" and made.search(name) else None

    app.connect("autodoc-process-signature", signature)
