"""The directive ``command-help``: what a command says of itself, asked when the site is built."""

import os
from contextlib import redirect_stdout
from io import StringIO
from typing import Any
from unittest import mock

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from pufferflow import cli


class CommandHelp(SphinxDirective):
    """``pufferflow NAME --help`` as it is printed."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Ask."""
        told = StringIO()
        with redirect_stdout(told), mock.patch.dict(os.environ, COLUMNS="96"):
            cli.main([self.arguments[0], "--help"])
        return [nodes.literal_block(told.getvalue(), told.getvalue(), language="none")]


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
