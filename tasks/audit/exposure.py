"""Exposure of canaries (Carlini et al. 2019, "The Secret Sharer"): the rank of each among candidates, in bits.

A canary is planted into the training text; its references are candidates of the same template that are not. Scores are
calibrated: log-probability under the audited model less log-probability under the pretrained model. They are higher
where a candidate is more likely to have been seen. All exposures are in bits.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tasks.audit.attacked import AttackedModel
from tasks.audit.canaries import FAMILIES, Canaries, Family
from tasks.audit.figure import Figure, bootstrapped
from tasks.audit.line_scores import score_references
from tasks.audit.one_run_epsilon import guess_and_bound
from tasks.audit.resampling import scores_of
from tasks.audit.settings import AuditSettings

FROM_LOSS = "loss ratio to the model before it was adapted"
_GUESSED_SHARE = 0.2
"""Share of the coins that the attacker guesses for the bound on epsilon."""
_RESOLUTION = 52.0
"""Bits. A survival function below a double's resolution shows the shape of the fitted tail only."""

Form = tuple[Family, int]
Group = tuple[np.ndarray, np.ndarray]
"""Scores of canaries (C,) and references (R,) of one template, or of one family and count."""


def canary_exposure(attacked: AttackedModel) -> dict[str, Figure]:
    """``exposure_figures`` of the canaries; empty without planted canaries or a base model."""
    canaries, base = attacked.canaries, attacked.base
    if canaries is None or base is None:
        return {}
    sentences = sentences_by_form(canaries)
    after, before = score_references(attacked.model, sentences), score_references(base, sentences)
    gain = {form: after[form] - before[form] for form in sentences}
    return exposure_figures(gain, canaries, attacked.settings, FROM_LOSS)


def sentences_by_form(canaries: Canaries) -> dict[Form, list[str]]:
    """References of each form, followed by the canaries of the same form."""
    forms: dict[Form, list[str]] = {form: list(lines) for form, lines in canaries.references.items()}
    for canary in canaries.planted:
        forms[canary.family, canary.form].append(canary.text)
    return forms


def exposure_figures(
    gain: Mapping[Form, np.ndarray], canaries: Canaries, settings: AuditSettings, by: str
) -> dict[str, Figure]:
    """Exposure of each family by repetitions, in bits, and the bound on epsilon if there are coins.

    ``exposure_unmasked_4`` is for common words planted four times, ``exposure`` for names at the most repetitions, and
    ``exposure_extrapolated`` for the same, beyond the number of references. ``gain``: calibrated scores (S,) of
    ``sentences_by_form``; ``by`` names the score.
    """
    if not canaries.planted:
        # The word counts have no words for any family: a small text, or one unlike any language.
        return {}
    references = {form: gain[form][: len(lines)] for form, lines in canaries.references.items()}
    left = {form: iter(gain[form][len(lines) :].tolist()) for form, lines in canaries.references.items()}
    scored = [(canary, next(left[canary.family, canary.form])) for canary in canaries.planted]
    repetitions = sorted({canary.repetitions for canary in canaries.planted if canary.repetitions})
    most = repetitions[-1]
    attacker = f"rank among {max(map(len, references.values())):,} sentences of the same form, by the {by}"
    found = {}
    for family in FAMILIES:
        forms = [form for form in references if form[0] == family]
        # Masked words and the most repetitions are the defaults: they add nothing to the name.
        of_family = {"masked": [], "kept": ["unmasked"]}.get(family, [family])
        for times in repetitions:
            groups = [
                (
                    np.array(
                        [
                            score
                            for canary, score in scored
                            if (canary.family, canary.form, canary.repetitions) == (*form, times)
                        ]
                    ),
                    references[form],
                )
                for form in forms
            ]
            attack = f"{attacker}; {times} times in the text"
            name = "_".join(["exposure", *of_family, *[str(times)] * (times < most)])
            found[name] = mean_exposure(groups, attack, settings)
            if times == most:
                name = "_".join(["exposure_extrapolated", *of_family])
                attack, spaces = f"{attack}; by a skew normal fitted to theirs", [canaries.bits[form] for form in forms]
                found[name] = mean_exposure(groups, attack, settings, spaces)
    coins = [(canary, score) for canary, score in scored if canary.is_coin]
    if coins:
        found["epsilon_lower_bound"] = guess_and_bound(
            np.array([score for _, score in coins]),
            np.array([bool(canary.repetitions) for canary, _ in coins]),
            guesses=round(_GUESSED_SHARE * len(coins)),
            attacker=f"lower bound at {settings.confidence:.0%} from canaries that a coin put in, by the {by}",
            seed=settings.seed,
            confidence=settings.confidence,
        )
    return found


