"""conf.py: Sphinx's settings. build.py runs Sphinx, and says in WD_SITE where it put what."""

import json
import os
import pathlib
import re

site = json.loads(os.environ["WD_SITE"])  # root, version, xml

project = "wd"
author = "the authors of wd"
html_title = f"wd {site['version']}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = []
highlight_language = "none"
smartquotes = False  # options have two dashes
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
toc_object_entries = False  # would triple the time, because every page has the menu

breathe_projects = {folder.name: str(folder) for folder in pathlib.Path(site["xml"]).iterdir()}  # one of each header
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
        argument = re.match(r"(\w+): ", line)
        if listed != (bool(argument) or (listed and line.startswith("    "))):
            text.append("")  # around a list
            listed = not listed
        parts = re.split("`+([^`]+)`+", line)
        parts[::2] = [part if line.startswith(">>>") else re.sub(r"([*_|\\])", r"\\\1", part) for part in parts[::2]]
        parts[1::2] = [f"``{code}``" for code in parts[1::2]]
        line = "".join(parts)
        if argument:
            line = f"- **{argument[1]}**: {line.split(': ', 1)[1]}"
        text.append(re.sub("^    ", "  ", line) if listed else line)
    lines[:] = text


def menu(app, pagename, templatename, context, doctree):
    """Shows the menu's lower entries only where the reader is: all of them, on every page, take most of the time of a build."""
    if whole := context.get("toctree"):
        context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


def setup(app):
    app.connect("html-page-context", menu, priority=400)  # before Furo
    app.connect("autodoc-process-docstring", docstring)
