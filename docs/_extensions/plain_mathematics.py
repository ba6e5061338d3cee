"""Sets the subscripts and superscripts of plainly written mathematics: A_{i+1}, e^{mc}, 10^6.

The proofs are written to be read as they stand, in any editor. On the site their indices are set as such, by HTML
alone: no fonts and no scripts have to be loaded.
"""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

INDEX = re.compile(
    r"""
    (?<=[^\W\d_]|[])'*⁺\u0302\u0303\d])         # behind a letter, a digit or what ends an expression
    (?P<sign>[_^])
    (?: \{(?P<braces>(?:[^{}]|\{[^{}]*\})*)\}   # {…}, with braces inside once more
      | \((?P<brackets>[^()]*)\)
      | (?P<plain>-?[^\W_]{1,2}(?![^\W_])'?[⁺⁻]?)
    )
    """,
    re.VERBOSE,
)
LONG_NAME = re.compile(r"[^\W\d_]{4,}$")
"""What ends in four letters or more is a name in a program and no symbol with an index."""
UNTOUCHED = (nodes.literal, nodes.literal_block, nodes.raw, nodes.FixedTextElement, nodes.math, nodes.subscript)


def typeset(text: str) -> Iterator[nodes.Node]:
    """The text as nodes, indices of indices included."""
    end = 0
    for match in INDEX.finditer(text):
        if match["sign"] == "_" and LONG_NAME.search(text[: match.start()]):
            continue
        kind = nodes.subscript if match["sign"] == "_" else nodes.superscript
        inner = next(part for part in (match["braces"], match["brackets"], match["plain"]) if part is not None)
        yield nodes.Text(text[end : match.start()])
        yield kind("", "", *typeset(inner))
        end = match.end()
    yield nodes.Text(text[end:])


class TypesetIndices(SphinxPostTransform):
    """Replaces every text that has indices, but for code."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Of one page."""
        for text in list(self.document.findall(nodes.Text)):
            if not isinstance(text.parent, UNTOUCHED) and INDEX.search(text):
                text.parent.replace(text, list(typeset(str(text))))


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_post_transform(TypesetIndices)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
