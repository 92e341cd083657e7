"""Attacks on a language model: canary exposure, membership inference, and a lower bound on epsilon.

All three use the calibrated score of a line: its log-probability under the attacked model less that under the model
before it was adapted. The latter is the line's probability without its training text.
"""

from collections.abc import Mapping

import numpy as np

from tasks.audit.attacked import AttackedModel
from tasks.audit.canaries import FAMILIES, Canaries, Family
from tasks.audit.exposure import mean_exposure
from tasks.audit.figure import Figure
from tasks.audit.line_scores import score_lines, score_references
from tasks.audit.membership import lira, loss_ratio, membership_figures, min_k
from tasks.audit.membership import neighbourhood as less_neighbours
from tasks.audit.one_run_epsilon import guess_and_bound
from tasks.audit.settings import AuditSettings
from tasks.language_model.normalisation import normalise

_FROM_LOSS = "loss ratio to the model before it was adapted"
_GUESSED_SHARE = 0.2
"""Share of the coins that the attacker guesses for the bound on epsilon."""
_LOWEST = 0.2
"""Share of a line's targets that Min-K% reads, as in its paper."""
Form = tuple[Family, int]


def canary_exposure(attacked: AttackedModel) -> dict[str, Figure]:
    """``exposure_figures`` of the canaries; empty without planted canaries or a base model."""
    canaries, base = attacked.canaries, attacked.base
    if canaries is None or base is None:
        return {}
    sentences = sentences_by_form(canaries)
    after, before = score_references(attacked.model, sentences), score_references(base, sentences)
    gain = {form: after[form] - before[form] for form in sentences}
    return exposure_figures(gain, canaries, attacked.settings, _FROM_LOSS)


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
    most, chance = repetitions[-1], _chance(settings)
    number = max(map(len, references.values()))
    attacker = f"rank among {number:,} sentences of the same form, by the {by}"
    found = {}
    for family in FAMILIES:
        forms = [form for form in references if form[0] == family]
        for times in repetitions:
            own = [
                (canary.form, score)
                for canary, score in scored
                if (canary.family, canary.repetitions) == (family, times)
            ]
            groups = [(np.array([score for form, score in own if form == of[1]]), references[of]) for of in forms]
            # Masked words and the most repetitions are the defaults: they add nothing to the name.
            of_family = {"masked": [], "kept": ["unmasked"]}.get(family, [family])
            attack = f"{attacker}; {times} times in the text"
            name = "_".join(["exposure", *of_family, *[str(times)] * (times < most)])
            found[name] = mean_exposure(groups, attack, *chance)
            if times == most:
                spaces = [canaries.bits[form] for form in forms]
                name, attack = (
                    "_".join(["exposure_extrapolated", *of_family]),
                    f"{attack}; by a skew normal fitted to theirs",
                )
                found[name] = mean_exposure(groups, attack, *chance, spaces=spaces)
    coins = [(canary, score) for canary, score in scored if canary.is_coin]
    if not coins:
        return found
    found["epsilon_lower_bound"] = guess_and_bound(
        np.array([score for _, score in coins]),
        np.array([bool(canary.repetitions) for canary, _ in coins]),
        guesses=round(_GUESSED_SHARE * len(coins)),
        attacker=f"lower bound at {settings.confidence:.0%} from canaries that a coin put in, by the {by}",
        seed=settings.seed,
        confidence=settings.confidence,
    )
    return found


def membership(attacked: AttackedModel) -> dict[str, Figure]:
    """Membership inference: how well members, the lines that a model was trained on, differ from other lines.

    Without a base model the attacker has the scores of the attacked model only; blind is then the length of a line.
    """
    before, shadows, is_member = attacked.before, attacked.shadows, attacked.is_member
    own = score_lines(attacked.model, attacked.lines)
    first = is_member[own.lines]
    documents = np.array([attacked.documents[number] for number in own.lines])
    lowest = min_k(own.of_targets, own.targets, _LOWEST)
    if before is None:
        blind = -own.targets.astype(np.float64)
        attacks = {"membership": (own.means, blind, "mean log-probability of a word")}
        attacks["membership_min_k"] = lowest, blind, f"mean of the lowest {_LOWEST:.0%} of a line's log-probabilities"
    else:
        lowest_before = min_k(before.of_targets, before.targets, _LOWEST)
        ratio = loss_ratio(own.log_probability, before.log_probability, own.targets)
        attacks = {"membership": (ratio, before.means, _FROM_LOSS)}
        attacks["membership_min_k"] = (
            lowest - lowest_before,
            lowest_before,
            f"mean of the lowest {_LOWEST:.0%} of a line's log-probabilities, less that of the model before",
        )
    if shadows:
        trained = np.stack([shadow.is_member[own.lines] for shadow in shadows], axis=1)  # (S, M)
        means = np.stack([shadow.means for shadow in shadows], axis=1)
        of_in, of_out = (means[part].reshape(len(means), -1) for part in (trained, ~trained))
        attacks["membership_lira"] = (
            lira(of_in, of_out, own.means),
            attacks["membership"][1],
            f"likelihood ratio by {len(shadows)} models that were trained in the same way, {of_in.shape[1]} of them on "
            "the line",
        )
    found: dict[str, Figure] = {}
    for name, (scores, blind, attacker) in attacks.items():
        found |= membership_figures(name, scores, blind, first, documents, attacker, *_chance(attacked.settings))
    return found


def neighbourhood(attacked: AttackedModel) -> dict[str, Figure]:
    """Membership inference on ``neighboured`` lines, each compared with its neighbours; blind is its length."""
    lines, settings = attacked.lines, attacked.settings
    if not settings.neighboured:
        return {}
    from tasks.audit.neighbours import NEIGHBOURS, neighbours_of

    words = np.array([len(normalise(line)) for line in lines])
    chosen = np.random.default_rng(settings.seed).permutation(np.flatnonzero(words))[: settings.neighboured].tolist()
    found = neighbours_of([lines[number] for number in chosen], settings.attacker, settings.seed, attacked.threads)
    of_lines = {number: [lines[number], *others] for number, others in zip(chosen, found, strict=True) if others}
    scores = np.stack([*score_references(attacked.model, of_lines).values()])  # (S, 1 + N)
    rows = np.array([*of_lines])
    documents = np.array([attacked.documents[number] for number in rows])
    attacker = f"log-probability less the mean of {NEIGHBOURS} lines with a word exchanged by {settings.attacker}"
    own = less_neighbours(scores[:, 0], scores[:, 1:])
    blind = -words[rows].astype(np.float64)
    chance, is_member = _chance(settings), attacked.is_member[rows]
    return membership_figures("membership_neighbourhood", own, blind, is_member, documents, attacker, *chance)


def _chance(settings: AuditSettings) -> tuple[int, float, int]:
    """Resamples, level and seed of the intervals."""
    return settings.bootstrap_samples, settings.confidence, settings.seed
