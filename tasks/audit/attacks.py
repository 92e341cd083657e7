"""The attacks of an audit, each a function of an attacked text, model or tagger.

To add an attack, add one function and one row here, or an entry point of one of the three groups in another package. It
returns its figures by name, and none if there is nothing to attack. ``tasks.results.measures`` lists the figures that
tables show.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import TypeVar

from tasks.audit.attacked import AttackedModel, AttackedText
from tasks.audit.extraction import extraction
from tasks.audit.figure import Figure
from tasks.audit.ladder import ladder
from tasks.audit.model_attacks import canary_exposure, membership, neighbourhood
from tasks.audit.tagger_attacks import AttackedTagger, membership_of_lines, names_in_files, names_in_sentences
from tasks.audit.text_attacks import (
    guesses,
    same_entities,
    second_fill,
    substitutes,
    unmasked,
    verbatim,
)
from tasks.errors import ParameterError

ON_TEXTS: tuple[Callable[[AttackedText], dict[str, Figure]], ...] = (
    verbatim,
    unmasked,
    guesses,
    ladder,
    substitutes,
    same_entities,
    second_fill,
)
ON_MODELS: tuple[Callable[[AttackedModel], dict[str, Figure]], ...] = (
    canary_exposure,
    membership,
    neighbourhood,
    extraction,  # the last: after it has sampled, the model is not used again
)
ON_TAGGERS: tuple[Callable[[AttackedTagger], dict[str, Figure]], ...] = (
    membership_of_lines,
    names_in_sentences,
    names_in_files,
)
TEXT_GROUP, MODEL_GROUP, TAGGER_GROUP = (f"palimpsest.{what}_attacks" for what in ("text", "model", "tagger"))
"""Entry points of other packages, with the same signature."""
Attacked = TypeVar("Attacked", AttackedText, AttackedModel, AttackedTagger)


def figures_of_text(attacked: AttackedText) -> dict[str, Figure]:
    """Figures of all attacks on a text."""
    return _figures(attacked, ON_TEXTS, TEXT_GROUP)


def figures_of_model(attacked: AttackedModel) -> dict[str, Figure]:
    """Figures of all attacks on a language model."""
    return _figures(attacked, ON_MODELS, MODEL_GROUP)


def figures_of_tagger(attacked: AttackedTagger) -> dict[str, Figure]:
    """Figures of all attacks on a tagger."""
    return _figures(attacked, ON_TAGGERS, TAGGER_GROUP)


def _figures(
    attacked: Attacked, own: Iterable[Callable[[Attacked], dict[str, Figure]]], group: str
) -> dict[str, Figure]:
    # Attacks of other packages come first: our last attack uses the model up.
    found: dict[str, Figure] = {}
    for attack in [*(point.load() for point in entry_points(group=group)), *own]:
        figures = attack(attacked)
        if twice := found.keys() & figures.keys():
            raise ParameterError(f"two attacks ({group}) have a figure {min(twice)!r}; rename the package's figure")
        found |= figures
    return found
