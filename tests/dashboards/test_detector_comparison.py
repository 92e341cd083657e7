"""'palimpsest compare-detectors': tables and plot in the page of the user."""

import json
import re
from pathlib import Path

import pytest

from dashboards.compare_detectors_command import BEGIN, END, PAGE
from tasks.cli import main


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page, in the current folder; its text stands around the place of the tables."""
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "results/reports"):
        Path(folder).mkdir(parents=True)
    Path(PAGE).write_text(f"# Mine\n\n{BEGIN}\nold tables\n{END}\n\nPick the first.\n", encoding="utf-8")
    return Path(PAGE)


def test_the_command_on_real_reports_leaves_the_pages_own_text(page, capsys):
    spans = [{"start": 0, "end": 3, "label": "PER"}]
    gold = (json.dumps({"text": text, "spans": spans}) for text in ("Ann met the Quux", "Bob ate"))
    Path("gold.jsonl").write_text("\n".join(gold))
    Path("few.txt").write_text("the\n")
    for name, options in (("shipped", ""), ("own", " --set technique.path=few.txt")):
        options += f" --technique allow_list --gold gold.jsonl --report results/reports/{name}.json"
        assert main(["evaluate-masking", *options.split()]) == 0
    for _ in range(2):
        assert main(["compare-detectors"]) == 0
        text = page.read_text(encoding="utf-8")
        before, tables, after = re.split(f"{BEGIN}|{END}", text)
        assert (before, after) == ("# Mine\n\n", "\n\nPick the first.\n")
        assert "old tables" not in tables
        assert tables.count("## Detectors") == 1
    for shown in ("](detectors.svg)", "| allow list (own) |", "| allow list (shipped) |"):
        assert shown in text
    drawing = page.with_suffix(".svg").read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)", drawing)
    assert not any(word in text + drawing for word in ("Ann", "Quux", "Bob"))
    other = Path("results/reports/own.json")
    other.write_text(other.read_text().replace("|version=1", "|version=0"))
    assert main(["compare-detectors"]) == 1
    assert "different protocols" in capsys.readouterr().err
    other.unlink()
    page.write_text("# Mine\n")
    assert main(["compare-detectors"]) == 1
    assert "has no place for the tables" in capsys.readouterr().err
    assert page.read_text() == "# Mine\n"
