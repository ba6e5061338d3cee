"""One line on the terminal for a job that has ended; all that Snakemake says of it stays in the log file of the run."""

from __future__ import annotations

import logging
import time
from typing import Any

from snakemake.logging import DefaultFormatter, LogEvent, get_event

LEFT_OUT = (LogEvent.WORKFLOW_STARTED, LogEvent.RUN_INFO, LogEvent.JOB_STARTED, LogEvent.JOB_INFO, LogEvent.GROUP_INFO)
ROUTINE = (
    "Select jobs to execute",
    "Execute ",
    "Using workflow specific profile",
    "Assuming unrestricted shared",
    "Using shell",
    "Rules claiming more threads",
    "Conda environments",
)
"""How routine messages without an event begin."""


class JobLines(DefaultFormatter):  # type: ignore[misc]
    """Print ``12/45  measure_synthetic  8.4 s`` when a job ends, and leave out what is said of it before.

    Errors, warnings and the closing lines are those of Snakemake.
    """

    def __init__(self, like: DefaultFormatter) -> None:
        super().__init__(like.quiet, like.show_failed_logs)
        self._began: dict[int, tuple[str, float]] = {}
        self._ended: list[int] = []

    def is_shown(self, record: logging.LogRecord) -> bool:
        """Whether a record is for the terminal at all; the beginning of a job is only noted."""
        event, told = get_event(record), vars(record)
        if event == LogEvent.JOB_INFO:
            self._began[told["jobid"]] = (told["rule_name"], time.monotonic())
        return event not in LEFT_OUT

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; an empty one is not printed."""
        told: dict[str, Any] = vars(record)
        match get_event(record):
            case LogEvent.JOB_FINISHED:
                self._ended.append(told["job_id"])
                return ""
            case LogEvent.PROGRESS:
                return self._lines(told["done"], told["total"])
            case None if record.levelno <= logging.INFO and str(record.msg).startswith(ROUTINE):
                return ""
        return str(super().format(record))

    def _lines(self, done: int, total: int) -> str:
        ended, self._ended = self._ended, []
        first = done - len(ended) + 1
        return "\n".join(self._line(first + place, total, job) for place, job in enumerate(ended))

    def _line(self, place: int, total: int, job: int) -> str:
        name, began = self._began.pop(job, (f"job {job}", time.monotonic()))
        return f"{place:>{len(str(total))}}/{total}  {name}  {time.monotonic() - began:.1f} s"


def one_line_a_job(logger: logging.Logger) -> None:
    """Let the terminal handler of Snakemake's logger print one line a job; its log file is as ever."""
    for handler in logger.handlers:
        if isinstance(handler.formatter, DefaultFormatter) and not isinstance(handler, logging.FileHandler):
            formatter = JobLines(handler.formatter)
            handler.setFormatter(formatter)
            handler.addFilter(formatter.is_shown)
