"""The site: ``python -m sphinx docs build/site``. Warnings are errors; nothing is fetched."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import evenhand

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

project = "evenhand"
author = "the evenhand developers"
copyright = author  # Sphinx's own name for it
version = release = evenhand.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "_site",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["gallery/GALLERY_HEADER.rst"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say it with shapes and units
REQUESTS = ("fit", "partial_fit", "predict", "predict_proba", "score", "transform")
autodoc_default_options = {
    # What scikit-learn and Python give their own, they document.
    "inherited-members": "BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, "
    "ABC, Protocol, Exception, str, int, tuple, dict, type, object",
    "exclude-members": "get_metadata_routing, maketrans, set_output, "
    + ", ".join(f"set_{name}_request" for name in REQUESTS),
}
templates_path = ["_templates"]
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": True,
    "min_reported_time": 1_000_000,  # times of this machine say nothing
    "plot_gallery": os.environ.get("EVENHAND_GALLERY", "1") == "1",
}

html_theme = "pydata_sphinx_theme"
html_title = "evenhand"
html_static_path = ["_static"]
html_css_files = ["evenhand.css"]
html_js_files = ["evenhand.js"]
html_show_sourcelink = False
html_context = {"several": os.environ.get("EVENHAND_SITE", "")}  # set by _versions.py
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "navbar_end": ["version", "theme-switcher"],
    "show_prev_next": False,
    "collapse_navigation": True,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
nitpicky = False
