"""Membership inference on a language model: which lines was it trained on?"""

import numpy as np

from tasks.audit.attacked import AttackedModel
from tasks.audit.exposure import FROM_LOSS
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_lines, score_references
from tasks.audit.membership import lira, loss_ratio, membership_figures, min_k
from tasks.audit.neighbours import NEIGHBOURS, neighbours_of
from tasks.language_model.normalisation import normalise

_LOWEST = 0.2
"""Share of a line's targets that Min-K% reads, as in its paper."""


def membership(attacked: AttackedModel) -> dict[str, Figure]:
    """Membership inference: how well members, the lines that a model was trained on, differ from other lines.

    The calibrated score of a line is its log-probability under the attacked model less that under the model before it
    was adapted. Without a base model the attacker has the scores of the attacked model only; blind is then the length
    of a line.
    """
    before, shadows, is_member = attacked.before, attacked.shadows, attacked.is_member
    own = score_lines(attacked.model, attacked.lines)
    lowest = min_k(own.of_targets, own.targets, _LOWEST)
    of_lowest = f"mean of the lowest {_LOWEST:.0%} of a line's log-probabilities"
    if before is None:
        blind = -own.targets.astype(np.float64)
        attacks = {
            "membership": (own.means, blind, "mean log-probability of a word"),
            "membership_min_k": (lowest, blind, of_lowest),
        }
    else:
        lowest_before = min_k(before.of_targets, before.targets, _LOWEST)
        ratio = loss_ratio(own.log_probability, before.log_probability, own.targets)
        of_lowest += ", less that of the model before"
        attacks = {
            "membership": (ratio, before.means, FROM_LOSS),
            "membership_min_k": (lowest - lowest_before, lowest_before, of_lowest),
        }
    if shadows:
        trained = np.stack([shadow.is_member[own.lines] for shadow in shadows], axis=1)  # (S, M)
        means = np.stack([shadow.means for shadow in shadows], axis=1)
        of_in, of_out = (means[part].reshape(len(means), -1) for part in (trained, ~trained))
        by = f"likelihood ratio by {len(shadows)} models that were trained in the same way, {of_in.shape[1]} of them on"
        attacks["membership_lira"] = lira(of_in, of_out, own.means), attacks["membership"][1], f"{by} the line"
    documents = np.array([attacked.documents[number] for number in own.lines])
    found: dict[str, Figure] = {}
    for name, (scores, blind, attacker) in attacks.items():
        found |= membership_figures(name, scores, blind, is_member[own.lines], documents, attacker, attacked.settings)
    return found


def neighbourhood(attacked: AttackedModel) -> dict[str, Figure]:
    """Membership inference on ``neighboured`` lines, each compared with its neighbours (Mattern et al. 2023); blind is
    its length."""
    lines, settings = attacked.lines, attacked.settings
    if not settings.neighboured:
        return {}
    words = np.array([len(normalise(line)) for line in lines])
    chosen = np.random.default_rng(settings.seed).permutation(np.flatnonzero(words))[: settings.neighboured].tolist()
    found = neighbours_of([lines[number] for number in chosen], settings.attacker, settings.seed, attacked.threads)
    of_lines = {number: [lines[number], *others] for number, others in zip(chosen, found, strict=True) if others}
    scores = np.stack([*score_references(attacked.model, of_lines).values()])  # (S, 1 + N)
    rows = np.array([*of_lines])
    documents = np.array([attacked.documents[number] for number in rows])
    attacker = f"log-probability less the mean of {NEIGHBOURS} lines with a word exchanged by {settings.attacker}"
    own, blind = scores[:, 0] - scores[:, 1:].mean(axis=1), -words[rows].astype(np.float64)
    name, is_member = "membership_neighbourhood", attacked.is_member[rows]
    return membership_figures(name, own, blind, is_member, documents, attacker, settings)
