"""The methods that weigh words: the filler's averages, matched frequencies, priors, and noisy counts."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from changed_parameters import write_parameters
from fill_command import fill, refused, report, write, write_masked
from scripted_model import ScriptedModel

from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key, key_id
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.masked_lm.weighing import prepared_weighing
from tasks.filling.methods.log_linear import LogLinear
from tasks.privacy.ledger import Release, append_to_ledger

WORDS = ["the", "a", "sat", "cat", "dog", "cow"]
COUNTS = WordFrequencies(("the", "cat", "dog"), np.array([50, 30, 10]))
PLAIN = {"filler": 1, "frequency": 1, "average": 0}


def prepared(lines, *, corpus=None, frequencies=COUNTS, **settings):
    """The weighing of a filler that says cat 3:1, and the scores of its words."""
    says = {"cat": 0.6, "dog": 0.2, "cow": 0.1, "the": 0.1}
    model = ScriptedModel(WORDS, lambda words, position: says)
    settings = LogLinear(kind="log_linear", **settings)
    given = (model.candidates(), AllowedWords(["the", "a", "sat"]), frequencies, settings, lines, corpus)
    ready = prepared_weighing(model, *given, public=frequencies)
    return ready, ready.filler_weight * np.log(np.array([1, 1, 1, 0.6, 0.2, 0.1])) + ready.constant


def test_counted_words_are_written_as_often_as_they_were_counted():
    """The filler says cat 3:1 at both places, and cats were counted 3:1: without more the draw would be 9:1."""
    counted = replace(COUNTS, groups=np.array([-1, 0, 1]))
    lines = ["the [MASK] sat", "a [MASK] sat"]
    ready, scores = prepared(None, corpus=lines, frequencies=counted, prior="counted", weights=PLAIN)
    assert scores[3] - scores[4] == pytest.approx(math.log(3), abs=0.05)
    assert ready.measured["matched_frequencies"]["groups"] == 2
    assert ready.measured["matched_frequencies"]["distance_before"] == pytest.approx(0.9 - 0.75, abs=1e-3)
    # What the filler cannot write makes no counted word more frequent: zebra is in the group of dog, horse in one of
    # its own; of 60 places cat was counted at 20, and has no more.
    words, counts, groups = ("the", "cat", "dog", "zebra", "horse"), [50, 20, 10, 25, 5], [-1, 0, 2, 2, 1]
    frequencies = WordFrequencies(words, np.array(counts), np.array(groups))
    _, scores = prepared(None, corpus=["the [MASK] sat"], frequencies=frequencies, prior="counted", weights=PLAIN)
    assert scores[4] - scores[3] == pytest.approx(math.log(2), abs=0.05)


def test_what_nothing_can_be_learned_from_is_an_error():
    with pytest.raises(CorpusError, match="no masked place of one word"):
        prepared(["the sat a"])


LINES = 60
FILES = {"allowed_words": "allowed_words.txt", "word_counts": "word_counts.tsv", "generic": "generic"}
PRIVATE = FILES | {"sidecar": "sidecar.jsonl"}
WEIGHTS = {"filler": 2.0, "frequency": 1.0, "average": 2.0}


@pytest.fixture
def corpus(folder):
    write_masked(["the {dog} sat on the {mat}"] * LINES)
    write("allowed_words.txt", ["the", "sat", "on", "ran"])
    write("word_counts.tsv", ["the\t90", "tom\t60", "paris\t20", "cat\t9", "dog\t3", "mat\t1"])
    (folder / "generic").mkdir()
    pairs = [(first, second) for first in ("cat", "dog", "mat", "tom", "paris") for second in ("cat", "dog", "mat")]
    lines = [f"the {first} sat on the {second}" for first, second in pairs] + ["the red dog ran"] * len(pairs)
    for part in ("train", "valid"):
        write(f"generic/{part}.txt", lines)


def words_of(lines):
    return [word.lower() for line in lines for word in line.removeprefix("the ").split(" sat on the ")]


def test_fills_are_candidates_the_report_says_what_was_learned_and_the_sidecar_changes_no_fill(corpus, bert):
    lines, measured = fill("log_linear", filler=bert, **FILES)
    assert set(words_of(lines)) <= {"cat", "dog", "mat", "tom", "paris"}
    assert len(set(words_of(lines))) > 2
    assert measured["fallback_count"] == 0
    learned = measured["log_linear"]
    assert (learned["candidates"], learned["tuning_places"], learned["tuning_places_without_candidate"]) == (5, 30, 0)
    assert learned["weights"] == WEIGHTS
    again, with_sidecar = fill("log_linear", filler=bert, **PRIVATE)
    assert again == lines
    assert with_sidecar["log_linear"] == learned
    assert with_sidecar["restoration_rate"] is not None is measured["restoration_rate"]


def test_a_filler_that_says_always_the_same_leaves_the_frequencies(corpus, biased):
    """The context says nothing, so tom is drawn 60 of 93 times, whatever the filler's favourite is."""
    words = words_of(fill("log_linear", filler=biased, **FILES)[0])
    assert abs(words.count("tom") / len(words) - 60 / 93) < 4 * math.sqrt(60 * 33 / 93**2 / len(words))


