"""A relation between language and label, on a text and on versions of it."""

import json

import numpy as np
import pytest
from command_results import measured, refusal, write_records
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association

ENGLISH = ["the house is very nice", "we went to the beach with friends", "they said it was a good film"]
SPANISH = ["la casa es muy fea", "no nos gusta la playa", "dijeron que era una mala película"]
TABLE = np.array([(60, 40), (30, 70), (50, 50)])
"""English and Spanish lines of each of three labels."""


def test_the_relation_is_found_and_its_loss_too(tmp_path, capsys):
    lines, labels = [], []
    for label, (english, spanish) in zip("abc", TABLE, strict=True):
        lines += [ENGLISH[i % 3] for i in range(english)] + [SPANISH[i % 3] for i in range(spanish)]
        labels += [label] * (english + spanish)
    broken = np.random.default_rng(1).permutation(lines)
    for name, content in (("text", lines), ("labels", labels), ("broken", broken), ("same", lines)):
        write_records(tmp_path / name, content)
    files = ["--input", tmp_path / "text", "--labels", tmp_path / "labels"]
    versions = [tmp_path / "same", tmp_path / "broken"]
    found = measured("conclusion", "--pair", "en,es", *files, "--versions", *versions)
    raw, same, broken = found["by_text"].values()
    assert raw["chi_squared"] == pytest.approx(chi2_contingency(TABLE, correction=False).statistic)
    assert raw["cramers_v"] == pytest.approx(association(TABLE, method="cramer"))
    assert (raw["related"], same["same_verdict"], broken["same_verdict"]) == (True, True, False)
    assert (same["cramers_v_change"], same["cramers_v_change_ci"]) == (0, [0, 0])
    assert broken["cramers_v_change_ci"][1] < 0
    assert raw["cramers_v_ci"][0] < raw["cramers_v"] < raw["cramers_v_ci"][1]
    # 0.6 against 0.3 of a hundred each.
    assert raw["z"]["a - b"] == pytest.approx(0.3 / (0.45 * 0.55 * 0.02) ** 0.5)
    assert raw["z_ci"]["a - b"][0] < raw["z"]["a - b"] < raw["z_ci"]["a - b"][1]
    assert "beach" not in json.dumps(found) + capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ("aaa", "all lines have one label"),
        ([f"private {n}" for n in range(60)], "60 different labels; give at most"),
    ],
)
def test_refusals(tmp_path, labels, error):
    text = write_records(tmp_path / "text.txt", ["the house", "la casa", "the beach"])
    path = write_records(tmp_path / "labels.txt", labels)
    said = refusal("conclusion", "--pair", "en,es", "--input", text, "--labels", path)
    assert error in said
    assert "private" not in said
