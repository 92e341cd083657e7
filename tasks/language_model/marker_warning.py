"""What is said where a text that was read as plain holds strings that look like markers."""

import sys

from tasks.records.stage_report import StageReport

_FOUND = "the text holds {count} marker-like strings such as [MASK] and was read as plain text"


def warn_in_report(report: StageReport, marker_like: int) -> None:
    """For whoever reads the report: the strings were read as words."""
    if marker_like:
        report.warn(f"{_FOUND.format(count=marker_like)}, where they are ordinary words")


def warn_user(marker_like: int) -> None:
    """For whoever started the command: how masked text is read."""
    if marker_like:
        found = _FOUND.format(count=marker_like)
        print(f"warning: {found}; for masked text give --markers token or --markers ignore", file=sys.stderr)
