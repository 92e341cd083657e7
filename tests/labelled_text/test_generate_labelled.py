import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasks.cli import main
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled, write_labelled
from tasks.labelled_text.settings import LABEL_CLASSES, LabelledTextSettings
from tasks.made_up.made_up import MadeUp

PARTS = ("train", "valid", "test")
SENTENCES = 3000


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    options = ["--set", f"sentences={SENTENCES}", "--set", "seed=3", "--report", str(folder / "report.json")]
    assert main(["generate-labelled", "--output", str(folder / "out"), *options]) == 0
    lines = {part: list(read_labelled(folder / "out" / f"{part}.jsonl")) for part in PARTS}
    return lines, json.loads((folder / "report.json").read_text())["measured"]


def test_parts_have_their_sizes_and_known_labels(generated):
    lines, measured = generated
    assert {part: len(lines[part]) for part in PARTS} == {"train": 2400, "valid": 300, "test": 300}
    assert measured["sentences_by_part"] == {"train": 2400, "valid": 300, "test": 300}
    labels = [span.label for part in PARTS for line in lines[part] for span in line.spans]
    assert set(labels) == set(LABEL_CLASSES)
    assert measured["spans_by_label"] == {label: labels.count(label) for label in sorted(set(labels))}


def test_no_template_is_in_more_than_one_part(generated):
    lines, _ = generated
    ids = {part: {name for line in lines[part] for name in line.template.split("+")} for part in PARTS}
    assert all(ids.values())
    assert not ids["train"] & ids["valid"]
    assert not ids["train"] & ids["test"]
    assert not ids["valid"] & ids["test"]


def test_names_and_cities_of_the_test_part_are_new():
    train, test = MadeUp("train"), MadeUp("test")
    pairs = [(getattr(train, name)[key], getattr(test, name)[key]) for name in ("first", "last") for key in train.first]
    for pool, other in [
        *pairs,
        *((train.listed(name), test.listed(name)) for name in ("cities", "companies", "regions", "works")),
    ]:
        # Pools of a few names only are not divided.
        assert set(other.values) == set(pool.values) or not set(other.values) & set(pool.values)
    cities = len(train.listed("cities").values), len(test.listed("cities").values)
    assert cities[1] / sum(cities) == pytest.approx(0.15, abs=0.02)


def test_share_of_lines_without_private_values(generated):
    lines, measured = generated
    without = sum(not line.spans for part in PARTS for line in lines[part])
    assert without == measured["sentences_without_span"]
    # Three standard deviations of a share of 0.3 of 3,000 lines are 0.025.
    assert without / SENTENCES == pytest.approx(0.3, abs=0.026)


def test_share_of_lower_cased_lines(tmp_path):
    templates = tmp_path / "capitals.txt"
    templates.write_text("".join(f"{word} {{CITY}} IS.\n" for word in "AB CD EF GH IJ KL MN OP QR ST".split()))
    run(
        tmp_path / "out",
        "--set",
        f"templates=[{templates}]",
        "--params",
        str(params(tmp_path, valid_share=0, test_share=0)),
    )
    texts = [line.text for line in read_labelled(tmp_path / "out" / "train.jsonl")]
    assert len(texts) == 2000
    lower = sum(text == text.lower() for text in texts) / 2000
    # Three standard deviations of a share of 0.1 of 2,000 lines are 0.02.
    assert lower == pytest.approx(0.1, abs=0.02)


def params(folder, **changes):
    """The shipped parameter file with another section of labelled text."""
    document = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    document["labelled_text"] = {"sentences": 2000, **changes}
    file = folder / "params.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def run(folder, *options):
    assert main(["generate-labelled", "--output", str(folder), *options]) == 0
    return {part: (folder / f"{part}.jsonl").read_bytes() for part in PARTS}


def test_same_seed_same_bytes_in_processes_with_other_hash_seeds(tmp_path):
    made = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        subprocess.run(
            [sys.executable, "-m", "tasks.cli", "generate-labelled", "--output", str(folder), "--set", "sentences=400"],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
        )
        made.append({part: (folder / f"{part}.jsonl").read_bytes() for part in PARTS})
    assert made[0] == made[1]
    assert run(tmp_path / "other", "--set", "sentences=400", "--set", "seed=2") != made[0]


def test_a_label_can_be_left_out(tmp_path):
    run(tmp_path / "out", "--set", "sentences=500", "--set", "unlabelled=[USER_NAME, PERSON]")
    labels = {span.label for line in read_labelled(tmp_path / "out/train.jsonl") for span in line.spans}
    assert labels
    assert not labels & {"USER_NAME", "PERSON"}


def test_learned_text_is_private_and_holds_no_labelled_value(tmp_path):
    gold = tmp_path / "gold.jsonl"
    text = "Zaphodine waved from Quuxville"
    spans = (LabelledSpan(0, 9, "PER"), LabelledSpan(21, 30, "ORT"))
    write_labelled(gold, [LabelledLine(text, spans, 1)])
    options = [
        "--set",
        "templates=[]",
        "--set",
        f"learn_from=[{{source: {gold}, labels: {{ORT: CITY}}}}]",
        "--set",
        "sentences=20",
    ]
    settings = params(tmp_path, valid_share=0.0, test_share=0.0)
    learned, report = tmp_path / "out/learned.txt", tmp_path / "report.json"
    made = run(tmp_path / "out", *options, "--params", str(settings), "--report", str(report))
    assert learned.read_text() == "{FIRST_NAME|words=1} waved from {CITY|words=1}\n"
    assert (tmp_path / "out/train.jsonl").stat().st_mode & 0o777 == 0o600
    everything = made["train"] + learned.read_bytes() + report.read_bytes()
    assert b"waved" in made["train"].lower()
    assert b"waved" not in report.read_bytes()
    assert b"zaphodine" not in everything.lower()
    assert b"quuxville" not in everything.lower()


def test_settings_refuse_what_leaves_nothing_to_train_on():
    with pytest.raises(ValueError, match="leave nothing to train on"):
        LabelledTextSettings(valid_share=0.5, test_share=0.5)
    with pytest.raises(ValueError, match="more than 1"):
        LabelledTextSettings(lower_case_share=0.9, upper_case_share=0.2)
