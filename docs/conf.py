"""Sphinx configuration. gpusplu has to be installed: the API reference is read from its docstrings."""

from importlib.util import find_spec

import gpusplu

project = "gpusplu"
author = "gpusplu developers"
copyright = "2026, gpusplu developers"
release = gpusplu.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "myst_parser", "numpydoc"]
myst_heading_anchors = 2
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": gpusplu.__doc__.splitlines()[0], "fixed_sidebar": True}

autosummary_generate = False
autodoc_typehints = "none"
autodoc_mock_imports = [name for name in ("jax", "torch") if not find_spec(name)]  # not everybody has them
numpydoc_show_class_members = False
