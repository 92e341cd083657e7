"""A GLiNER2 model as tagger: it finds the entity types that the settings name in words, such as ``phone number``.

The package ``gliner2`` (Zaratiana et al. 2025) loads the model, and reads long lines in overlapping windows.
"""

from collections.abc import Iterable, Iterator

from tasks.masking.settings import GlinerTagger
from tasks.masking.taggers.tagger import EntitySpan, Tagger, blocks_of_text
from tasks.model_source import locate_model, unreachable
from tasks.torch_setup import set_up_torch

_BATCHES_PER_BLOCK = 16


class GlinerModel(Tagger):
    """A loaded model with the entity types to find."""

    def __init__(self, settings: GlinerTagger, threads: int) -> None:
        self.name = f"gliner:{settings.model}"
        self._settings = settings
        set_up_torch(threads)
        import torch
        import transformers
        from gliner2 import AutoExtractor

        # It warns of the kind of configuration of every GLiNER2 model.
        transformers.logging.set_verbosity_error()
        try:
            model = AutoExtractor.from_pretrained(locate_model(settings.model))
        except (OSError, ValueError, KeyError) as error:
            raise unreachable(settings.model, error) from None
        self._model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    @property
    def entity_types(self) -> list[str]:
        """The types of the settings."""
        return sorted(self._settings.entity_types)

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """The entities of each line. The model ends a line with a full stop of its own, which is no part of a span."""
        for block in blocks_of_text(lines, self._settings.batch_size * _BATCHES_PER_BLOCK):
            answers = self._model.batch_extract_entities_long(
                block,
                self._settings.entity_types,
                batch_size=self._settings.batch_size,
                threshold=self._settings.minimum_score,
                include_confidence=True,
                include_spans=True,
            )
            for line, answer in zip(block, answers, strict=True):
                spans = [
                    EntitySpan(found["start"], min(found["end"], len(line)), name, found["confidence"])
                    for name, entities in answer["entities"].items()
                    for found in entities
                ]
                yield line, [span for span in spans if span.start < span.end]
