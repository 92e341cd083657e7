"""Show which cell to release, its quality and leakage, and whether it can be released now.

The answer is the box of the report page, computed again. It includes reviews, releases and changed
limits since then. The limits are in params.yaml (release.unmasked_direct, release.at_most).
--at-most replaces release.at_most for this question. Each limit applies to the upper end of a 95 %
interval.

examples:
  palimpsest advise
  palimpsest advise --details
  palimpsest advise --json
  palimpsest advise --at-most exposure=2 --at-most reidentified=0.05
"""

import json
from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from tasks.options import Argument, Command, Options

SUMMARY = "show which cell to release, its quality and leakage"


class AdviseOptions(Options):
    """Options of the advice."""

    at_most: Annotated[list[str], Argument(again=True, metavar="FIGURE=NUMBER")] = Field(default_factory=list)
    """largest value of a figure of the audit (default: release.at_most in params.yaml)"""
    details: bool = False
    """print all leakage figures, drawbacks, confidence and alternatives too"""
    json_: bool = False
    """print everything as JSON, a list with an entry for each data set"""


def run(options: AdviseOptions) -> None:
    """Print the advice for each data set."""
    from tasks.parameters.parameter_file import read_parameters
    from tasks.results.leakage import check_limits, limits_of
    from tasks.results.verdict import current_verdicts

    limits = limits_of(options.at_most)
    check_limits(limits or read_parameters().release.at_most, "--at-most" if limits else "release.at_most")
    verdicts = current_verdicts(limits)
    if options.json_:
        found = [asdict(verdict) | {"cell": verdict.cell.path} for verdict in verdicts]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for verdict in verdicts:
        print("\n".join(verdict.lines(options.details)))


COMMAND = Command(AdviseOptions, run)