def exposures(canaries: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Bits (C,) of canaries (C,) among references (R,): log2(R + 1) - log2(rank), as the paper defines it.

    The rank is among the canary itself and its references, from 1 for the highest score: 0 bits to log2(R + 1). A tied
    canary has the mean exposure of the tied ranks, which is the average over random tie-breaking. If all scores are
    equal, exposure is that of a model that learned nothing.
    """
    ordered = np.sort(scores_of(references, "references"))
    canaries = scores_of(canaries, "canaries")
    above = len(ordered) - np.searchsorted(ordered, canaries, side="right")
    not_below = len(ordered) - np.searchsorted(ordered, canaries, side="left")
    sums = np.concatenate([[0.0], np.cumsum(np.log2(np.arange(1, len(ordered) + 2)))])  # of log2(k), k = 1..n
    return math.log2(len(ordered) + 1) - (sums[not_below + 1] - sums[above]) / (not_below - above + 1)


def extrapolated_exposures(canaries: np.ndarray, references: np.ndarray, most: float) -> np.ndarray:
    """Bits (C,): -log2 of the share of candidates above a canary, by a skew normal fitted to the references.

    This is the paper's approximation by a model of the distribution. It separates canaries above every reference.
    ``most``: log2 of the number of candidates, an upper bound, itself 52 at most. If all references are equal, as for
    a model that learned nothing, no distribution can be fitted: then these are ``exposures``.
    """
    from scipy.stats import skewnorm

    references = scores_of(references, "references")
    if np.ptp(references) == 0:
        return exposures(canaries, references)
    fitted = skewnorm.fit(references)
    survival = skewnorm.sf(scores_of(canaries, "canaries"), *fitted)
    return -np.log2(np.maximum(survival, 2.0 ** -min(most, _RESOLUTION)))


def null_exposure(references: int) -> float:
    """Expected bits of a model that learned nothing: the mean of log2(R + 1) - log2(k), k uniform on 1 to R + 1."""
    return float((math.log2(references + 1) - np.log2(np.arange(1, references + 2))).mean())


def mean_exposure(
    groups: Sequence[Group], attacker: str, settings: AuditSettings, spaces: Sequence[float] | None = None
) -> Figure:
    """Mean bits over the canaries of all groups, each ranked among the references of its own group.

    ``spaces``: log2 of the number of candidates of each group (``extrapolated_exposures``); without them exposure is by
    rank. The interval resamples canaries: it covers other canaries of the kind, in this model. ``blind`` is for uniform
    ranks. If every canary is above all references, the value by rank and both ends are log2(R + 1), a lower bound.
    """
    if spaces is None:
        found = [exposures(*group) for group in groups]
    else:
        found = [extrapolated_exposures(*group, space) for group, space in zip(groups, spaces, strict=True)]
    bits = np.concatenate([np.empty(0), *found])
    number = len(bits)
    if not number:
        return Figure(None, None, attacker)
    return bootstrapped(
        float(bits.mean()),
        lambda counts: counts @ bits / number,
        number,
        attacker,
        blind=sum(len(canaries) * null_exposure(len(references)) for canaries, references in groups) / number,
        places=number,
        bounds=(float(bits.min()), float(bits.max())),
        samples=settings.bootstrap_samples,
        confidence=settings.confidence,
        seed=settings.seed,
    )
