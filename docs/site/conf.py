"""Settings of the documentation site; `scripts/build_site.py` gathers its pages and calls Sphinx.

Nothing is loaded from elsewhere: no web fonts, no CDN. Search works from file:// too.
"""

from importlib.metadata import version as installed_version

project = "sweetrl"
author = "The sweetrl developers"
copyright = author  # noqa: A001
version = release = installed_version("sweetrl")

extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "attrs_inline"]
# Pages are written for GitHub too, which knows no directives: a fence with another word than a language is a language.
highlight_language = "text"
nitpicky = True

html_theme = "furo"
html_title = "sweetrl"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#14304d",
        "color-brand-content": "#0b5cad",
    },
    "dark_css_variables": {
        "color-brand-primary": "#9fcbf5",
        "color-brand-content": "#7ab8f5",
    },
    "light_logo": "favicon.svg",
    "dark_logo": "favicon.svg",
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
