"""Every tagger that ships: mask what the word classifier, the conditional random field or presidio finds.

Of court decisions that none of them was tuned on, each finds 76 to 86 % of the identifiers' words, and all three
together 94 %. So it is the technique meant for a release, and the **reference reader**: other techniques are measured
by what it finds in the private text, where no person has reviewed that (``tasks.review``).
"""

from typing import TYPE_CHECKING, ClassVar, Literal

from tasks.masking.settings import CrfTagger, PresidioTagger, TaggerSettings, TechniqueSettings, WordClassifierTagger
from tasks.masking.taggers.entity_tagger import EntityTagger

if TYPE_CHECKING:
    from tasks.masking.combination import CombinedTechniques

EVERY_TAGGER = "every_tagger"
"""The kind, and the name in ``masking`` of the technique that is the reference reader."""
TAGGERS: tuple[TaggerSettings, ...] = (
    WordClassifierTagger(kind="word_classifier"),
    CrfTagger(kind="crf"),
    PresidioTagger(kind="presidio"),
)
"""With their shipped models. The class of a word is that of the first of them that finds it."""


class EveryTagger(TechniqueSettings):
    """Mask what any tagger that ships finds."""

    sentence: ClassVar[str] = "Mask what any tagger that ships finds: word_classifier, crf or presidio."
    kind: Literal["every_tagger"]

    @property
    def parts(self) -> list[EntityTagger]:
        """The taggers as techniques."""
        return [EntityTagger(kind="entity_tagger", tagger=tagger) for tagger in TAGGERS]

    def build(self, word_counts: str | None, threads: int) -> "CombinedTechniques":
        """With all models loaded."""
        from tasks.masking.combination import CombinedTechniques

        return CombinedTechniques([part.build(word_counts, threads) for part in self.parts], "union")
