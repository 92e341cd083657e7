"""presidio-analyzer as tagger: recognisers by pattern, checksum and context word, and a spaCy pipeline's entities.

presidio runs on a pipeline that is already loaded, so nothing is downloaded. Context words are compared with the
lower-case forms of the words near a match instead of their lemmas. presidio looks for a context word inside a word
(*card* in *cards*), so endings change nothing. The pipeline then needs no tagger and no lemmatizer.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError
from tasks.masking.settings import PresidioTagger
from tasks.masking.taggers.presidio_recognisers import TIME_STAMP, recognisers
from tasks.masking.taggers.spacy_tagger import labels_of, languages_of, load_pipeline, tagged_lines
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.torch_setup import set_up_installed_torch

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpArtifacts
    from spacy.language import Language
    from spacy.tokens import Doc

_LANGUAGE = "en"
_TYPES_OF_LABELS = {
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
_IGNORED_LABELS = frozenset("CARDINAL EVENT LANGUAGE LAW MONEY ORDINAL PERCENT PRODUCT QUANTITY WORK_OF_ART".split())
"""Labels that presidio itself ignores; it ignores organisations too, palimpsest does not."""
_TIMES = ("DATE", "TIME")
_SURE, _VAGUE = 0.85, 0.3
"""Confidence in an entity of the pipeline, as presidio has it; and in times without a digit, month or weekday (*next
week*, *a few years*) and time stamps of computers. They identify nobody: it is below the default ``minimum_score``."""
_CLEAR_TIME = re.compile(
    r"\d|\b(?:jan|feb|mar(?:ch)?\b|apr|may\b|june?\b|july?\b|aug(?:ust)?\b|sept?|oct|nov|dec"
    r"|mon(?:day)?s?\b|tues?|wedn?|thurs?|fri(?:day)?s?\b|satur|sat\b|sun(?:day)?s?\b)",
    re.IGNORECASE,
)


class PresidioModel(Tagger):
    """presidio's recognisers on a loaded spaCy pipeline."""

    def __init__(self, settings: PresidioTagger, threads: int) -> None:
        """Raises ``ModelError`` as ``spacy_tagger.load_pipeline``."""
        self.name = f"presidio:{settings.model}"
        self._batch_size, self._minimum_score = settings.batch_size, settings.minimum_score
        self._pipeline = load_pipeline(settings.model)
        # presidio imports an installed PyTorch for recognisers that are not used here.
        set_up_installed_torch(threads)
        self._engine = _analyzer_engine(self._pipeline)
        self.languages = languages_of(self._pipeline)

    @property
    def entity_types(self) -> list[str]:
        """The types of all recognisers."""
        return sorted(self._engine.get_supported_entities(_LANGUAGE))

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its results by presidio's rules, the highest score first; long lines are split."""
        return tagged_lines(self._pipeline, lines, self._batch_size, self._spans)

    def _spans(self, document: "Doc") -> list[EntitySpan]:
        artifacts = _artifacts(document, self._engine)
        try:
            results = self._engine.analyze(
                document.text, _LANGUAGE, score_threshold=self._minimum_score, nlp_artifacts=artifacts
            )
        except ValueError:
            # Its message quotes the text.
            raise ModelError(
                f"{self.name}: presidio found a match at a place where the pipeline has no word; "
                "the pipeline's tokenizer leaves text out, take another pipeline"
            ) from None
        return [
            EntitySpan(one.start, one.end, one.entity_type, one.score, one.recognition_metadata["recognizer_name"])
            for one in results
        ]


def _analyzer_engine(pipeline: "Language") -> "AnalyzerEngine":
    """Presidio's engine for English with our recognisers and the entities of a pipeline."""
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.predefined_recognizers import SpacyRecognizer

    types = {label: _TYPES_OF_LABELS.get(label, label) for label in labels_of(pipeline) - _IGNORED_LABELS}
    configuration = NerModelConfiguration(model_to_presidio_entity_mapping=types, labels_to_ignore=[])
    engine = SpacyNlpEngine(ner_model_configuration=configuration)
    loaded: Any = {_LANGUAGE: pipeline}
    engine.nlp = loaded
    by_pipeline = SpacyRecognizer(supported_language=_LANGUAGE, supported_entities=sorted(set(types.values())))
    registry = RecognizerRegistry(recognizers=[*recognisers(), by_pipeline], supported_languages=[_LANGUAGE])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[_LANGUAGE])


def _artifacts(document: "Doc", engine: "AnalyzerEngine") -> "NlpArtifacts":
    """What recognisers and context words read of a text: entities under presidio's types, and words."""
    from presidio_analyzer.nlp_engine import NlpArtifacts

    entities = [entity for entity in document.ents if entity.label_ not in _IGNORED_LABELS]
    scores = [_VAGUE if entity.label_ in _TIMES and not _is_clear(entity.text) else _SURE for entity in entities]
    for entity in entities:
        entity.label_ = _TYPES_OF_LABELS.get(entity.label_, entity.label_)
    places = [token.idx for token in document]
    words = [token.lower_ for token in document]
    return NlpArtifacts(entities, document, places, words, engine.nlp_engine, _LANGUAGE, scores)


def _is_clear(time: str) -> bool:
    return _CLEAR_TIME.search(time) is not None and not TIME_STAMP.fullmatch(time)
