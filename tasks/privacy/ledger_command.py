"""List the releases with their approvals and epsilons, or record a withdrawal.

For each corpus, the command prints the sum of epsilons. Epsilons of different noisy counts add up
for each unit, a line or a document, under any name of the corpus. The setting
release.epsilon_budget is the budget of the sum. A withdrawn release remains in the sum.

examples:
  palimpsest ledger
  palimpsest ledger --withdraw chat-2026 --reason "a reader found a name"
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from tasks.errors import ParameterError
from tasks.options import Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.privacy.ledger import Release, epsilon_spent, linked_to, read_ledger, withdraw

SUMMARY = "list releases with their approvals and epsilons, or record a withdrawal"


class LedgerOptions(Options):
    """Options of the command: a withdrawal, if any."""

    withdraw: Annotated[str | None, Argument(metavar="NAME")] = None
    """record that this release was withdrawn now; delete it yourself where it was shared"""
    reason: str | None = None
    """reason of the withdrawal"""
    json_: bool = False
    """print releases, sums of epsilons and the budget as JSON"""


def run(options: LedgerOptions) -> None:
    """Print the table."""
    if (options.withdraw is None) != (options.reason is None):
        raise ParameterError("--withdraw NAME and --reason TEXT belong together. Give both, or neither.")
    if options.withdraw is not None and options.reason is not None:
        withdraw(options.withdraw, options.reason)
    releases = read_ledger()
    budget = read_sections(DEFAULT_PATH, ["release"])["release"].epsilon_budget
    sums = epsilon_sums(releases)
    if options.json_:
        document = {"releases": [asdict(one) for one in releases], "epsilon": sums, "budget": budget}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(releases, sums, budget)))


def epsilon_sums(releases: Sequence[Release]) -> list[dict[str, Any]]:
    """The largest spent sum by corpus and unit, also on its lines under other names; ``None`` if one of these
    releases has no epsilon.

    A fill that reads no masked word costs 0 for any unit.
    """
    sums = []
    for dataset in dict.fromkeys(release.dataset for release in releases):
        of_it = linked_to(releases, dataset)
        for unit in sorted({one.unit for one in of_it if one.unit}) or ["line"]:
            of_unit = [one for one in of_it if one.unit in (unit, None)]
            spent = epsilon_spent(of_unit)
            if spent is not None:
                # An edited line costs again, though its counts have the same id.
                spent = max([spent, *(one.spent or 0.0 for one in of_unit)])
            sums.append({"dataset": dataset, "unit": unit, "epsilon": spent})
    return sums


def _lines(releases: Sequence[Release], sums: Sequence[dict[str, Any]], budget: float | None) -> Iterator[str]:
    if not releases:
        yield "nothing has been released"
        return
    heads = ["release", "when", "cell", "epsilon", "approved by"]
    rows = [
        [one.name, one.when[:10], one.cell, _epsilon(one.epsilon, one.unit), ", ".join(one.approved_by) or "nobody"]
        for one in releases
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        yield "  ".join(map(str.ljust, row, widths)).rstrip()
    yield ""
    for one in releases:
        if one.sample_lines is not None:
            yield (
                f"{one.name}: {one.lines:,} lines, {one.sample_lines:,} of them in the run's sample; the others were "
                "applied later, and counts did not read them"
            )
        if one.withdrawn:
            yield f"{one.name}: withdrawn on {one.withdrawn[:10]}: {one.withdrawn_for}"
    for total in sums:
        yield f"{total['dataset']}: epsilon {_epsilon(total['epsilon'], total['unit'])}; " + (
            "no budget is set" if budget is None else f"budget {budget:g}"
        )


def _epsilon(epsilon: float | None, unit: str | None) -> str:
    if epsilon is None:
        return "none is promised"
    return f"{epsilon:g}" + (f" a {unit}" if unit else "")


COMMAND = Command(LedgerOptions, run)
