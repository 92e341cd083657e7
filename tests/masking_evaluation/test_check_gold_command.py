import json

from tasks.cli import main

LINES = """{"text": "Tom is here", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
{"text": "nobody", "spans": []}
{"text": "Rex and Ulm", "spans": [{"start": 0, "end": 3, "label": "PET"}, {"start": 8, "end": 11, "label": "LOC"}]}
"""


def test_labels_are_counted_and_the_file_is_copied_for_its_owner_alone(tmp_path, capsys):
    gold, copy, report = tmp_path / "gold.jsonl", tmp_path / "private" / "gold.jsonl", tmp_path / "report.json"
    gold.write_text(LINES)
    assert main(["check-gold", "--set", f"source={gold}", "--output", str(copy), "--report", str(report)]) == 0
    assert [json.loads(line) for line in copy.read_text().splitlines()] == list(map(json.loads, LINES.splitlines()))
    assert copy.stat().st_mode & 0o777 == 0o600
    measured = json.loads(report.read_text())["measured"]
    assert (measured["lines"], measured["lines_with_spans"], measured["spans"]) == (3, 2, 3)
    assert measured["spans_by_label"] == {"LOC": 1, "PER": 1, "PET": 1}
    assert measured["unmapped_labels"] == {"PET": 1}
    assert "no class" in capsys.readouterr().err
    assert "Rex" not in report.read_text()
