"""Membership inference: parity of scores and rates, and what they are where there is nothing to find."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from tasks.audit.membership import RATES, auc, curves, lira, loss_ratio, membership_figures, min_k, true_positive_rate
from tasks.audit.settings import AuditSettings


def rate_of(members, non_members, rate):
    scores, number = np.concatenate([members, non_members]), len(members)
    return float(true_positive_rate(*next(curves(scores, np.arange(len(scores)) < number)), rate)[0])


@pytest.mark.parametrize(
    ("members", "non_members", "rate", "expected"),
    [
        ([5, 3, 1, 0], [4, 3, 2, 1], 0.25, 0.25),  # the threshold is 4
        ([5, 3, 1, 0], [4, 3, 2, 1], 0.5, 0.5),  # it is 3, and a member there reaches it
        ([5, 3, 1, 0], [4, 3, 3, 1], 0.5, 0.25),  # two non-members at 3 would be one too many
        ([5, 3, 1, 0], [3, 3, 3, 3], 0.5, 0.0),
    ],
)
def test_a_true_positive_rate_counts_ties_against_the_attack(members, non_members, rate, expected):
    assert rate_of(members, non_members, rate) == expected


def test_with_nothing_to_find_the_rate_is_no_more_than_what_was_asked_for():
    drawn = np.random.default_rng(1)
    scores = [drawn.normal(size=(2, 2000)) for _ in range(500)]
    for rate in RATES.values():
        rates = [rate_of(*both, rate) for both in scores]
        assert np.mean(rates) < rate + 2 * np.std(rates) / np.sqrt(500)


def conversations(number: int, lines: int, learned: float, seed: int, whole: bool = False):
    """Scores, members and conversations of lines; half of the variance is of the conversation.

    Membership is by coin, of each line or of the ``whole`` conversation.
    """
    drawn = np.random.default_rng(seed)
    group = np.repeat(np.arange(number), lines)
    member = drawn.random(number)[group] < 0.5 if whole else drawn.random(len(group)) < 0.5
    scores = drawn.normal(size=number)[group] + drawn.normal(size=len(group)) + learned * member
    return scores, member, group


@pytest.mark.parametrize(("learned", "whole"), [(0.0, True), (0.5, False)])
def test_intervals_over_conversations_hold_the_truth_as_often_as_they_say(learned, whole):
    distance = learned / np.sqrt(2)
    truth = {f"loss{end}": norm.sf(norm.isf(rate) - distance) for end, rate in RATES.items()}
    truth["loss_auc"] = norm.cdf(distance / np.sqrt(2))
    held: dict[str, list[bool]] = {name: [] for name in truth}
    for seed in range(40):
        scores, member, group = conversations(640, 8, learned, 5000 + seed, whole)
        figures = membership_figures(
            "loss", scores, scores, member, group, "", AuditSettings(bootstrap_samples=200, seed=seed)
        )
        for name, figure in figures.items():
            low, high = figure.interval
            held[name].append(low <= truth[name] <= high)
    for name, inside in held.items():
        assert np.mean(inside) > 0.88, name  # 95 % less three standard errors


def test_figures_have_the_blind_attack_beside_them_and_no_rate_that_too_few_lines_can_show():
    scores, member, group = conversations(100, 20, 3.0, 0)
    blind = np.zeros(len(scores))
    area, one, tenth = membership_figures("loss", scores, blind, member, group, "", AuditSettings()).values()
    assert (area.value, area.blind, area.places) == (auc(scores, member), 0.5, 2000)
    assert (one.value, one.blind) == (rate_of(scores[member], scores[~member], 0.01), 0.0)
    assert tenth.value is None  # of about 1,000 non-members one is 0.1 %
    # With all members in one document, half of the resamples of two documents have members or others alone.
    assert membership_figures("loss", scores, blind, member, member, "", AuditSettings())["loss_auc"].interval is None
    none = membership_figures("loss", scores, blind, np.zeros_like(member), group, "", AuditSettings())
    assert {figure.value for figure in none.values()} == {None}


def test_min_k_is_that_of_mimir():
    """The mean of the ``int(n * share)`` lowest log-probabilities of n; at least one, where mimir has none."""
    drawn = np.random.default_rng(2)
    lengths = np.array([1, 3, 5, 10, 29, 100])
    tokens = -drawn.exponential(3, size=lengths.sum())
    lines = np.split(tokens, np.cumsum(lengths)[:-1])
    for share in (0.2, 0.29, 1.0):
        expected = [np.mean(sorted(line)[: max(1, int(len(line) * share))]) for line in lines]
        assert min_k(tokens, lengths, share) == pytest.approx(expected)


def test_the_attack_by_a_reference_model_and_its_rates_are_those_of_mimir():
    """Duan et al. 2024, by the formulas of the published code: mean loss less the reference model's, low for members,
    and the last point of scikit-learn's curve that is below the rate."""
    drawn = np.random.default_rng(4)
    words, member = drawn.integers(4, 30, size=3000), np.arange(3000) < 1000
    losses = np.array([drawn.exponential(5, size=number).mean() for number in words])
    target = losses - 0.3 * member * drawn.exponential(1, size=3000)
    reference = losses + drawn.normal(0, 0.2, size=3000)
    ours = loss_ratio(-target * words, -reference * words, words)
    assert ours == pytest.approx(reference - target)
    false, true, _ = roc_curve(member, reference - target)
    assert auc(ours, member) == pytest.approx(np.trapezoid(true, false))
    ties = ours.round(1)
    assert auc(ties, member) == pytest.approx(roc_auc_score(member, ties))
    for rate in RATES.values():
        expected = true[np.flatnonzero(false < rate)[-1]]
        assert rate_of(ours[member], ours[~member], rate) == pytest.approx(expected)
        assert expected > 10 * rate


def test_lira_separates_a_shift_as_the_closed_form_says():
    """Known normals a shift d apart, in deviations: the ratio is best, and its AUC is the normal cdf of d / sqrt(2)."""
    drawn = np.random.default_rng(3)
    lines, models, shift = 6000, 8, 1.5
    difficulty = drawn.normal(0, 5, size=(lines, 1))  # the score alone tells next to nothing
    scores_in = difficulty + shift + drawn.normal(size=(lines, models))
    scores_out = difficulty + drawn.normal(size=(lines, models))
    member = np.arange(lines) < lines // 2
    observed = difficulty[:, 0] + shift * member + drawn.normal(size=lines)
    ratio = lira(scores_in, scores_out, observed)
    # A line's threshold is the middle of two means of so many models: 1 / (2 S) of a variance more.
    expected = norm.cdf(shift / np.sqrt(2 * (1 + 1 / (2 * models))))
    assert auc(ratio, member) == pytest.approx(expected, abs=0.015)
    assert auc(observed, member) < 0.62
    # Of models that learned nothing of their lines, it is as good as chance.
    nothing = lira(scores_out, difficulty + drawn.normal(size=(lines, models)), observed - shift * member)
    assert auc(nothing, member) == pytest.approx(0.5, abs=0.03)
