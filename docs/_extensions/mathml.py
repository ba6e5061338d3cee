"""Mathematics as MathML, which browsers render themselves: no font or script is loaded."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def write(translator: Any, node: nodes.Element) -> None:
    """Append the formula to the page; LaTeX that docutils cannot translate is a warning."""
    try:
        block = isinstance(node, nodes.math_block)
        # browsers leave no space between the name of a function and its argument
        spaced = re.sub(r"(\\(?:log|ln)) ", r"\1\\,", node.astext())
        translator.body.append(tex2mathml(spaced, as_block=block))
    except MathError as error:
        LOGGER.warning("%s in %r", error, node.astext(), location=node)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (write, None), (write, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
