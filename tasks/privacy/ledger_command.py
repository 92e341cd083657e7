"""List what has left the private zone: the releases of each corpus, and the sum of their epsilons.

Epsilons of different noisy counts add up for each unit, a line or a document; the budget is release.epsilon_budget.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tasks.options import Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.privacy.ledger import Release, epsilon_spent, of_corpus, read_ledger

SUMMARY = "list the releases, and the epsilon that they have spent"


def run(_: Options) -> None:
    """Print the table."""
    releases = read_ledger()
    budget = read_sections(DEFAULT_PATH, ["release"])["release"].epsilon_budget
    print("\n".join(_lines(releases, epsilon_sums(releases), budget)))


def epsilon_sums(releases: Sequence[Release]) -> list[dict[str, Any]]:
    """What was spent by corpus and unit; ``None`` where a release of the corpus has no epsilon at all.

    A fill that reads nothing of what was masked costs 0 for whatever unit.
    """
    sums = []
    for dataset in dict.fromkeys(release.dataset for release in releases):
        of_it = of_corpus(releases, dataset)
        for unit in sorted({one.unit for one in of_it if one.unit}) or ["line"]:
            spent = epsilon_spent([one for one in of_it if one.unit in (unit, None)])
            sums.append({"dataset": dataset, "unit": unit, "epsilon": spent})
    return sums


def _lines(releases: Sequence[Release], sums: Sequence[dict[str, Any]], budget: float | None) -> Iterator[str]:
    if not releases:
        yield "nothing has been released"
        return
    rows = [("release", "when", "cell", "epsilon")]
    rows += [(one.name, one.when[:10], one.cell, _epsilon(one.epsilon, one.unit)) for one in releases]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from ("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    yield ""
    for one in sums:
        yield f"{one['dataset']}: epsilon {_epsilon(one['epsilon'], one['unit'])}; " + (
            "no budget is set" if budget is None else f"budget {budget:g}"
        )


def _epsilon(epsilon: float | None, unit: str | None) -> str:
    if epsilon is None:
        return "none is promised"
    return f"{epsilon:g}" + (f" a {unit}" if unit else "")


COMMAND = Command(Options, run)
