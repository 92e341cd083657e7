"""'palimpsest compare-detectors': tables and plot, from reports with known numbers and from real ones."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from dashboards.compare_detectors_command import BEGIN, END, PAGE
from tasks.cli import main

NUMBERS = {
    "token_in_scope": {"f2": 0.75}, "span": {"f2": 0.5}, "document": {"recall": 1.0}, "threads": 2, "lines": 10,
    "lines_without_private_words": {"masked_share": None}, "files": [{"split": "dev"}], "words": 1000,
    "peak_memory_bytes": 41_400_000, "model_bytes": 39_000, "private_words": 77, "confidence": 0.95,
}  # fmt: skip


def evaluated(name, technique, gold_set, f2, speed, interval=(0.4, 0.6), signature="masking|version=1"):
    """Write a report of the evaluation of masking."""
    token = {"f2": f2, "f2_ci": interval, "recall": 0.25, "precision": 0.125}
    measured = {"technique": technique, "gold_set": gold_set, "words_per_second": speed, "token": token}
    report = {"version": 1, "stage": "evaluate_masking", "cell": {"technique": technique}, "parameters": {}}
    report |= {"environment": {"processor": "Abacus 3000"}, "inputs": {}, "outputs": {}}
    path = Path("results/reports", f"{name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report | {"measured": NUMBERS | measured | {"signature": signature}}))


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page, in the current folder; its text stands around the place of the tables."""
    monkeypatch.chdir(tmp_path)
    for folder in ("docs", "results/reports"):
        Path(folder).mkdir(parents=True)
    Path(PAGE).write_text(f"# Mine\n\n{BEGIN}\nold tables\n{END}\n\nPick the first.\n", encoding="utf-8")
    return Path(PAGE)


def test_each_gold_set_has_a_table_with_the_best_first_and_a_panel_of_the_plot(page, capsys):
    assert main(["compare-detectors"]) == 1
    assert "hold no evaluation of masking" in capsys.readouterr().err
    evaluated("mail/list", "allow_list", "mail", 0.5, 123_456)
    evaluated("mail/spacy", "spacy", "mail", 0.55, 9_876)
    evaluated("chat/spacy", "spacy", "chat", None, 9_000, None)
    assert main(["compare-detectors"]) == 0
    text = page.read_text(encoding="utf-8")
    assert re.findall("^### (.*)$", text, re.MULTILINE) == ["chat", "mail"]
    chat, mail = ([row for row in part.splitlines() if row.startswith("|")] for part in text.split("### mail"))
    best = "| spacy | 0.550 [0.400, 0.600] | 0.750 | 0.250 | 0.125 | 0.500 | 1.000 | – | 9,880 | 41 MB | 39 kB |"
    assert mail[2] == best
    assert mail[3].startswith("| allow list | 0.500 [0.400, 0.600] |")
    assert chat[2].startswith("| spacy | – |")
    assert "10 lines, 1,000 words, 77 of them private (split: dev)." in text
    assert "`masking|version=1`. Machine: Abacus 3000, 2 threads." in text
    drawing = page.with_suffix(".svg").read_text(encoding="utf-8")
    plot = ElementTree.fromstring(drawing)
    said = plot.get("aria-label")
    assert "mail: spacy 9876, 0.550 [0.400, 0.600]; allow list 123,456, 0.500 [0.400, 0.600]." in said
    assert "currentColor" in drawing
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)", drawing)
    evaluated("mail/list", "allow_list", "mail", 0.5, 123_456, signature="masking|version=0")
    assert main(["compare-detectors"]) == 1
    assert "different protocols" in capsys.readouterr().err


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
    assert not any(word in text for word in ("Ann", "Quux", "Bob"))
    page.write_text("# Mine\n")
    assert main(["compare-detectors"]) == 1
    assert "has no place for the tables" in capsys.readouterr().err
    assert page.read_text() == "# Mine\n"
