"""conf.py: Sphinx's settings. build.py runs Sphinx, and says in WD_SITE where it put what."""

import json
import os
import re

site = json.loads(os.environ["WD_SITE"])  # root, version, xml

project = "wd"
author = "the authors of wd"
html_title = f"wd {site['version']}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = []
highlight_language = "none"
pygments_style, pygments_dark_style = "tango", "monokai"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 6

# The package's own code is all that is imported.
autodoc_mock_imports = ["gymnasium", "numpy", "pandas", "safetensors", "stable_baselines3", "torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_display_short_literal_types = True
python_maximum_signature_line_length = 100
add_module_names = False

breathe_projects = {"wd": site["xml"]}
breathe_default_project = "wd"
cpp_maximum_signature_line_length = 100
cpp_id_attributes = ["WD_FN", "WD_INLINE", "WD_FLATTEN"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wd.css"]
templates_path = ["templates"]
html_sidebars = {"**": ["sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html", "sidebar/navigation.html",
                        "llms.html", "sidebar/scroll-end.html"]}
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_show_search_summary = False  # would load pages, which a browser refuses to pages from disk
html_show_copyright = False
html_last_updated_fmt = None


def docstring(app, what, name, obj, options, lines):
    """Makes reStructuredText of a docstring, which is plain text: `code`, and arguments as `name: text`."""
    text, listed = [], False
    for line in lines:
        if not line.startswith(">>>"):
            line = re.sub("`+([^`]+)`+", r"``\1``", re.sub(r"([*_|\\])", r"\\\1", line) if "`" not in line else line)
        argument = re.match(r"(\w+): ", line)
        if argument and not listed:
            text.append("")
        if argument:
            line = f"- **{argument[1]}**: {line[argument.end():]}"
        elif listed and not line.startswith("    "):
            text.append("")
            listed = False
        listed = listed or bool(argument)
        text.append(re.sub("^    ", "  ", line) if listed else line)
    lines[:] = text


def setup(app):
    app.connect("autodoc-process-docstring", docstring)
