"""presidio-analyzer as tagger: recognisers by pattern, checksum and context word, and a spaCy pipeline's entities.

The results equal those of presidio's own ``BatchAnalyzerEngine`` with the same recognisers and pipeline, but take less
time. A recogniser whose patterns do not occur is not run. Telephone numbers are not searched in texts with too few
digits. The words near a match are prepared only where a context word can raise its score.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError
from tasks.masking.settings import PresidioTagger
from tasks.masking.taggers.presidio_recognisers import FEWEST_PHONE_DIGITS, digits
from tasks.masking.taggers.spacy_tagger import languages_of, load_pipeline, tagged_lines
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.torch_setup import set_up_installed_torch

if TYPE_CHECKING:
    from presidio_analyzer import EntityRecognizer, RecognizerResult
    from spacy.tokens import Doc


class PresidioModel(Tagger):
    """presidio's recognisers on a loaded spaCy pipeline."""

    def __init__(self, settings: PresidioTagger, threads: int) -> None:
        """Raises ``ModelError`` as ``spacy_tagger.load_pipeline``."""
        self.name = f"presidio:{settings.model}"
        self._batch_size, self._minimum_score = settings.batch_size, settings.minimum_score
        pipeline = load_pipeline(settings.model)
        # presidio imports an installed PyTorch for recognisers that are not used here.
        set_up_installed_torch(threads)
        from presidio_analyzer import EntityRecognizer

        from tasks.masking.taggers.presidio_engine import LANGUAGE, Artifacts, analyzer_engine

        self._artifacts, self._without_duplicates = Artifacts, EntityRecognizer.remove_duplicates
        self.engine = analyzer_engine(pipeline)
        self._pipeline = pipeline
        self.languages = languages_of(pipeline)
        self._recognisers = [(recogniser, _check_of(recogniser)) for recogniser in self.engine.registry.recognizers]
        self._types = self.engine.get_supported_entities(LANGUAGE)

    @property
    def entity_types(self) -> list[str]:
        """The types of all recognisers."""
        return sorted(self._types)

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its results by presidio's rules, the highest score first; long lines are split."""
        return tagged_lines(self._pipeline, lines, self._batch_size, self._spans)

    def _spans(self, document: "Doc") -> list[EntitySpan]:
        return [
            EntitySpan(
                result.start,
                result.end,
                result.entity_type,
                result.score,
                result.recognition_metadata["recognizer_name"],
            )
            for result in self.results(document)
        ]

    def results(self, document: "Doc") -> "list[RecognizerResult]":
        """The results for one document of the pipeline, as ``AnalyzerEngine.analyze`` does."""
        text = document.text
        nlp_engine: Any = self.engine.nlp_engine
        artifacts = None
        found: list[RecognizerResult] = []
        by_context = False
        for recogniser, may_find in self._recognisers:
            if may_find(document, text):
                artifacts = artifacts or self._artifacts(document, nlp_engine)
                results = recogniser.analyze(text=text, entities=self._types, nlp_artifacts=artifacts)
                by_context |= bool(results) and bool(recogniser.context)
                found += results
        if by_context and artifacts is not None:
            try:
                found = self.engine.context_aware_enhancer.enhance_using_context(
                    text=text,
                    raw_results=found,
                    nlp_artifacts=artifacts,
                    recognizers=list(self.engine.registry.recognizers),
                )
            except ValueError:
                # Its message quotes the text.
                raise ModelError(
                    f"{self.name}: presidio found a match at a place where the pipeline has no word; "
                    "the pipeline's tokenizer leaves text out, take another pipeline"
                ) from None
        found = [result for result in found if result.score >= self._minimum_score]
        return self._without_duplicates(found) if found else found


def _check_of(recogniser: "EntityRecognizer") -> "Callable[[Doc, str], bool]":
    """A quick check of a document and its text, which spaCy joins at each access: false if nothing can be found."""
    import regex
    from presidio_analyzer import PatternRecognizer
    from presidio_analyzer.predefined_recognizers import PhoneRecognizer, SpacyRecognizer

    if type(recogniser) is SpacyRecognizer:
        return lambda document, _: bool(document.ents)
    if isinstance(recogniser, PhoneRecognizer):
        return lambda _, text: digits(text) >= FEWEST_PHONE_DIGITS
    if isinstance(recogniser, PatternRecognizer) and type(recogniser).analyze is PatternRecognizer.analyze:
        known: Any = recogniser
        searches = [regex.compile(pattern.regex, known.global_regex_flags).search for pattern in known.patterns]
        return lambda _, text: any(search(text) for search in searches)
    return lambda *_: True
