"""Every tagger that ships: mask the words that the word classifier, the conditional random field or presidio finds.

On court decisions that none was tuned on, each finds 76 to 86 % of the identifiers' words, and all three together 94 %.
So this technique is meant for a release. It is also the **reference reader**: where no person has reviewed the private
text, other techniques are measured by its findings (``tasks.review``).
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.masking.settings import CrfTagger, PresidioTagger, TaggerSettings, TechniqueSettings, WordClassifierTagger
from tasks.masking.taggers.entity_tagger import EntityTagger

if TYPE_CHECKING:
    from tasks.masking.combined_techniques import CombinedTechniques

EVERY_TAGGER = "every_tagger"
"""Kind of the technique, and its name in ``masking`` as the reference reader."""
TAGGERS: tuple[TaggerSettings, ...] = (
    WordClassifierTagger(kind="word_classifier"),
    CrfTagger(kind="crf"),
    PresidioTagger(kind="presidio"),
)
"""Shipped taggers with their models; the first one that finds a word gives its class."""


class EveryTagger(TechniqueSettings):
    """Mask the words that any shipped tagger finds."""

    sentence: ClassVar[str] = "Mask what any tagger that ships finds: word_classifier, crf or presidio."
    kind: Literal["every_tagger"]

    @property
    def parts(self) -> list[EntityTagger]:
        """The taggers as techniques."""
        return [EntityTagger(kind="entity_tagger", tagger=tagger) for tagger in TAGGERS]

    def build(self, word_counts: str | None, threads: int) -> "CombinedTechniques":
        """The technique with all models loaded."""
        from tasks.masking.combined_techniques import CombinedTechniques

        return CombinedTechniques([part.build(word_counts, threads) for part in self.parts], "union")
