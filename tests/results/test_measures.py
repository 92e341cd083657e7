"""A measure of a stage that is there: what the stage writes, and one row of the table. Everything else follows."""

import sys
from textwrap import dedent

import pytest
from handmade_reports import change, rows_of

from tasks.cli import main
from tasks.errors import ParameterError
from tasks.results.measures import ENTRY_POINTS, measures

TITLE = "Fills that a line has twice, %"
ROW = f"""
    from tasks.results.measure import Measure

    repeated = Measure(
        name="repeated_fills",
        title="{TITLE}",
        step="fill",
        interval="repeated_fills_ci",
        share=True,
        better="lower",
    )
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with measures, for as long as the test runs."""

    def install(module: str) -> None:
        information = tmp_path / "site-packages" / "outside-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text("Name: outside\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nx = outside:repeated\n")
        (information.parent / "outside.py").write_text(dedent(module))
        monkeypatch.syspath_prepend(information.parent)
        monkeypatch.delitem(sys.modules, "outside", raising=False)
        measures.cache_clear()

    yield install
    measures.cache_clear()


def test_a_measure_of_another_package_is_in_every_view(tracked, install):
    install(ROW)
    # As a changed stage would: each fill's report has a share with its interval.
    for path in (tracked / "results" / "reports" / "fill").rglob("*.json"):
        change(path, lambda report: report["measured"].update(repeated_fills=0.25, repeated_fills_ci=[0.2, 0.3125]))
    for command in (["summarise"], ["report"], ["publish"]):
        assert main(command) == 0
    results = tracked / "results"
    shares = {row["method"]: (row["repeated_fills"], row["repeated_fills_ci"]) for row in rows_of()}
    none = dict.fromkeys(("pretrained", "oracle", "baseline1"), (None, None))
    assert shares == {**none, "top_k": (0.25, [0.2, 0.3125])}
    table = (results / "summary.md").read_text(encoding="utf-8").partition(f"### {TITLE}")[2].partition("###")[0]
    assert "| Top-K | 25.0 [20.0, 31.2] |" in table
    assert "| Baseline1 | – |" in table
    page = (results / "report.html").read_text(encoding="utf-8").partition(f"<caption><span>{TITLE}</span>")[2]
    assert '25.0 <span class="interval-text">20.0–31.2<' in page.partition("</table>")[0]


@pytest.mark.parametrize("module", ["repeated = [3]", ROW.replace('"fill"', '"fil"')])
def test_what_is_no_new_measure_is_refused(install, module):
    install(module)
    with pytest.raises(ParameterError, match=r"entry point 'x' of 'palimpsest\.measures' \(outside:repeated\)"):
        measures()
