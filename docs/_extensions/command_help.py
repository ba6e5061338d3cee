"""The directive ``command-help``: the help of a command, as the site is built."""

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
        """Run the command and return its output as a literal block."""
        printed = StringIO()
        with redirect_stdout(printed), mock.patch.dict(os.environ, COLUMNS="96"):
            cli.main([self.arguments[0], "--help"])
        return [nodes.literal_block(printed.getvalue(), printed.getvalue(), language="none")]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
