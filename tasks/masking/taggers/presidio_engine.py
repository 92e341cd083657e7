"""presidio's engine on a spaCy pipeline that is already loaded, so that nothing is downloaded.

Context words are compared with the lower-case forms of the words near a match instead of their lemmas. presidio looks
for a context word inside a word (*card* in *cards*), so endings change nothing. The pipeline then needs no tagger and
no lemmatizer, which take most of its time.
"""

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from presidio_analyzer.nlp_engine import NerModelConfiguration, NlpArtifacts, SpacyNlpEngine
from presidio_analyzer.predefined_recognizers import SpacyRecognizer

from tasks.masking.taggers.presidio_recognisers import TIME_STAMP, recognisers
from tasks.masking.taggers.spacy_tagger import labels_of

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

LANGUAGE = "en"
TYPES_OF_LABELS = {
    "PER": "PERSON",
    "GPE": "LOCATION",
    "LOC": "LOCATION",
    "FAC": "LOCATION",
    "ORG": "ORGANIZATION",
    "NORP": "NRP",
    "DATE": "DATE_TIME",
    "TIME": "DATE_TIME",
}
"""presidio's entity types by a pipeline's labels; other labels stay unchanged."""
IGNORED_LABELS = frozenset("CARDINAL EVENT LANGUAGE LAW MONEY ORDINAL PERCENT PRODUCT QUANTITY WORK_OF_ART".split())
"""Labels that presidio itself ignores; it ignores organisations too, palimpsest does not."""


_TIMES = ("DATE", "TIME")
VAGUE_TIME_SCORE = 0.3
"""Confidence in times without a digit, month or weekday (*next week*, *a few years*), and in time stamps of computers.
They identify nobody. It is below the default ``minimum_score``; presidio's confidence in all other entities is 0.85."""
_CLEAR_TIME = re.compile(
    r"\d|\b(?:jan|feb|mar(?:ch)?\b|apr|may\b|june?\b|july?\b|aug(?:ust)?\b|sept?|oct|nov|dec"
    r"|mon(?:day)?s?\b|tues?|wedn?|thurs?|fri(?:day)?s?\b|satur|sat\b|sun(?:day)?s?\b)",
    re.IGNORECASE,
)


class Artifacts(NlpArtifacts):
    """Data of a text that recognisers and context words read, computed on first use."""

    def __init__(self, document: "Doc", engine: "PipelineEngine") -> None:
        self.tokens, self.nlp_engine = document, engine
        self.entities, self.scores = engine.entities_of(document)

    @cached_property
    def lemmas(self) -> list[str]:  # type: ignore[override]
        """The lower-case form of every token."""
        return [token.lower_ for token in self.tokens]

    @cached_property
    def tokens_indices(self) -> list[int]:  # type: ignore[override]
        """The offset of the first character of every token."""
        return [token.idx for token in self.tokens]

    @cached_property
    def keywords(self) -> list[str]:  # type: ignore[override]
        """Lower-case forms without stop words and punctuation."""
        return self.set_keywords(self.nlp_engine, self.lemmas, LANGUAGE)


class PipelineEngine(SpacyNlpEngine):
    """presidio's NLP engine with a pipeline that is loaded already."""

    def __init__(self, pipeline: "Language") -> None:
        labels = labels_of(pipeline)
        self.mapping = {label: TYPES_OF_LABELS.get(label, label) for label in labels - IGNORED_LABELS}
        configuration = NerModelConfiguration(
            model_to_presidio_entity_mapping=self.mapping, labels_to_ignore=sorted(IGNORED_LABELS)
        )
        super().__init__(ner_model_configuration=configuration)
        self.nlp: Any = {LANGUAGE: pipeline}

    def entities_of(self, document: "Doc") -> tuple[list[Any], list[float]]:
        """Entities under presidio's types, and their scores."""
        return self._get_updated_entities(list(document.ents), self._get_scores_for_entities(document))

    def _get_scores_for_entities(self, doc: "Doc") -> list[float]:
        usual = self.ner_model_configuration.default_score or 0.0
        return [
            VAGUE_TIME_SCORE
            if entity.label_ in _TIMES and (not _CLEAR_TIME.search(entity.text) or TIME_STAMP.fullmatch(entity.text))
            else usual
            for entity in doc.ents
        ]

    def _doc_to_nlp_artifact(self, doc: "Doc", language: str) -> Artifacts:
        return Artifacts(doc, self)


def analyzer_engine(pipeline: "Language") -> AnalyzerEngine:
    """Presidio's ``AnalyzerEngine`` for English with our recognisers and the entities of a pipeline."""
    engine = PipelineEngine(pipeline)
    by_pipeline = SpacyRecognizer(supported_language=LANGUAGE, supported_entities=sorted(set(engine.mapping.values())))
    registry = RecognizerRegistry(recognizers=[*recognisers(), by_pipeline], supported_languages=[LANGUAGE])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[LANGUAGE])
