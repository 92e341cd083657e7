"""Settings of a combination of techniques; ``tasks.masking.combined_techniques`` has the decision rules."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Union

from pydantic import Field, model_validator

from tasks.languages.segmentation import DIVIDED
from tasks.masking.combined_techniques import CombinedTechniques, Rule
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.lists.allow_list import AllowList
from tasks.masking.lists.language_lists import LanguageLists
from tasks.masking.lists.vocabulary_threshold import VocabularyThreshold
from tasks.masking.settings import TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.settings.base import any_of

GROUP = "palimpsest.techniques"
"""Entry point group of other packages: settings classes of techniques."""
PARTS = (AllowList, VocabularyThreshold, LanguageLists, EntityTagger, EveryTagger)
"""Techniques of this package that can be part of a combination; other packages' techniques and combinations can too."""
if TYPE_CHECKING:
    AnyPart = TechniqueSettings
else:
    AnyPart = Annotated[Union[any_of(GROUP, PARTS), "Combination"], Field(discriminator="kind")]


class Combination(TechniqueSettings):
    """Mask the words that any, all or most of several techniques find."""

    sentence: ClassVar[str] = "Mask what any, all or most of several techniques find."
    kind: Literal["combination"]
    rule: Rule
    """``majority``: more than half of the parts."""
    parts: list[AnyPart] = Field(min_length=2)
    """The techniques, each with its settings; combinations may be among them."""

    @model_validator(mode="after")
    def _parts_write_no_markers(self) -> "Combination":
        if any("markers" in part.model_fields_set for part in self.parts):
            raise ValueError("parts: 'markers' is a setting of the combination, not of its parts")
        if any(isinstance(part, LanguageLists) and DIVIDED.intersection(part.lists) for part in self.parts):
            raise ValueError("parts: language_lists divides Chinese and Japanese as no other part does; it masks alone")
        return self

    def build(self, word_counts: str | None, threads: int) -> "CombinedTechniques":
        """The combination with all parts built."""
        return CombinedTechniques([part.build(word_counts, threads) for part in self.parts], self.rule)

    @property
    def files(self) -> list[str]:
        """The files of all parts."""
        return [file for part in self.parts for file in part.files]

    @property
    def reads_word_counts(self) -> bool:
        """Whether any part reads word counts."""
        return any(part.reads_word_counts for part in self.parts)
