"""Build the site: `make docs`. Its pages load nothing from other sites."""

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE / "_extensions"))
# tutorials call `pufferflow`
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

os.environ["TQDM_DELAY"] = "1000000"  # a page does not move: bars wait for so many seconds

_about = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = _about["name"]
author = "The pufferflow authors"
version = release = _about["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_nb",
    "mathml",
    "command_help",
]
exclude_patterns = ["_build", "_static", "_extensions"]

# Pages with code cells are run at every build; a cell that fails stops it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # a cell, on a busy machine
nb_execution_in_temp = True
nb_merge_streams = True
myst_heading_anchors = 3
myst_enable_extensions = ["deflist", "dollarmath"]
html_math_renderer = "mathml"
suppress_warnings = ["ref.python"]  # `states` in a type is not an attribute of that name

# The reference, from docstrings.
add_module_names = False
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True

smartquotes = False  # x' is a prime

html_theme = "furo"
html_title = f"pufferflow {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False}


def bars_are_bars(*arguments: Any) -> None:
    """Keep |x| of docstrings from being taken for a substitution; in code it stays as it is."""
    lines: list[str] = arguments[-1]
    lines[:] = [re.sub(r"(``[^`]*``)|\|", lambda match: match[1] or r"\|", line) for line in lines]


def raises_first(*arguments: Any) -> None:
    """Move a paragraph "Raises …" from the section of which it seems a part to the front."""
    lines: list[str] = arguments[-1]
    text = "\n".join(lines)
    section = re.search(r"^\w+\n-+$", text, re.M)
    raises = re.search(r"^Raises (?:.|\n(?!\n))*", text, re.M)
    if section and raises and section.start() < raises.start():
        between = text[section.start() : raises.start()]
        text = f"{text[: section.start()]}{raises[0]}\n\n{between}{text[raises.end() :]}"
        lines[:] = text.split("\n")


def setup(app: Any) -> None:
    """Connect the functions above: sections are read in between."""
    app.connect("autodoc-process-docstring", raises_first, priority=400)
    app.connect("autodoc-process-docstring", bars_are_bars)
