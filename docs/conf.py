"""Settings of the documentation. `make docs` builds it without a network and without a warning."""

import sys
import warnings
from pathlib import Path

from margrove import __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
# What the tutorials run must not warn either, as in the tests.
warnings.filterwarnings("error", module=r"margrove\..*")

project = "margrove"
copyright = "the margrove developers"  # noqa: A001
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "plain_docstrings",
    "readme_links",
    "offline_pages",
    "loss_table",
]
exclude_patterns = ["_build", "tutorials/*.py", "sg_execution_times.rst"]

html_theme = "furo"
html_title = f"margrove {release}"
html_copy_source = False
html_show_sphinx = False

autodoc_typehints = "none"
autodoc_member_order = "bysource"
myst_heading_anchors = 3

# Pages of the reference name their members themselves.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "tutorial_order.TutorialOrder",
    "capture_repr": (),  # what is printed and drawn is shown, and nothing else
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "download_all_examples": False,
    "notebook_extensions": set(),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
}
