"""Membership inference: was this line in the training text? Scores of lines, and how well they separate members.

Members and non-members are lines of the same conversations, divided at random. A score is higher where a line is more
likely a member. False positives matter most (Carlini et al. 2022, "Membership Inference Attacks From First
Principles"): an attack that names a few members with certainty has an AUC near 0.5 and many true positives at 0.1 %.
"""

from collections.abc import Iterator

import numpy as np

from tasks.audit.figure import SHARES, Figure
from tasks.audit.resampling import as_wide_as_wilson, interval_of, scores_of
from tasks.audit.settings import AuditSettings
from tasks.language_model.evaluation.bootstrap import ratio_of_sums, resample_counts

RATES = {"_tpr_1": 0.01, "_tpr_01": 0.001}
"""False positive rates, by the end of the figure's name."""
LEAST_FALSE_POSITIVES = 2
"""With fewer false positives allowed, a true positive rate is undefined: 0.1 % takes 2,000 non-members."""
FEW_SHADOW_MODELS = 64
"""With fewer shadow models, one variance for all lines is better than one each (Carlini et al. 2022)."""
_WEIGHTS_AT_ONCE = 1_000_000
_ROUNDING = 1e-9


def loss_ratio(model: np.ndarray, pretrained: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Log of the ratio of a line's likelihoods (L,), nats a word, from log-probabilities (L,) under both models.

    The attack with a reference model (Mireshghallah et al. 2022); the pretrained model gives the line's difficulty.
    """
    return (np.asarray(model) - np.asarray(pretrained)) / np.asarray(words)


def min_k(token_log_probabilities: np.ndarray, lengths: np.ndarray, share: float) -> np.ndarray:
    """Min-K% Prob (Shi et al. 2023): mean over the ``share`` least likely tokens of each line (L,), nats.

    Tokens (T,) of all lines one after the other, ``lengths`` (L,) of 1 or more. The number of tokens is rounded down as
    in mimir, but is at least 1; the paper has none for a line shorter than 1 / ``share`` tokens.
    """
    lengths = np.asarray(lengths)
    line = np.repeat(np.arange(len(lengths)), lengths)  # (T,)
    place = np.arange(len(line)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # (T,) from 0 in each line
    ordered = np.asarray(token_log_probabilities)[np.lexsort((token_log_probabilities, line))]
    number = np.maximum(1, (lengths * share).astype(np.int64))
    lowest = place < number[line]
    return np.bincount(line[lowest], ordered[lowest], minlength=len(lengths)) / number


def lira(scores_in: np.ndarray, scores_out: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Log of the likelihood ratio in/out (L,) of the ``observed`` scores (L,): algorithm 1 of Carlini et al. 2022.

    ``scores_in`` (L, I): of shadow models trained on the line; ``scores_out`` (L, O): of shadow models that were not.
    In the paper I = O. Both are taken as normal with a mean for each line. Variances are pooled over lines for fewer
    than ``FEW_SHADOW_MODELS`` models. I and O are 2 or more.
    """
    pooled = scores_in.shape[1] + scores_out.shape[1] < FEW_SHADOW_MODELS

    def log_density(scores: np.ndarray) -> np.ndarray:
        variance = scores.var(axis=1, ddof=1)
        if pooled:
            variance = variance.mean(keepdims=True)
        return -((observed - scores.mean(axis=1)) ** 2) / (2 * variance) - np.log(variance) / 2

    return log_density(scores_in) - log_density(scores_out)


def auc(scores: np.ndarray, is_member: np.ndarray) -> float:
    """Probability that a member scores above a non-member, ties as half (Mann and Whitney 1947), from scores (L,)."""
    return float(areas(scores, is_member)[0])


def areas(
    scores: np.ndarray, is_member: np.ndarray, counts: np.ndarray | None = None, group: np.ndarray | None = None
) -> np.ndarray:
    """``auc`` (R,) for each row of ``counts`` (R, G), how often each group is drawn. ``group`` (L,): of each line."""
    return np.concatenate([_auc(*curve) for curve in curves(scores, is_member, counts, group)])


def membership_figures(
    name: str,
    scores: np.ndarray,
    blind_scores: np.ndarray,
    is_member: np.ndarray,
    groups: np.ndarray,
    attacker: str,
    settings: AuditSettings,
) -> dict[str, Figure]:
    """``NAME_auc``, ``NAME_tpr_1`` and ``NAME_tpr_01`` of lines (L,), by their scores.

    ``blind`` is from the blind scores of the same lines, those of the pretrained model alone. Groups (L,) are the
    document of each line; intervals resample documents with their lines. The interval of a rate is at least as wide as
    Wilson's for so many independent members: without a member at the threshold, no resample has one. A rate is ``None``
    if it allows fewer than ``LEAST_FALSE_POSITIVES`` non-members. Without members or non-members all figures are
    ``None``.
    """
    members = int(np.count_nonzero(is_member))
    figures = dict.fromkeys((f"{name}{end}" for end in ("_auc", *RATES)), Figure(None, None, attacker))
    if not members or members == len(scores):
        return figures
    blind = _measures(*next(curves(blind_scores, is_member)))
    names, group = np.unique(groups, return_inverse=True)
    resampled = [
        _measures(*curve)
        for counts in resample_counts(len(names), settings.bootstrap_samples, settings.seed)
        for curve in curves(scores, is_member, counts, group)
    ]
    for end, (value,) in _measures(*next(curves(scores, is_member))).items():
        if (len(scores) - members) * RATES.get(end, np.inf) < LEAST_FALSE_POSITIVES - _ROUNDING:
            continue
        drawn = np.concatenate([block[end] for block in resampled])
        interval = interval_of(float(value), drawn, len(names), settings.confidence, SHARES)
        if end in RATES:
            interval = as_wide_as_wilson(interval, value, members, settings.confidence)
        figures[f"{name}{end}"] = Figure(float(value), interval, attacker, float(blind[end][0]), len(scores))
    return figures


Curve = tuple[np.ndarray, np.ndarray]
"""Members and non-members (R, D) at or above each of D distinct scores, from the highest."""


def curves(
    scores: np.ndarray, is_member: np.ndarray, counts: np.ndarray | None = None, group: np.ndarray | None = None
) -> Iterator[Curve]:
    """Blocks of curves for each row of ``counts`` (R, G), how often each group is drawn; without it of the lines."""
    scores = scores_of(scores, "lines")
    order = np.argsort(-scores)
    last = np.flatnonzero(np.diff(scores[order], append=-np.inf))  # (D,) the last line of each distinct score
    member = is_member[order]
    if counts is None or group is None:
        counts, group = np.ones((1, 1)), np.zeros(len(scores), dtype=np.int64)
    rows = max(1, _WEIGHTS_AT_ONCE // len(scores))
    for begin in range(0, len(counts), rows):
        weights = counts[begin : begin + rows][:, group[order]]  # (R, L)
        yield np.cumsum(weights * member, axis=1)[:, last], np.cumsum(weights * ~member, axis=1)[:, last]


def _measures(true: np.ndarray, false: np.ndarray) -> dict[str, np.ndarray]:
    return {"_auc": _auc(true, false)} | {end: true_positive_rate(true, false, rate) for end, rate in RATES.items()}


def _auc(true: np.ndarray, false: np.ndarray) -> np.ndarray:
    """Area (R,) under the lines through the points of the curves (R, D); NaN without a member or a non-member."""
    above = np.diff(true, axis=1, prepend=0) / 2
    area = (np.diff(false, axis=1, prepend=0) * (true - above)).sum(axis=1)
    return ratio_of_sums(area, true[:, -1] * false[:, -1])


def true_positive_rate(true: np.ndarray, false: np.ndarray, false_positive_rate: float) -> np.ndarray:
    """Share of the members (R,) at or above a threshold that at most this share of the non-members reaches.

    The threshold is the score of a non-member; all lines with an equal score reach it. If there is nothing to find, the
    rate is k / (N + 1) on average for k allowed non-members, so it never exceeds the given rate. It is 0 if no
    non-member is allowed.
    """
    allowed = false_positive_rate * false[:, -1:] + _ROUNDING  # (R, 1)
    named_wrongly = np.where(false <= allowed, false, 0.0).max(axis=1)  # (R,)
    threshold = np.count_nonzero(false < named_wrongly[:, None], axis=1)  # (R,) of D
    named = np.where(named_wrongly > 0, true[np.arange(len(true)), threshold], 0.0)
    return ratio_of_sums(named, true[:, -1])
