"""What a language model gives away of the text that it was trained on: canaries, membership, a bound on epsilon.

All three go by the calibrated score of a line: its log-probability under the attacked model less that under the model
before it was adapted, which says how probable the line is for whoever has not seen it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.audit.canaries import FAMILIES, Canaries, Family
from tasks.audit.figure import Figure
from tasks.audit.line_scores import LineScores, score_lines, score_references
from tasks.audit.settings import AuditSettings

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel

_FROM_LOSS = "loss ratio to the model before it was adapted"
_LOWEST = 0.2
"""Share of a line's targets that Min-K% reads, as in its paper."""
Form = tuple[Family, int]


@dataclass(frozen=True)
class Shadow:
    """What another model, trained in the same way on some of the lines, says of all of them."""

    means: np.ndarray
    """Mean log-probability of a target of each line that has a word (S,), in nats."""
    is_member: np.ndarray
    """Of each line (L,), whether it was trained on it, bool."""


def canary_figures(
    attacked: "LanguageModel", base: "LanguageModel", canaries: Canaries, settings: AuditSettings
) -> dict[str, Figure]:
    """``exposure_figures`` of a language model; ``base``: the one that it was adapted from."""

    def score(sentences: Mapping[Form, Sequence[str]]) -> dict[Form, np.ndarray]:
        after, before = score_references(attacked, sentences), score_references(base, sentences)
        return {form: after[form] - before[form] for form in sentences}

    return exposure_figures(score, canaries, settings, _FROM_LOSS)


def exposure_figures(
    score: Callable[[Mapping[Form, Sequence[str]]], Mapping[Form, np.ndarray]],
    canaries: Canaries,
    settings: AuditSettings,
    by: str,
) -> dict[str, Figure]:
    """Exposure of each family by repetitions, in bits, and the bound on epsilon from the coins, if there are any.

    ``exposure_kept_4`` is that of common words planted four times, ``exposure`` that of names at the most repetitions,
    ``exposure_extrapolated`` the same beyond the number of references.
    ``score`` gives calibrated scores (S,) of sentences by form; ``by`` says what these are.
    """
    from tasks.audit.exposure import mean_exposure
    from tasks.audit.one_run_epsilon import guess_and_bound

    if not canaries.planted:
        # Word counts of a text so small, or so unlike any language, that it has no words for any family.
        return {}
    forms: dict[Form, list[str]] = {form: list(lines) for form, lines in canaries.references.items()}
    planted: dict[Form, list[int]] = {form: [] for form in forms}
    for number, canary in enumerate(canaries.planted):
        planted[canary.family, canary.form].append(number)
        forms[canary.family, canary.form].append(canary.text)
    calibrated = score(forms)
    references = {form: calibrated[form][: len(lines)] for form, lines in canaries.references.items()}
    scores = np.empty(len(canaries.planted))
    for form, numbers in planted.items():
        scores[numbers] = calibrated[form][len(references[form]) :]
    repetitions = sorted({canary.repetitions for canary in canaries.planted if canary.repetitions})
    most = repetitions[-1]
    found = {}
    number = max(map(len, references.values()))
    attacker = f"rank among {number:,} sentences of the same form, by the {by}"
    for family in FAMILIES:
        for times in repetitions:
            groups = {
                form: (
                    np.array([scores[n] for n in numbers if canaries.planted[n].repetitions == times]),
                    references[form],
                )
                for form, numbers in planted.items()
                if form[0] == family
            }
            # What masking is for, and the most repetitions, are what is spoken of if nothing else is said.
            own = [family] * (family != "masked")
            told = f"{attacker}; {times} times in the text"
            chance = settings.bootstrap_samples, settings.confidence, settings.seed
            name = "_".join(["exposure", *own, *[str(times)] * (times < most)])
            found[name] = mean_exposure(list(groups.values()), told, *chance)
            if times == most:
                told = f"{told}; by a skew normal fitted to theirs"
                spaces = [canaries.bits[form] for form in groups]
                name = "_".join(["exposure_extrapolated", *own])
                found[name] = mean_exposure(list(groups.values()), told, *chance, spaces=spaces)
    coins = [number for number, canary in enumerate(canaries.planted) if canary.is_coin]
    if not coins:
        return found
    found["epsilon_lower_bound"] = guess_and_bound(
        scores[coins],
        np.array([bool(canaries.planted[number].repetitions) for number in coins]),
        guesses=round(settings.guessed_share * len(coins)),
        attacker=f"lower bound at {settings.confidence:.0%} from canaries that a coin put in, by the {by}",
        seed=settings.seed,
        confidence=settings.confidence,
    )
    return found


def membership_of(
    attacked: "LanguageModel",
    before: LineScores | None,
    lines: Sequence[str],
    is_member: np.ndarray,
    documents: Sequence[str],
    settings: AuditSettings,
    shadows: Sequence[Shadow] = (),
) -> dict[str, Figure]:
    """Are lines that a model was trained on told from others?

    ``is_member`` and ``documents``: of each line (L,). ``before``: the lines under the model that it was adapted from;
    without it the attacker has the attacked model's scores alone, and blind is the length of a line. Each line has as
    many ``shadows`` that were trained on it as any other.
    """
    from tasks.audit.membership import lira, loss_ratio, min_k

    own = score_lines(attacked, lines)
    first = is_member[own.lines]
    named = np.unique(np.array([documents[number] for number in own.lines]), return_inverse=True)[1]
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
        found |= _told(name, scores, blind, first, named, attacker, settings)
    return found


def neighbourhood_of(
    attacked: "LanguageModel",
    lines: Sequence[str],
    is_member: np.ndarray,
    documents: Sequence[str],
    settings: AuditSettings,
    threads: int,
) -> dict[str, Figure]:
    """The same of ``neighboured`` lines, each held against its neighbours; blind is its length."""
    from tasks.audit.membership import neighbourhood
    from tasks.audit.neighbours import NEIGHBOURS, neighbours_of
    from tasks.language_model.normalisation import normalise

    words = np.array([len(normalise(line)) for line in lines])
    chosen = np.random.default_rng(settings.seed).permutation(np.flatnonzero(words))[: settings.neighboured].tolist()
    found = neighbours_of([lines[number] for number in chosen], settings.attacker, settings.seed, threads)
    of_lines = {number: [lines[number], *others] for number, others in zip(chosen, found, strict=True) if others}
    scores = np.stack([*score_references(attacked, of_lines).values()])  # (S, 1 + N)
    rows = np.array([*of_lines])
    named = np.unique(np.array([documents[number] for number in rows]), return_inverse=True)[1]
    attacker = f"log-probability less the mean of {NEIGHBOURS} lines with a word exchanged by {settings.attacker}"
    own = neighbourhood(scores[:, 0], scores[:, 1:])
    blind = -words[rows].astype(np.float64)
    return _told("membership_neighbourhood", own, blind, is_member[rows], named, attacker, settings)


def _told(
    name: str,
    scores: np.ndarray,
    blind: np.ndarray,
    first: np.ndarray,
    documents: np.ndarray,
    attacker: str,
    settings: AuditSettings,
) -> dict[str, Figure]:
    """Figures by scores and blind scores (S,) of lines, of which ``first`` (S,) says whether they are members."""
    from tasks.audit.membership import membership_figures

    figures = membership_figures(
        scores[first],
        scores[~first],
        blind[first],
        blind[~first],
        documents[first],
        documents[~first],
        attacker=attacker,
        samples=settings.bootstrap_samples,
        confidence=settings.confidence,
        seed=settings.seed,
    )
    return {f"{name}{key.removeprefix('membership')}": figure for key, figure in figures.items()}
