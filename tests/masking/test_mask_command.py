import io
import json
import sys
from pathlib import Path

import pytest

from tasks.cli import main
from tasks.corpora.sidecar import read_sidecar

TEXT = "We met Xavier's cousin, Zoltan, at 5pm.\n\nNothing to see here!\nA literal [MASK] and [PERSON].\n"
MASKED = "We met [MASK]'s [MASK], [MASK], at [MASK].\n\nNothing to see here!\nA literal [[MASK]] and [\\PERSON].\n"


def mask(*arguments):
    return main(["mask", *map(str, arguments)])


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_all_outputs(tmp_path, text):
    masked, sidecar, kept, report = (tmp_path / name for name in ("masked", "sidecar", "kept", "report.json"))
    (tmp_path / "list.txt").write_text("we met at nothing to see here a and person literal\n".replace(" ", "\n"))
    arguments = ["--technique", "allow_list", "--set", f"path={tmp_path}/list.txt", "--input", text, "--output", masked]
    arguments += ["--sidecar", sidecar, "--allowed-words", kept, "--report", report, "--cell", "dataset=chat"]
    assert mask(*arguments) == 0
    assert masked.read_text(encoding="utf-8") == MASKED
    originals = [[span.original for span in spans] for spans in read_sidecar(sidecar)]
    assert originals == [["Xavier", "cousin", "Zoltan", "5pm"], [], [], ["MASK"]]
    assert kept.read_text().splitlines() == sorted("we met at nothing to see here a and person literal".split())
    assert masked.stat().st_mode & 0o777 == sidecar.stat().st_mode & 0o777 == 0o600
    document = json.loads(report.read_text())
    measured = document["measured"]
    assert document["cell"]["dataset"] == "chat"
    assert document["cell"]["technique"] == "allow_list"
    assert (measured["lines"], measured["empty_lines"], measured["masked_lines"]) == (4, 1, 2)
    assert (measured["words"], measured["masked_words"], measured["allowed_words"]) == (16, 5, 11)
    assert measured["masked_fraction"] == 5 / 16
    assert measured["masked_by_class"] == {"MASK": 4, "NUMBER": 1}
    assert "Xavier" not in report.read_text()


def test_standard_streams(monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Ask Zoltan, ok?")))
    assert mask("--technique", "allow_list", "--set", "markers.style=class", "--input", "-", "--output", "-") == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"Ask [MASK], ok?\n"
    assert b"1 of 3 words masked (33.3%)" in captured.err


def test_entity_tagger(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("Angela Merkel lives in Berlin.\nI like tea.\n")
    arguments = ["--technique", "entity_tagger", "--set", "markers.style=class", "--input", tmp_path / "text.txt"]
    files = {"output": "masked.txt", "allowed-words": "kept.txt", "report": "report.json"}
    for option, name in files.items():
        arguments += [f"--{option}", tmp_path / name]
    assert mask(*arguments) == 0
    assert (tmp_path / "masked.txt").read_text() == "[PERSON] [PERSON] lives in [LOCATION].\nI like tea.\n"
    assert (tmp_path / "kept.txt").read_text() == ""
    measured = json.loads((tmp_path / "report.json").read_text())["measured"]
    assert (measured["entity_types"]["GPE"], measured["entities"]["PERSON"]) == ("LOCATION", 1)
    assert measured["allowed_words"] is None
    # The entity types in force are printed first.
    first = capsys.readouterr().err.splitlines()[0]
    assert "FAC, GPE, LOC -> LOCATION" in first
    assert "unmasked: LANGUAGE, ORDINAL, PERCENT, QUANTITY" in first


def test_markers_come_from_params_and_options_go_before_them(tmp_path, text):
    parameters = Path("params.yaml").read_text(encoding="utf-8")
    changed = parameters.replace(
        "allow_list: {kind: allow_list}", "allow_list: {kind: allow_list, markers: {style: class, merge: true}}"
    )
    assert changed != parameters
    (tmp_path / "params.yaml").write_text(changed, encoding="utf-8")
    (tmp_path / "text.txt").write_text("Ask Zoltan Kovacs Zsolt 5 7, 9 ok\n", encoding="utf-8")
    arguments = ["--technique", "allow_list", "--params", tmp_path / "params.yaml", "--input", text]
    arguments += ["--output", tmp_path / "masked.txt", "--sidecar", tmp_path / "sidecar.jsonl"]
    arguments += ["--report", tmp_path / "report.json"]
    assert mask(*arguments) == 0
    assert (tmp_path / "masked.txt").read_text() == "Ask [MASK] [NUMBER], [NUMBER] ok\n"
    ((spans),) = read_sidecar(tmp_path / "sidecar.jsonl")
    assert [span.original for span in spans] == ["Zoltan", "Kovacs", "Zsolt", "5", "7", "9"]
    assert [span.marker for span in spans] == [0, 0, 0, 1, 1, 2]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["measured"]["masked_words"] == 6
    assert report["measured"]["masked_fraction"] == 6 / 8
    assert report["parameters"]["markers"] == {"style": "class", "merge": True}
    assert mask(*arguments, "--set", "markers={style: mask, merge: false}") == 0
    assert (tmp_path / "masked.txt").read_text() == "Ask [MASK] [MASK] [MASK] [MASK] [MASK], [MASK] ok\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["parameters"]["markers"] == {"style": "mask", "merge": False}


def test_a_combination_from_params_and_from_options(tmp_path, text):
    parameters = Path("params.yaml").read_text(encoding="utf-8")
    section = (
        "masking:\n  both:\n    kind: combination\n    rule: intersection\n    markers: {style: class}\n"
        "    parts: [{kind: vocabulary_threshold, allowed_words: 2, path: WORDS}, {kind: entity_tagger}]\n"
    ).replace("WORDS", str(tmp_path / "words.txt"))
    (tmp_path / "params.yaml").write_text(parameters.replace("masking:\n", section, 1), encoding="utf-8")
    (tmp_path / "words.txt").write_text("berlin\nin\n")
    text.write_text("Angela Merkel lives in Berlin.\n")
    arguments = ["--params", tmp_path / "params.yaml", "--technique", "both"]
    arguments += ["--input", text, "--output", tmp_path / "masked.txt", "--report", tmp_path / "report.json"]
    arguments += ["--allowed-words", tmp_path / "kept.txt"]
    assert mask(*arguments) == 0
    assert (tmp_path / "masked.txt").read_text() == "[PERSON] [PERSON] lives in Berlin.\n"
    assert (tmp_path / "kept.txt").read_text() == "berlin\nin\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert [sorted(part) for part in report["parameters"]["parts"]] == [
        ["allowed_words", "kind", "markers", "path", "vocabulary_size"],
        ["kind", "labels", "markers", "spelled_numbers", "tagger"],
    ]
    assert report["measured"]["parts"][1]["entity_types"]["GPE"] == "LOCATION"
    assert str(tmp_path / "words.txt") in report["inputs"]
    assert mask(*arguments, "--set", "rule=union", "--set", "markers.style=mask") == 0
    assert (tmp_path / "masked.txt").read_text() == "[MASK] [MASK] [MASK] in [MASK].\n"
    assert (tmp_path / "kept.txt").read_text() == ""
