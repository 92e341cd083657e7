"""The commands that check a gold set and evaluate masking on it, the classes of labels, and sizes of models."""

import json
from pathlib import Path

import pytest

from tasks.cli import main
from tasks.corpora.masked_text import CLASSES, MASK
from tasks.labelled_text.settings import LABEL_CLASSES as CLASSES_OF_GENERATED_TEXT
from tasks.masking.taggers.entity_classes import ENTITY_CLASSES
from tasks.masking_evaluation.label_classes import LABEL_CLASSES, LabelMapping

KEPT = "we went to the and with role of my is"
GOLD = [
    # "Ann" and "Quux" masked; "harbour" is masked too, and is not private.
    ("Ann went to the harbour of Quux", [(0, 3, "PER"), (27, 31, "LOC")]),
    # The list keeps "my", so half of the name is missed; 77 is a NUMBER by the list.
    ("my Zed and 77", [(0, 6, "nickname")]),
    ("we went to the role", []),
    ("with 12 harbour", [(5, 7, "AGE")]),
]


def gold_file(path, lines=GOLD, **further):
    with open(path, "w", encoding="utf-8") as stream:
        for text, spans in lines:
            named = [dict(zip(("start", "end", "label"), span, strict=True)) for span in spans]
            stream.write(json.dumps({"text": text, "spans": named, **further}) + "\n")
    return path


@pytest.fixture
def gold(tmp_path):
    (tmp_path / "kept.txt").write_text(KEPT.replace(" ", "\n"))
    return gold_file(tmp_path / "mail_dev.jsonl")


@pytest.fixture
def evaluate(tmp_path, gold, capsys):
    def run(*arguments, status=0, base=("--technique", "allow_list")):
        base = [*base, "--set", f"technique.path={tmp_path / 'kept.txt'}"]
        assert main(["evaluate-masking", *base, *map(str, arguments)]) == status
        captured = capsys.readouterr()
        numbers = "-" in arguments and status == 0
        return (json.loads(captured.out)["measured"] if numbers else captured.out), captured.err

    return run


def test_all_levels_counted_by_hand(evaluate, gold, tmp_path):
    (tmp_path / "clean.txt").write_text("we went to the harbour\nthe role\n\nmy harbour\n")
    found, _ = evaluate("--gold", gold, "--clean", tmp_path / "clean.txt", "--report", "-")
    # Private: Ann Quux | my Zed | | 12. Masked: Ann harbour Quux | Zed 77 | | 12 harbour.
    assert (found["token"]["gold_words"], found["token"]["masked_words"], found["token"]["right_words"]) == (5, 7, 4)
    assert found["token"]["f2_ci"][0] <= found["token"]["f2"] <= found["token"]["f2_ci"][1]
    # Spans whole: Ann, Quux, 12. Runs: Ann | harbour | Quux | Zed | 77 | "12 harbour".
    assert (found["span"]["recall"], found["span"]["precision"]) == (3 / 4, 3 / 6)
    assert found["entity"]["recall"] == 3 / 4
    # Lines 1 and 4 are safe, 2 is not; none of the three masked lines is free of words too many.
    assert (found["document"]["recall"], found["document"]["precision"]) == (2 / 3, 0.0)
    assert found["per_type"]["nickname"]["token_recall"] == 0.5
    assert found["lines_without_private_words"] == {"masked_share": 0.0, "lines": 1, "words": 5, "masked_words": 0}
    assert (found["words"], found["masked_fraction"]) == (19, 7 / 19)
    assert found["unmapped_labels"] == {"nickname": 1}
    assert found["clean_text"] == {"masked_share": 2 / 9, "lines": 4, "words": 9, "masked_words": 2}
    assert found["model_bytes"] == len(KEPT)
    assert found["signature"].startswith("masking|unit=word|")


def test_several_files_are_pooled_and_documents_are_known_by_id(evaluate, gold, tmp_path):
    second = gold_file(tmp_path / "second.jsonl", [("Ann is my Bob", [(0, 3, "PER"), (10, 13, "PER")])])
    found, _ = evaluate("--gold", gold, "--gold", second, "--report", "-")
    assert (found["token"]["gold_words"], found["token"]["right_words"]) == (7, 6)
    assert [file["name"] for file in found["files"]] == ["mail_dev", "second"]
    assert found["document"]["recall"] == 3 / 4
    one = gold_file(tmp_path / "one.jsonl", GOLD, document="letter 1")
    found, _ = evaluate("--gold", one, "--report", "-")
    assert found["document"]["recall"] == 0.0
    assert found["token"]["f2_ci"] is None


