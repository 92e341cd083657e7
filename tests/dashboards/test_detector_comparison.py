"""Tables and plot of detectors, from handmade reports with known numbers and from real ones."""

import copy
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from dashboards.compare_detectors_command import BEGIN, END
from dashboards.detectors import detector_plot, detector_results, detector_table
from tasks.cli import main
from tasks.errors import CorpusError

SVG = "{http://www.w3.org/2000/svg}"
SPACY = {"kind": "entity_tagger", "tagger": {"kind": "spacy", "model": "some_model"}}
LIST = {"kind": "allow_list", "path": None}


def report(technique, settings, gold_set, f2, speed, interval=(0.4, 0.6)):
    measured = {"technique": technique, "gold_set": gold_set, "words_per_second": speed, "threads": 2}
    measured["token"] = {"f2": f2, "f2_ci": interval, "recall": 0.25, "precision": 0.125}
    measured |= {"token_in_scope": {"f2": 0.75}, "span": {"f2": 0.5}, "document": {"recall": 1.0}}
    measured |= {"lines_without_private_words": {"masked_share": None}, "files": [{"split": "dev"}]}
    measured |= {"peak_memory_bytes": 41_400_000, "model_bytes": 39_000, "lines": 10, "words": 1000}
    measured |= {"private_words": 77, "confidence": 0.95, "signature": "masking|version=1"}
    known = {"stage": "evaluate_masking", "cell": {"technique": technique}, "parameters": {"technique": settings}}
    return known | {"environment": {"processor": "Abacus 3000"}, "measured": measured}


@pytest.fixture
def reports():
    return {
        "mail/list": report("allow_list", LIST, "mail", 0.5, 123_456),
        "mail/spacy": report("spacy", SPACY, "mail", 0.55, 9_876),
        "chat/spacy": report("spacy", SPACY, "chat", None, 9_000, None),
    }


def rows_of(markdown):
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in markdown.splitlines()
        if line.startswith("|")
    ]


def test_a_table_for_each_gold_set_with_the_best_first(reports):
    text = detector_table(detector_results(reports))
    assert re.findall("^### (.*)$", text, re.MULTILINE) == ["chat", "mail"]
    rows = rows_of(text.partition("### mail")[2])
    best = "spacy | 0.550 [0.400, 0.600] | 0.750 | 0.250 | 0.125 | 0.500 | 1.000 | – | 9,880 | 41 MB | 39 kB"
    assert rows[2] == best.split(" | ")
    assert rows[3][:2] == ["allow list", "0.500 [0.400, 0.600]"]
    assert "10 lines, 1,000 words, 77 of them private (split: dev)." in text
    assert "`masking|version=1`. Machine: Abacus 3000, 2 threads." in text
    assert rows_of(text.partition("### mail")[0])[2][1] == "–"


def test_two_models_of_one_technique_are_told_apart_and_two_protocols_refused(reports):
    further = reports | {"mail/large": copy.deepcopy(reports["mail/spacy"])}
    names = {result.technique for result in detector_results(further) if result.gold_set == "mail"}
    assert names == {"allow list", "spacy (spacy)", "spacy (large)"}
    reports["mail/list"]["measured"]["signature"] = "masking|version=0"
    with pytest.raises(CorpusError, match="different protocols"):
        detector_results(reports)


def test_the_plot_is_svg_that_says_its_numbers(reports):
    text = detector_plot(detector_results(reports))
    drawing = ElementTree.fromstring(text)
    said = drawing.get("aria-label")
    assert "mail: spacy 9876, 0.550 [0.400, 0.600]; allow list 123,456, 0.500 [0.400, 0.600]." in said
    labels = {each.text: float(each.get("y")) for each in drawing.iter(f"{SVG}text") if each.text in said}
    # The better one is higher; a result without F2 is not there.
    assert labels["spacy"] < labels["allow list"]
    assert "chat" not in labels
    assert "currentColor" in text
    assert "prefers-color-scheme: dark" in text.replace(":dark", ": dark")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)", text)


def test_the_command_on_real_reports_leaves_the_pages_own_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    gold = [
        {"text": text, "spans": [{"start": 0, "end": 3, "label": "PER"}]} for text in ("Ann met the Quux", "Bob ate")
    ]
    for name, lines in {
        "few.txt": ["the"],
        "gold.jsonl": map(json.dumps, gold),
    }.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    allow_list = ["--technique", "allow_list", "--report"]
    for name, options in (("shipped", []), ("own", ["--set", "technique.path=few.txt"])):
        report = f"results/reports/{name}.json"
        assert main(["evaluate-masking", *allow_list, report, "--gold", "gold.jsonl", *options]) == 0

    page = tmp_path / "docs" / "detectors.md"
    page.parent.mkdir()
    page.write_text("# Mine\n")
    assert main(["compare-detectors"]) == 1
    assert "has no place for the tables" in capsys.readouterr().err
    assert page.read_text() == "# Mine\n"
    assert not (tmp_path / "docs" / "detectors.svg").exists()

    page.write_text(f"# Mine\n\n{BEGIN}\nold tables\n{END}\n\nPick the first.\n", encoding="utf-8")
    for _ in range(2):
        assert main(["compare-detectors"]) == 0
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# Mine\n\n{BEGIN}\n")
        assert text.endswith(f"{END}\n\nPick the first.\n")
        assert "old tables" not in text
        assert text.count("## Detectors") == 1
    for shown in ("](detectors.svg)", "| allow list (own) |", "| allow list (shipped) |"):
        assert shown in text
    ElementTree.parse(tmp_path / "docs" / "detectors.svg")
    assert not any(word in text for word in ("Ann", "Quux", "Bob"))


def test_evaluations_are_needed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "reports").mkdir(parents=True)
    assert main(["compare-detectors"]) == 1
    assert "hold no evaluation of masking" in capsys.readouterr().err
