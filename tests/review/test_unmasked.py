"""How many identifiers a technique leaves unmasked: numbers that can be worked out by hand."""

import json

import pytest
from marked_text import MaskedText
from reviewed_corpus import LINES, mark, plan

from tasks.cli import main
from tasks.errors import CorpusError
from tasks.review import record
from tasks.review.estimate import estimate
from tasks.review.reader import Accuracy, corrected
from tasks.review.record import ReviewedLine
from tasks.review.unmasked import unmasked_by_technique

READER = ["{PERSON:Anna} {PERSON:Smith} met {PERSON:Bob} in {LOCATION:Rome}", "{PERSON:Carla} slept", "nobody came"]


def test_counts_are_corrected_by_hand():
    """Of 100 found, 30 of them unmasked, in 1,000 lines. By the first kind of text half of the findings are right and a
    fifth of the identifiers is missed: 30 · .5 + 100 · .5 · .2 / .8 = 27.5; recall .8 · .7."""
    kinds = (Accuracy(0.5, 0.8), Accuracy(1.0, 1.0), Accuracy(0.5, 1.0))
    found = corrected(100, 30, 1000, kinds)
    assert (found.found, found.unmasked_found) == (100, 30)
    assert (found.per_thousand.low, found.per_thousand.value, found.per_thousand.high) == pytest.approx((15, 27.5, 30))
    assert (found.recall.low, found.recall.value, found.recall.high) == pytest.approx((0.56, 0.7, 0.7))
    itself = corrected(100, 0, 1000, kinds)
    assert (itself.per_thousand.low, itself.per_thousand.high) == pytest.approx((0, 12.5)), "what the reader misses"
    assert corrected(0, 0, 10, kinds).recall is None


def test_planted_names_raise_the_figure_and_one_word_of_a_name_is_enough(tmp_path):
    half = ["{Anna} Smith met {Bob} in {Rome}", "{Carla} slept", "nobody came"]
    none = ["Anna Smith met Bob in Rome", "Carla slept", "nobody came"]
    texts = {"reader": READER, "all": READER, "half": half, "none": none}
    written = {name: MaskedText.write(tmp_path / name, lines) for name, lines in texts.items()}
    sidecars = {name: text.sidecar for name, text in written.items()}
    found = unmasked_by_technique("elsewhere", written["reader"].raw, sidecars, sidecars["reader"])
    counts = {name: (each.direct.unmasked_found, each.direct.found) for name, each in found.items()}
    assert counts == {"reader": (0, 3), "all": (0, 3), "half": (1, 3), "none": (3, 3)}
    rates = [found[name].direct.per_thousand.value for name in ("all", "half", "none")]
    assert 0 < rates[0] < rates[1] < rates[2]
    assert found["none"].quasi.unmasked_found == found["none"].classes["LOCATION"].found == 1
    assert {each.by for each in found.values()} == {"reference reader"}
    assert "is the reference reader" in found["reader"].basis
    with pytest.raises(CorpusError, match="every_tagger"):
        unmasked_by_technique("elsewhere", written["reader"].raw, sidecars, tmp_path / "nothing.jsonl")


def test_the_command_reports_by_technique_and_refuses_texts_of_two_corpora(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = MaskedText.write(tmp_path / "masked" / "every_tagger", READER)
    MaskedText.write(tmp_path / "masked" / "list", ["Anna Smith met Bob in {Rome}", "Carla slept", "nobody came"])
    common = ["unmasked", "--text", str(text.raw), "--masked", "masked", "--report", "report.json"]
    named = ["--cell", "dataset=mail"]
    assert main([*common, *named, "--reader", "masked/every_tagger"]) == 0
    assert "list: " in capsys.readouterr().out
    measured = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["measured"]
    assert (measured["lines"], measured["reviewed_lines"], measured["kappa"]) == (3, 0, None)
    of_list = measured["techniques"]["list"]
    assert of_list["direct"]["unmasked_found"] == 3
    assert of_list["direct"]["recall"] == 0
    assert of_list["quasi"]["unmasked_found"] == 0
    assert not any(word in json.dumps(measured) for word in ("Anna", "Rome"))
    other = MaskedText.write(tmp_path / "other", READER[:2])
    assert main([*common, *named, "--reader", str(other.raw.parent)]) == 1
    assert "not equally many lines" in capsys.readouterr().err


def test_a_review_of_this_text_goes_before_the_reader_and_one_of_another_text_is_refused(corpus):
    """Two lines are read: of Zoë and Tom, and Anna Smith and Rome, the technique masks Anna Smith alone."""
    rome = mark(0, "Rome", "LOCATION", False)
    found_in = {3: (mark(3, "Zoë"), mark(3, "Tom")), 0: (mark(0, "Anna"), mark(0, "Smith"), rome)}
    path = record.path_of("mail")
    record.create(path, plan())
    for line, marks in found_in.items():
        digest = record.line_digest(LINES[line])
        record.append(path, [ReviewedLine(line, "ann", record.now(), 2.0, digest, marks)])
    text = corpus / "data/private/corpora/mail/train.txt"
    sidecar = corpus / "data/private/masked/mail/train/allow_list/sidecar.jsonl"
    found = unmasked_by_technique("mail", text, {"allow_list": sidecar}, corpus / "nothing.jsonl")["allow_list"]
    by_hand = estimate(plan(), found_in, {3: frozenset(), 0: frozenset([(0, 4), (5, 10)])})
    assert (found.by, found.basis) == ("review", "2 lines read by 1 reviewer")
    assert (found.direct, found.quasi) == (by_hand.direct, by_hand.quasi)
    assert found.direct.unmasked_found == 2
    text.write_text(text.read_text(encoding="utf-8").replace("Tom", "Tim"), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"mail\.jsonl"):
        unmasked_by_technique("mail", text, {"allow_list": sidecar}, sidecar)