def test_errors_go_to_a_private_file_and_nothing_else_holds_text(evaluate, gold, tmp_path):
    report = tmp_path / "report.json"
    output, error = evaluate("--gold", gold, "--errors", tmp_path / "errors.jsonl", "--report", report)
    errors = [json.loads(line) for line in (tmp_path / "errors.jsonl").read_text().splitlines()]
    assert [(record["line"], record["kind"], record["word"]) for record in errors] == [
        (1, "over-masked", "harbour"),
        (2, "missed", "my"),
        (2, "over-masked", "77"),
        (4, "over-masked", "harbour"),
    ]
    assert errors[1]["context"] == "[[my]] Zed and 77"
    assert errors[1]["label"] == "nickname"
    assert (tmp_path / "errors.jsonl").stat().st_mode & 0o777 == 0o600
    document = json.loads(report.read_text())
    assert document["cell"]["technique"] == "allow_list"
    assert "labels without a class: 'nickname' (1 spans)" in document["warnings"][0]
    for said in (output, error, report.read_text()):
        assert not any(word in said for word in ("Ann", "Quux", "Zed", "harbour"))


def test_the_stage_reads_gold_set_and_technique_from_the_parameters(evaluate, gold, tmp_path):
    parameters = Path("params.yaml").read_text(encoding="utf-8")
    said = f"    named: {{source: '{gold}', labels: {{nickname: null, PER: GROUP}}}}\n"
    parameters = parameters.replace("  gold_sets:\n", f"  gold_sets:\n{said}")
    (tmp_path / "params.yaml").write_text(parameters, encoding="utf-8")
    base = ("--params", str(tmp_path / "params.yaml"), "--technique", "allow_list")
    found, _ = evaluate("--gold-set", "named", "--report", "-", base=base)
    assert (found["gold_set"], found["token"]["recall"]) == ("named", 1.0)
    assert found["ignored_spans"] == {"nickname": 1}
    assert found["per_type"]["PER"]["class"] == "GROUP"
    _, error = evaluate("--gold-set", "name", "--report", "-", base=base, status=1)
    assert "--gold-set 'name' is no key of 'masking_evaluation.gold_sets'" in error
    assert "(did you mean 'named'?)" in error


def test_labels_are_counted_and_the_file_is_copied_for_its_owner_alone(gold, tmp_path, capsys):
    copy, report = tmp_path / "private" / "gold.jsonl", tmp_path / "report.json"
    assert main(["check-gold", "--set", f"source={gold}", "--output", str(copy), "--report", str(report)]) == 0
    assert list(map(json.loads, copy.read_text().splitlines())) == list(map(json.loads, gold.read_text().splitlines()))
    assert copy.stat().st_mode & 0o777 == 0o600
    measured = json.loads(report.read_text())["measured"]
    assert (measured["lines"], measured["lines_with_spans"], measured["spans"]) == (4, 3, 4)
    assert measured["spans_by_label"] == {"AGE": 1, "LOC": 1, "PER": 1, "nickname": 1}
    assert measured["unmapped_labels"] == {"nickname": 1}
    assert "no class" in capsys.readouterr().err
    assert "Quux" not in report.read_text()


OF_CORPORA = {
    "PER": "PERSON", "person": "PERSON", "location": "LOCATION", "corporation": "ORGANISATION",
    "group": "ORGANISATION", "creative-work": "WORK", "product": "MISCELLANEOUS", "nothing": None,
}  # fmt: skip
"""CoNLL 2003 and WNUT 2017."""


def test_a_label_has_the_same_class_wherever_it_comes_from():
    mapping = LabelMapping({})
    for said in (OF_CORPORA, ENTITY_CLASSES, CLASSES_OF_GENERATED_TEXT):
        known = {label: name for label, name in said.items() if name is not None or label == "nothing"}
        assert {label: mapping.class_of(label) for label in known} == known
    assert set(LABEL_CLASSES.values()) <= set(CLASSES) - {MASK}
