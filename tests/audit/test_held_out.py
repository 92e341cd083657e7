"""The audit of a text by lines that a coin left out: its error rates, and what is found where words were planted."""

import json
import math

import numpy as np
import pytest

from tasks.audit.held_out import RUNS, epsilon_bound, guesses_of, held_out_figures, p_value_of, unit_scores
from tasks.cli import main

RATE = 0.05


def units(*lines):
    return lines, [str(number) for number in range(len(lines))]


def test_scores_by_hand():
    """Of words by the rarest one that only this unit and the text have, of runs within lines; a document is a unit."""
    members = units("anna met zyxqu", "anna met bob", "they said so")
    held_out = units("bob said zork", "quixotry")
    ((own, other),) = unit_scores(members, held_out, ["Zyxqu and SO on", "zork"], [(1,)])
    # "so" is one member's own word and common; "anna", "met", "bob" and "said" are in two units.
    assert (own[0], other[0]) == (pytest.approx(8, abs=2), pytest.approx(8, abs=2))
    assert 0 < own[2] < 2
    assert own[1] == other[1] == 0
    conversation = ["one fine day came", "two birds sang"], ["a", "a"]
    held_out = ["one fine day came", "two dogs sang loud"], ["b", "c"]
    for text, disclosed in ((["one fine day came two birds sang"], (1, 0)), (["two birds", "sang loud"], (0, 0))):
        (scores,) = unit_scores(conversation, held_out, text, [(3,)])
        assert tuple(map(np.count_nonzero, scores)) == disclosed


def test_with_nothing_to_find_the_test_is_wrong_as_often_as_it_says():
    random, found = np.random.default_rng(1), 0
    for number in range(1000):
        scores = np.where(random.random(500) < 0.4, random.random(500), 0.0)
        found += p_value_of(guesses_of(scores[:100], scores[100:], number), 100, 500) <= RATE
    assert 0 < found <= 60


@pytest.mark.parametrize(("epsilon", "number"), [(0.5, 5000), (2.0, 600)])
def test_the_bound_is_above_the_epsilon_of_randomised_response_in_5_percent_of_runs_at_most(epsilon, number):
    """A unit is disclosed with a probability p if it was held out, and with p e^epsilon if it is a member."""
    random, wrong, bounds = np.random.default_rng(2), 0, []
    for seed in range(200):
        members = random.binomial(number, 0.5)
        rate = np.where(np.arange(number) < members, 0.1 * math.exp(epsilon), 0.1)
        scores = np.where(random.random(number) < rate, random.random(number), 0.0)
        guesses = guesses_of(scores[:members], scores[members:], seed)
        bounds.append(epsilon_bound(guesses, members, number - members, 0.95))
        wrong += bounds[-1] > epsilon
    assert wrong <= 0.05 * 200 + 6
    assert np.median(bounds) > 0.3 * epsilon


@pytest.mark.parametrize(("share", "is_found"), [(0.0, False), (0.02, True), (0.2, True)])
def test_planted_names_are_found(share, is_found):
    random = np.random.default_rng(3)
    lines = [f"i went home with name{number} and the dog" for number in range(1600)]
    is_member = random.random(1600) < 0.5
    members, held_out = (
        [line for line, one in zip(lines, is_member, strict=True) if one == side] for side in (True, False)
    )
    text = [line.replace("name", "other") for line in members]
    text[: round(share * len(members))] = members[: round(share * len(members))]
    figures = held_out_figures(units(*members), units(*held_out), text)
    assert set(figures) == {f"{name}{end}" for name in RUNS for end in ("", "_p", "_epsilon")}
    assert figures["disclosed_words"].value == pytest.approx(share, abs=0.001)
    assert figures["disclosed_words"].blind == 0
    assert (figures["disclosed_words_p"].value < RATE) == is_found
    assert (figures["disclosed_words_epsilon"].value > 1) == is_found


def test_a_text_of_any_length_is_audited_and_no_figure_quotes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / "mail"
    corpus.mkdir(mode=0o700)
    (corpus / "train.txt").write_text("".join(f"hello quetzal{number // 2}\n" for number in range(40)))
    (corpus / "train.documents").write_text("".join(f"{number // 2}\n" for number in range(40)))
    (tmp_path / "left_out.txt").write_text("".join(f"hello wombat{number}\n" for number in range(20)))
    (tmp_path / "text.txt").write_text("".join(f"quetzal{number}\n" for number in range(10)))
    audit = ["audit", "--members", "mail", "--held-out", "left_out.txt", "--report", "report.json"]
    assert main([*audit, "--text", "text.txt"]) == 0
    printed = capsys.readouterr().out
    assert "disclosed_words: 0.500" in printed
    assert "20 members and 20 held out" in printed
    assert "quetzal" not in printed + (tmp_path / "report.json").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["measured"]["disclosed_words_p"] < RATE
