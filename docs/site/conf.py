"""Sphinx builds the site from the pages in docs/: `make site`. What is special is in `shape.py`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

project = "tfrkit"
author = "the tfrkit developers"
copyright = "the tfrkit developers"
extensions = ["myst_parser", "shape"]
exclude_patterns = ["site", "writers", "runner", "**/__pycache__"]
language = "en"
root_doc = "index"

myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = [
    "misc.highlighting_failure",  # a signature is no whole program
    "myst.header",  # a page of the reference may skip a level
]

html_theme = "furo"
html_title = "tfrkit"
html_baseurl = ""
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_additional_pages = {"search": "search.html"}
html_use_index = False
html_domain_indices = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
