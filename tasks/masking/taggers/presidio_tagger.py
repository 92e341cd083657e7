"""presidio-analyzer as tagger: recognisers by pattern, checksum and context word, and a spaCy pipeline's entities.

The results equal those of presidio's own ``BatchAnalyzerEngine`` with the same recognisers and pipeline, but take less
time. A recogniser whose patterns do not occur is not run. Telephone numbers are not searched in texts with too few
digits. The words near a match are prepared only where a context word can raise its score.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError
from tasks.masking.settings import PresidioTagger
from tasks.masking.taggers.presidio_recognisers import FEWEST_PHONE_DIGITS, digits
from tasks.masking.taggers.spacy_tagger import documents, languages_of, load_pipeline
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.torch_setup import set_up_torch

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
        # presidio imports PyTorch for recognisers that are not used here.
        set_up_torch(threads)
        from presidio_analyzer import EntityRecognizer

        from tasks.masking.taggers.presidio_engine import LANGUAGE, Artifacts, analyzer_engine

        self._artifacts, self._without_duplicates = Artifacts, EntityRecognizer.remove_duplicates
        self.engine = analyzer_engine(pipeline)
        self._pipeline = pipeline
        self.languages = languages_of(pipeline)
        self._recognisers = [_Recogniser(recogniser) for recogniser in self.engine.registry.recognizers]
        self._types = self.engine.get_supported_entities(LANGUAGE)

    @property
    def entity_types(self) -> list[str]:
        """The types of all recognisers."""
        return sorted(self._types)

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its results by presidio's rules, the highest score first; long lines are split."""
        line = ""
        spans: list[EntitySpan] = []
        for window, text, document in documents(self._pipeline, lines, self._batch_size):
            if window.start == 0:
                line, spans = text, []
            spans += [
                EntitySpan(
                    window.start + result.start,
                    window.start + result.end,
                    result.entity_type,
                    result.score,
                    result.recognition_metadata["recognizer_name"],
                )
                for result in self.results(document)
                if window.core_start <= window.start + result.start < window.core_end
            ]
            if window.end == len(line):
                yield line, spans

    def results(self, document: "Doc") -> "list[RecognizerResult]":
        """The results for one document of the pipeline, as ``AnalyzerEngine.analyze`` does."""
        text = document.text
        nlp_engine: Any = self.engine.nlp_engine
        artifacts = None
        found: list[RecognizerResult] = []
        by_context = False
        for recogniser in self._recognisers:
            if recogniser.may_find(text, document):
                if artifacts is None:
                    artifacts = self._artifacts(document, nlp_engine)
                results = recogniser.recogniser.analyze(text=text, entities=self._types, nlp_artifacts=artifacts)
                by_context |= bool(results) and bool(recogniser.recogniser.context)
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


class _Recogniser:
    """A recogniser of presidio, and a quick check whether it can find anything."""

    def __init__(self, recogniser: "EntityRecognizer") -> None:
        import regex
        from presidio_analyzer import PatternRecognizer
        from presidio_analyzer.predefined_recognizers import PhoneRecognizer, SpacyRecognizer

        self.recogniser = recogniser
        self._by_entities = type(recogniser) is SpacyRecognizer
        self._by_digits = isinstance(recogniser, PhoneRecognizer)
        self._searches: list[Any] | None = None
        if isinstance(recogniser, PatternRecognizer) and type(recogniser).analyze is PatternRecognizer.analyze:
            known: Any = recogniser
            flags = known.global_regex_flags
            self._searches = [regex.compile(pattern.regex, flags).search for pattern in known.patterns]

    def may_find(self, text: str, document: "Doc") -> bool:
        """False if the recogniser is sure to find nothing."""
        if self._searches is not None:
            return any(search(text) for search in self._searches)
        if self._by_entities:
            return bool(document.ents)
        if self._by_digits:
            return digits(text) >= FEWEST_PHONE_DIGITS
        return True
