"""``palimpsest generate-labelled``: parts, labels, shares and seeds of the text, and what is learned from a corpus."""

import os
import subprocess
import sys

import pytest

from tasks.cli import main
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled, write_labelled
from tasks.labelled_text.settings import LABEL_CLASSES
from tasks.made_up.made_up import MadeUp
from tasks.records.stage_report import read_report

PARTS = ("train", "valid", "test")
SENTENCES = 3000
UNDIVIDED = ["valid_share=0", "test_share=0"]


def run(folder, *settings):
    """The lines of each part, and what was measured."""
    given = ["--output", str(folder / "out"), "--report", str(folder / "report.json")]
    assert main(["generate-labelled", *given, *(f"--set={value}" for value in settings)]) == 0
    files = {part: folder / "out" / f"{part}.jsonl" for part in PARTS}
    lines = {part: list(read_labelled(file)) for part, file in files.items() if file.stat().st_size}
    return lines, read_report(folder / "report.json")["measured"]


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    return run(tmp_path_factory.mktemp("generated"), f"sentences={SENTENCES}", "seed=3")


def test_parts_have_their_sizes_and_templates_known_labels_and_a_share_of_lines_without_any(generated):
    lines, measured = generated
    sizes = {"train": 2400, "valid": 300, "test": 300}
    assert {part: len(lines[part]) for part in PARTS} == measured["sentences_by_part"] == sizes
    labels = [span.label for part in PARTS for line in lines[part] for span in line.spans]
    assert measured["spans_by_label"] == {label: labels.count(label) for label in sorted(LABEL_CLASSES)}
    without = sum(not line.spans for part in PARTS for line in lines[part])
    # Three standard deviations of a share of 0.3 of 3,000 lines are 0.025.
    assert without / SENTENCES == pytest.approx(0.3, abs=0.026)
    train, valid, test = ({name for line in lines[part] for name in line.template.split("+")} for part in PARTS)
    assert all((train, valid, test))
    assert not train & valid | train & test | valid & test


def test_names_and_cities_of_the_test_part_are_new():
    train, test = MadeUp("train"), MadeUp("test")
    pairs = [(getattr(train, name)[key], getattr(test, name)[key]) for name in ("first", "last") for key in train.first]
    lists = ("cities", "companies", "regions", "works")
    for pool, other in [*pairs, *((train.listed(name), test.listed(name)) for name in lists)]:
        # Pools of a few names only are not divided.
        assert set(other.values) == set(pool.values) or not set(other.values) & set(pool.values)
    cities = len(train.listed("cities").values), len(test.listed("cities").values)
    assert cities[1] / sum(cities) == pytest.approx(0.15, abs=0.02)


def test_same_seed_same_bytes_in_processes_with_other_hash_seeds(tmp_path):
    given = ["sentences=200", "unlabelled=[USER_NAME, PERSON]"]
    lines, _ = run(tmp_path, *given)
    assert not {span.label for line in lines["train"] for span in line.spans} & {"USER_NAME", "PERSON"}
    command = [sys.executable, "-m", "tasks.cli", "generate-labelled", "--output", "other"]
    command += map("--set={}".format, given)
    subprocess.run(command, check=True, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": "5"}, capture_output=True)
    for part in PARTS:
        assert (tmp_path / "out" / f"{part}.jsonl").read_bytes() == (tmp_path / "other" / f"{part}.jsonl").read_bytes()
    assert run(tmp_path, *given, "seed=2")[0] != lines


def test_learned_text_is_private_and_holds_no_labelled_value(tmp_path):
    gold, out = tmp_path / "gold.jsonl", tmp_path / "out"
    spans = (LabelledSpan(0, 9, "PER"), LabelledSpan(21, 30, "ORT"))
    write_labelled(gold, [LabelledLine("Zaphodine waved from Quuxville", spans, 1)])
    learn = f"learn_from=[{{source: {gold}, labels: {{ORT: CITY}}}}]"
    run(tmp_path, "templates=[]", learn, "sentences=20", *UNDIVIDED)
    learned, train = ((out / name).read_text() for name in ("learned.txt", "train.jsonl"))
    assert learned == "{FIRST_NAME|words=1} waved from {CITY|words=1}\n"
    assert (out / "train.jsonl").stat().st_mode & 0o777 == 0o600
    report = (tmp_path / "report.json").read_text()
    assert "waved" in train.lower()
    assert "waved" not in report
    assert not any(word in (train + learned + report).lower() for word in ("zaphodine", "quuxville"))
