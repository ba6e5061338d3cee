"""The directive ``mechanism-list``: the functions of all mechanisms, in the order in which the package has them."""

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from pufferflow.mechanisms import MECHANISMS


class MechanismList(SphinxDirective):
    """Each as ``autofunction`` shows it, under its public name."""

    def run(self) -> list[nodes.Node]:
        """List."""
        lines = [line for work in MECHANISMS.values() for line in (f".. autofunction:: pufferflow.{work.__name__}", "")]
        shown = nodes.section()
        self.state.nested_parse(StringList(lines, __file__), self.content_offset, shown)
        return shown.children


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("mechanism-list", MechanismList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
