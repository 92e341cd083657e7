"""The attacks of an audit, each a function of an attacked text, model or tagger.

To add an attack, add one function and one row here, or an entry point of one of the three groups in another package. It
returns its figures by name, and none if there is nothing to attack. ``tasks.results.measures`` lists the figures that
tables show.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from tasks.audit.attacked import AttackedModel, AttackedText
from tasks.audit.exposure import canary_exposure
from tasks.audit.extraction import extraction
from tasks.audit.figure import Figure
from tasks.audit.ladder import ladder
from tasks.audit.model_attacks import membership, neighbourhood
from tasks.audit.tagger_attacks import AttackedTagger, membership_of_lines, names_in_files, names_in_sentences
from tasks.audit.text_attacks import guesses, same_entities, second_fill, substitutes, unmasked, verbatim
from tasks.errors import ParameterError

ATTACKS: dict[type, tuple[str, tuple[Callable[..., dict[str, Figure]], ...]]] = {
    AttackedText: (
        "palimpsest.text_attacks",
        (verbatim, unmasked, guesses, ladder, substitutes, same_entities, second_fill),
    ),
    # Extraction is the last: after it has sampled, the model is not used again.
    AttackedModel: ("palimpsest.model_attacks", (canary_exposure, membership, neighbourhood, extraction)),
    AttackedTagger: ("palimpsest.tagger_attacks", (membership_of_lines, names_in_sentences, names_in_files)),
}
"""By what is attacked: the group of entry points of other packages, with the same signature, and our attacks."""


def figures_of(attacked: AttackedText | AttackedModel | AttackedTagger) -> dict[str, Figure]:
    """Figures of all attacks; ``ParameterError`` if two attacks have a figure of one name."""
    group, own = ATTACKS[type(attacked)]
    # Attacks of other packages come first: our last attack uses the model up.
    attacks: list[Any] = [*(point.load() for point in entry_points(group=group)), *own]
    found: dict[str, Figure] = {}
    for attack in attacks:
        figures = attack(attacked)
        if twice := found.keys() & figures.keys():
            raise ParameterError(f"two attacks ({group}) have a figure {min(twice)!r}; rename the package's figure")
        found |= figures
    return found
