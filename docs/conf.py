"""Settings of the documentation."""

from margrove import __version__

project = "margrove"
copyright = "the margrove developers"  # noqa: A001
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
suppress_warnings = ["myst.xref_missing"]
myst_heading_anchors = 2
napoleon_use_rtype = False
