"""A relation between language and label, on a text and on versions of it."""

import json

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency
from scipy.stats.contingency import association

from tasks.cli import main
from tasks.languages.conclusion import _tested

ENGLISH = ["the house is very nice", "we went to the beach with friends", "they said it was a good film"]
SPANISH = ["la casa es muy fea", "no nos gusta la playa", "dijeron que era una mala película"]
TABLE = [(60, 40), (30, 70), (50, 50)]
"""English and Spanish lines of each of three labels."""


@pytest.fixture
def files(tmp_path):
    """300 lines, their labels, and a version in which the languages of labels are exchanged at random."""
    lines, labels = [], []
    for label, (english, spanish) in zip("abc", TABLE, strict=True):
        lines += [ENGLISH[i % 3] for i in range(english)] + [SPANISH[i % 3] for i in range(spanish)]
        labels += [label] * (english + spanish)
    broken = np.random.default_rng(1).permutation(lines)
    for name, content in (("text", lines), ("labels", labels), ("broken", broken), ("same", lines)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return tmp_path


def test_the_relation_is_found_and_its_loss_too(files, capsys):
    report = files / "report.json"
    paths = {name: str(files / f"{name}.txt") for name in ("text", "labels", "broken", "same")}
    command = ["conclusion", "--pair", "en,es", "--input", paths["text"], "--labels", paths["labels"]]
    assert main([*command, "--versions", paths["same"], paths["broken"], "--report", str(report)]) == 0
    raw, same, broken = json.loads(report.read_text())["measured"]["by_text"].values()
    assert raw["chi_squared"] == pytest.approx(chi2_contingency(np.array(TABLE), correction=False).statistic)
    assert raw["cramers_v"] == pytest.approx(association(np.array(TABLE), method="cramer"))
    assert (raw["related"], same["same_verdict"], broken["same_verdict"]) == (True, True, False)
    assert (same["cramers_v_change"], same["cramers_v_change_ci"]) == (0, [0, 0])
    assert broken["cramers_v_change_ci"][1] < 0
    assert raw["cramers_v_ci"][0] < raw["cramers_v"] < raw["cramers_v_ci"][1]
    limit = raw["cramers_v_limit"]
    assert chi2.sf(limit**2 * 300, 2) == pytest.approx(0.01)
    assert raw["decided"] == (raw["cramers_v_ci"][0] > limit)
    assert broken["cramers_v_ci"][0] < limit < broken["cramers_v_ci"][1]
    assert not broken["decided"]
    assert raw["z_ci"]["a - b"][0] < raw["z"]["a - b"] < raw["z_ci"]["a - b"][1]
    assert "beach" not in report.read_text() + capsys.readouterr().err


def test_z_of_two_shares_by_hand():
    """Published counts in the form of a table: 0.6 against 0.3 of a hundred each."""
    main_language = np.array([True] * 60 + [False] * 40 + [True] * 30 + [False] * 70)
    found = _tested(main_language, np.repeat([0, 1], 100), ["a", "b"], 0.01)
    assert found["z"]["a - b"] == pytest.approx(0.3 / (0.45 * 0.55 * 0.02) ** 0.5)
    assert found["z"]["a - b"] ** 2 == pytest.approx(found["chi_squared"])


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ("a\na\na\n", "all lines have one label"),
        ("a\nb\n", "has 3 lines and labels"),
        ("".join(f"private {n}\n" for n in range(60)), "60 different labels; give at most"),
    ],
)
def test_refusals(tmp_path, capsys, labels, error):
    text, path = tmp_path / "text.txt", tmp_path / "labels.txt"
    text.write_text("the house\nla casa\nthe beach\n")
    path.write_text(labels)
    assert main(["conclusion", "--pair", "en,es", "--input", str(text), "--labels", str(path)]) == 1
    shown = capsys.readouterr().err
    assert error in shown
    assert "private" not in shown
