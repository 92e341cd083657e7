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


def test_bad_lines_are_all_named_without_their_text_and_so_is_a_missing_file(tmp_path, capsys):
    bad = [f'{{"text": "Zoe", "spans": [{{"start": {start}, "end": {end}, "label": "PER"}}]}}' for start, end in
           ((0, 4), (2, 1))]  # fmt: skip
    (tmp_path / "gold.jsonl").write_text(LINES + "\n".join([*bad, "Zoe"]))
    assert main(["check-gold", "--set", f"source={tmp_path}/gold.jsonl"]) == 1
    error = capsys.readouterr().err
    assert all(f"line {number}" in error for number in (4, 5, 6))
    assert "Zoe" not in error
    assert main(["check-gold"]) == 1
    assert "source: is missing" in capsys.readouterr().err