@pytest.mark.parametrize("method", ["log_linear", "unigram"])
def test_noisy_counts_bring_the_masked_words(corpus, bert, monkeypatch, method):
    """Every second masked word is dog, and every other mat; public text has mostly tom. Nothing private is reported."""
    given = PRIVATE | ({"filler": bert} if method == "log_linear" else {})
    of_domain, public = fill(method, "prior=domain", **given)
    lines, measured = fill(method, "prior=counted", "counts.epsilon=16", **given)
    shares = [sum(word in ("dog", "mat") for word in words_of(each)) / (2 * LINES) for each in (of_domain, lines)]
    assert shares[0] < 0.4 < 0.8 < shares[1]
    counted = measured["counted_frequencies"]
    assert (counted["epsilon"], counted["words_per_unit"], counted["counted_places"]) == (16.0, 1, LINES)
    assert "counted_frequencies" not in public
    assert "dog" not in str(report())
    assert clone_key("noise").hex() not in str(report())
    assert counted["key"] == key_id()
    assert report()["warnings"] == []
    assert fill(method, "prior=counted", "counts.epsilon=16", **given)[0] == lines
    # Two sidecars with the same counts and the same noise give equal fills and reports.
    monkeypatch.setattr("tasks.filling.frequencies.counted_frequencies._secret", lambda *_: bytes(32))
    found = []
    for first, second in (("dog", "mat"), ("mat", "dog")):
        write_masked([f"the {{{first}}} sat on the {{{second}}}"] * LINES)
        lines, measured = fill(method, "prior=counted", "counts.words_per_unit=2", **given)
        found.append((lines, {name: value for name, value in measured.items() if "second" not in name}))
    assert found[0] == found[1]
    assert found[0][1]["restoration"] is None


def test_earlier_releases_are_reckoned_with(corpus, folder, capsys):
    """A second key, counts that are gone and a budget that is spent: one line each, and nothing is filled."""
    given = {"input": "text.txt", "cell": "dataset=mail", **PRIVATE}
    counted = fill("unigram", "prior=counted", **given)[1]["counted_frequencies"]
    entry = {"name": "spring", "when": "2026-01-01T00:00:00+00:00", "cell": "mail/crf/unigram-1", "dataset": "mail"}
    entry |= {"technique": "crf", "corpus": "c0", "key": counted["key"], "lines": LINES, "unit": "line"}
    entry |= {"epsilon": counted["epsilon"], "words_per_unit": 1, "counts": counted["counts"]}
    append_to_ledger(Release(**entry))

    def error(*settings, **release):
        params = write_parameters(release=release)
        return refused(capsys, "fill", "prior=counted", *settings, method="unigram", params=params, **given)

    def allowed(*settings, **release):
        fill("unigram", "prior=counted", *settings, params=write_parameters(release=release), **given)

    said = error("counts.epsilon=3", epsilon_budget=6.0)
    assert "epsilon 3 and 4 of releases 'spring' are 7, above release.epsilon_budget=6" in said
    key, path = counted["key"], folder / "data" / "private" / "keys" / "clone_key"
    path.rename("lost")
    assert f"by key '{key}', and this clone's is" in error()
    path.write_bytes(bytes(32))
    assert f"by key '{key}', and this clone's is '{key_id()}'" in error()
    allowed(other_keys=[key])
    path.unlink()
    Path("lost").rename(path)
    allowed("counts.epsilon=2", epsilon_budget=6.0)
    allowed(epsilon_budget=4.0)
