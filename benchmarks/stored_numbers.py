"""Numbers of a measurement in ``benchmarks/results/NAME.json``, and their table in a page of the documentation.

The page has the table between ``<!-- table: NAME -->`` and ``<!-- end of table: NAME -->``.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dashboards.compare_detectors_command import between
from tasks.records.stage_report import code_state, environment, write_json

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def stamp() -> dict[str, Any]:
    """Commit, date and machine of a run."""
    code = code_state()
    machine = {key: environment()[key] for key in ("processor", "cores", "gpu", "system", "python")}
    commit = f"{str(code['commit'])[:12]}{' with changes' if code['dirty'] else ''}"
    return {"commit": commit, "date": datetime.now(UTC).date().isoformat(), "machine": machine}


def publish(name: str, page: str, measured: Mapping[str, Any], table: Callable[[Mapping[str, Any]], str]) -> None:
    """Store numbers with four decimals, and write their table into a page."""
    results = {**stamp(), **rounded(measured)}
    write_json(RESULTS / f"{name}.json", results)
    path = ROOT / page
    path.write_text(with_table(path.read_text(encoding="utf-8"), name, table(results)), encoding="utf-8")


def with_table(page: str, name: str, table: str) -> str:
    """A page with a table between its marks; ``ValueError`` if the marks are missing."""
    begin, end = f"<!-- table: {name} -->", f"<!-- end of table: {name} -->"
    found = between(page, begin, end, table)
    if found is None:
        raise ValueError(f"The page needs the lines {begin!r} and {end!r} once each.")
    return found


def rounded(figures: Any) -> Any:
    """Figures with four decimals."""
    if isinstance(figures, Mapping):
        return {name: rounded(one) for name, one in figures.items()}
    if isinstance(figures, list | tuple):
        return [rounded(one) for one in figures]
    return round(figures, 4) if isinstance(figures, float) else figures


def ran(results: Mapping[str, Any]) -> str:
    """The line below a table: date, commit and processor."""
    return f"Run of {results['date']}, commit {results['commit']}, {results['machine']['processor']}."
