"""Sphinx configuration. gpusplu has to be installed: the API reference is read from its docstrings."""

from importlib.util import find_spec

import gpusplu

project = "gpusplu"
author = "gpusplu developers"
copyright = "2026, gpusplu developers"
release = gpusplu.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "myst_parser", "numpydoc"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "pydata_sphinx_theme"
html_title = "gpusplu"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "logo": {"text": "gpusplu"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}

autosummary_generate = False
autodoc_typehints = "none"
autodoc_mock_imports = [name for name in ("jax", "torch") if not find_spec(name)]  # not everybody has them
numpydoc_show_class_members = False
