"""Say which cell to release, why, what it costs, and what remains known to an attacker.

Without limits it is the verdict of the report page. With limits on what attacks find, only cells count whose figures
stay within them by the upper ends of their intervals; where none does, that is the answer. Limits that always hold
stand in params.yaml (release.at_most), and 'palimpsest release' refuses what is beyond them.

examples:
  palimpsest advise
  palimpsest advise --at-most exposure=2 --at-most reidentified=0.05
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from tasks.options import Argument, Command, Options

SUMMARY = "say which cell to release, why, and what it gives away"


class AdviseOptions(Options):
    """What is asked."""

    at_most: Annotated[list[str], Argument(again=True, metavar="FIGURE=NUMBER")] = Field(default_factory=list)
    """largest value of a figure of the audit (default: release.at_most in params.yaml)"""


def run(options: AdviseOptions) -> None:
    """Print the advice for each data set."""
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
    from tasks.results.leakage import check_limits, limits_of
    from tasks.results.report_index import REPORTS, ReportIndex
    from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
    from tasks.results.verdict import verdicts

    said = read_sections(DEFAULT_PATH, ["release"])["release"]
    limits = limits_of(options.at_most) if options.at_most else said.at_most
    check_limits(limits, "--at-most" if options.at_most else "release.at_most")
    scores = Path(SUMMARY_FILE).parent / "scores"
    for verdict in verdicts(read_summary(SUMMARY_FILE), ReportIndex(REPORTS), scores, limits):
        print("\n".join(verdict.lines()))


COMMAND = Command(AdviseOptions, run)
