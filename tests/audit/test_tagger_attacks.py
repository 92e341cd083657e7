"""Attacks on taggers: one that remembers its lines and names is caught, one that does not is not; the copy to share."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_results import refusal

from tasks.audit.attacks import figures_of
from tasks.audit.tagger_attacks import AttackedTagger
from tasks.cli import main
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, write_labelled
from tasks.masking.taggers.crf_features import tokens_of
from tasks.masking.taggers.tagger import EntitySpan, Tagger, WordTagger

SYLLABLES = "ba ce di fo gu ka le mi no pu".split()
WORDS = [f"{a}{b}".capitalize() for a in SYLLABLES for b in SYLLABLES]
SEEN, UNSEEN = ([f"{word}{end}" for word in WORDS] for end in ("ra", "sto"))


def line(name, number=0):
    text = f"my name is {name} and so on {number}"
    return LabelledLine(text, (LabelledSpan(11, 11 + len(name), "PERSON"),), 1)


MEMBERS, OTHERS = (list(map(line, names, range(100))) for names in (SEEN, [*UNSEEN, *UNSEEN]))


class Sure(WordTagger):
    """Finds words in capitals; is surer of the names that it remembers."""

    name, entity_types = "sure", ("PERSON",)

    def __init__(self, names=()):
        self.remembered = set(names)

    def probabilities(self, texts):
        return [np.array([self._row(text[start:end]) for start, end, _ in tokens_of(text)]) for text in texts]

    def _row(self, word):
        private = 0.99 if word in self.remembered else 0.9 if word.istitle() else 0.1
        return [1 - private, private]

    def tagged_words(self, texts):
        raise NotImplementedError


class Spans(Tagger):
    """The same without probabilities, for the names that it remembers alone."""

    name, entity_types = "spans", ("PERSON",)

    def __init__(self, names=()):
        self.remembered = set(names)

    def tag(self, lines):
        for text in lines:
            words = [(start, end) for start, end, _ in tokens_of(text) if text[start:end] in self.remembered]
            yield text, [EntitySpan(start, end, "PERSON") for start, end in words]


@pytest.mark.parametrize("kind", [Sure, Spans])
def test_a_tagger_that_remembers_is_caught_and_one_that_does_not_is_as_good_as_chance(kind, tmp_path):
    def figures(remembered):
        return figures_of(AttackedTagger(kind(remembered), kind(), (tmp_path, tmp_path), MEMBERS, OTHERS))

    found = figures(SEEN)
    for name in ("membership_auc", "names_auc", "names_top_20"):
        assert found[name].value == 1
    # Only the names in capitals are known; equal scores are in the order of the lines, members first.
    assert (found["membership_auc"].blind, found["names_auc"].blind) == (0.5, 0.5)
    nothing = figures(())
    assert (nothing["membership_auc"].value, nothing["names_auc"].value) == (0.5, 0.5)
    half = figures(SEEN[:50])["names_auc"]
    assert (half.value, half.interval[0] > 0.5) == (pytest.approx(0.75), True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A CRF and its text, in which the word alone says if it is a name; each is twice in the training part."""
    folder = tmp_path_factory.mktemp("tagger")
    lines = [line(name, number) for name in (*SEEN, *UNSEEN) for number in (1, 2)]
    lines = [each if number % 4 < 2 else replace(each, spans=()) for number, each in enumerate(lines)]
    write_labelled(folder / "train.jsonl", lines[:200])
    write_labelled(folder / "test.jsonl", [*lines[200:], lines[0]])
    options = "--set kind=crf --set embeddings=null --set iterations=20".split()
    assert main(["train-tagger", "--labelled", str(folder), "--output", str(folder / "crf"), *options]) == 0
    return folder


def attack(trained, *options):
    return ["audit-tagger", "--tagger", str(trained / "crf"), "--labelled", str(trained), *map(str, options)]


def test_a_trained_folder_records_that_no_attack_was_made_and_the_copy_has_the_result(trained, tmp_path, capsys):
    record = json.loads((trained / "crf/audit.json").read_text())
    assert record == {"learned_from_labelled_lines": 200, "attacks": None}
    shared = tmp_path / "shared"
    assert main(attack(trained, "--output", shared)) == 1
    assert "No copy to share is written: membership_tpr_1 is at most" in capsys.readouterr().err
    assert not shared.exists()
    assert main(attack(trained, "--output", shared, "--set", "at_most={names_read: 1}")) == 0
    printed = capsys.readouterr()
    copied = json.loads((shared / "audit.json").read_text())
    assert copied["learned_from_labelled_lines"] == 200
    assert copied["attacks"]["names_read"] > 0.5 > copied["attacks"]["names_read_blind"] == 0
    assert copied["attacks"]["non_members"] == 200
    assert "1 lines of test.jsonl are in train.jsonl too" in printed.err
    everything = (printed.out + printed.err + (shared / "audit.json").read_text()).lower()
    assert not [name for name in (*SEEN, *UNSEEN) if name.lower() in everything]
    # The copy masks as the tagger does.
    (tmp_path / "text.txt").write_text("my name is Ottokar and so on\n")
    for folder in (shared, trained / "crf"):
        command = ["mask", "--technique", "crf", "--set", f"tagger.model={folder}", "--input"]
        assert main([*command, str(tmp_path / "text.txt"), "--output", "-"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_an_earlier_copy_is_replaced_and_another_folder_is_not(trained, tmp_path):
    for _ in range(2):
        assert main(attack(trained, "--output", tmp_path / "shared", "--set", "at_most={}")) == 0
    (tmp_path / "mine.txt").write_text("mine")
    assert "is no copy of a tagger" in refusal(*attack(trained, "--output", tmp_path, "--set", "at_most={}"))
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ("", ["--set", "at_most={names: 1}", "--output", "OUT"], "at_most.names: no attack has this figure"),
        # The upper end of the interval counts, not the value of 0.69.
        ("", ["--set", "at_most={membership_auc: 0.71}", "--output", "OUT"], "membership_auc is at most 0.7"),
        ("test.jsonl", [], "test.jsonl has 1 lines that are not in train.jsonl, and the attack needs 10"),
        ("crf/tagger.json", [], "'tagger.json' has no kind of tagger"),
    ],
)
def test_no_result_is_refused_in_one_line(change, options, says, trained, tmp_path, capsys):
    folder = Path(shutil.copytree(trained, tmp_path / "tagger"))
    if change.endswith("jsonl"):
        write_labelled(folder / change, OTHERS[:1])
    elif change:
        (folder / change).write_text("[]")
    assert main(attack(folder, *(tmp_path / "shared" if each == "OUT" else each for each in options))) == 1
    said = capsys.readouterr().err
    assert says in said
    assert not [name for name in SEEN if name in said]
