"""Anonymisers compared on invented documents: programs, alignment, measures, and what a user hands in."""

import json
import sys
from pathlib import Path

import pytest
from command_results import refusal
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.anonymisers.measures import Compared, disclosed
from tasks.anonymisers.removed_words import removed_places
from tasks.anonymisers.versions import RAW, Version
from tasks.cli import main
from tasks.persons.facts import Document
from tasks.settings.resources import ResourceSettings

TEXTS = [
    "Ada Quill lives in Ulm. She is a baker.\nHer number is 555-1234.",
    "Otto Zwick moved to Graz in 1999. He likes trains.",
    "Ida Stern flies to Rome. Her brother Max Stern does not.",
    "Nobody is here.",
]
FACTS = [{"description": "Ada Quill", "PIIs": [{"tag": "NAME", "keyword": "Ada Quill", "hardness": 1}]}]
PROGRAM = """import json, sys
for line in sys.stdin:
    text = json.loads(line)["text"]
    for name in ("Ada", "Quill", "Otto", "Zwick", "Ida", "Stern", "Max"):
        text = text.replace(name, "X")
    print(json.dumps({"text": text}))
"""


def write(path, texts, facts=()):
    records = [{"text": text, "subjects": facts if number == 0 else []} for number, text in enumerate(texts)]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return str(path)


@pytest.fixture
def raw(tmp_path):
    return write(tmp_path / "documents.jsonl", TEXTS, FACTS)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "without_names.py").write_text(PROGRAM, encoding="utf-8")
    return f"{sys.executable} {tmp_path / 'without_names.py'}"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tokenizer = causal_tokenizer(" ".join(TEXTS))
    return save(random_llama(tokenizer), tokenizer, tmp_path_factory.mktemp("model"))


def test_removed_words_are_those_without_a_partner():
    raw = "ada quill lives in ulm and ada bakes"
    for other, found in (
        ("mask mask lives in mask and mask bakes", [0, 1, 4, 6]),
        (raw, []),
        ("", list(range(8))),
        # One substitute for two words, and words that were added.
        ("someone lives oh well in ulm and ada bakes", [0, 1]),
    ):
        assert [place.original for place in removed_places(raw, other, 0)] == [raw.split()[place] for place in found]


def test_a_comparison_reads_files_techniques_and_programs(raw, program, model, tmp_path, capsys):
    same = write(tmp_path / "unchanged.jsonl", TEXTS)
    report = tmp_path / "report.json"
    command = ["compare-anonymisers", "--documents", raw, "--texts", same, "--techniques", "crf", "--model", model]
    assert main([*command, "--programs", program, "--seed", "3", "--report", str(report)]) == 0
    shown = capsys.readouterr().out
    found = json.loads(report.read_text())["measured"]["by_version"]
    assert list(found) == [RAW, "unchanged", "crf", Path(sys.executable).name]
    for name in (RAW, "unchanged"):
        assert found[name]["persons"]["verbatim"]["cpr"] == 0
        assert (found[name]["recovered"]["removed"], found[name]["recovered"]["recovered"]) == (0, None)
        assert found[name]["worth"]["times_raw"] == found[name]["fluency"]["times_raw"] == 1
        assert found[name]["cost"] == {}
    ours, theirs = found["crf"], found[Path(sys.executable).name]
    assert (ours["persons"]["verbatim"]["cpr"], theirs["persons"]["verbatim"]["cpr"]) == (1, 1)
    assert theirs["recovered"]["removed"] == pytest.approx(8 / 37)
    assert ours["recovered"]["removed_places"] == 37
    assert theirs["worth"]["times_raw"] != 1
    assert min(each["cost"]["seconds_per_1000_words"] for each in (ours, theirs)) > 0
    assert shown.startswith("| version | CPR, %, verbatim | CPR, %, model | removed, % |")
    assert not [word for word in ("Quill", "Zwick", "Ulm") if word in shown + report.read_text()]


def test_what_a_version_discloses_is_compared_with_documents_held_out(tmp_path):
    texts = [f"Anna met word{number} there. They ate rice." for number in range(20)]
    documents = [Document(text=text) for text in texts]
    compared = Compared(documents, [], "", 1, ResourceSettings(threads=1), tmp_path)
    found = disclosed(compared, Version("half", [text if number % 2 else "" for number, text in enumerate(texts)]))
    left = sum(number % 2 for number in compared.members)
    assert (found["disclosed"], found["disclosed_blind"], found["disclosed_places"]) == (left / 20, 0, 20)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "there is nothing to compare; give --texts, --techniques or --programs"),
        (["--techniques", "presido"], "did you mean 'presidio'"),
        (["--programs", "no-such-program --quick"], "program 'no-such-program --quick' cannot be run"),
        (["--programs", "cat /no/such/file"], "ended with status 1"),
        (["--programs", "echo Quill"], "the output of program 'echo Quill' is not JSON lines"),
        (["--programs", "head -n 2"], "'head' has 2 documents, and the raw text 4"),
    ],
)
def test_a_bad_call_ends_with_one_line_without_text(options, says, raw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refusal("compare-anonymisers", "--documents", raw, "--set", "measures=[cost]", *options)
    assert says in said
    assert "Quill lives" not in said
