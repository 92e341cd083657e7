"""A Hugging Face token classifier as tagger: ``dslim/bert-base-NER``, the paper's, or ``openai/privacy-filter``.

The pipeline of transformers reads long lines in overlapping windows of the model's positions. Neighbouring tokens of
one type are one entity, a ``B-`` tag begins a new one, and the score is the mean of the tokens' scores. The pipeline
does not know tags of the last token and of the only one (``E-``, ``S-``): they become ``I-`` and ``B-``.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from tasks.errors import ModelError
from tasks.masking.settings import TransformersTagger
from tasks.masking.taggers.tagger import EntitySpan, Tagger, blocks_of_text, positions_of
from tasks.model_source import locate_model, unreachable
from tasks.torch_setup import set_up_torch

_OUTSIDE = "O"
_BEGIN_OR_INSIDE = {"E-": "I-", "S-": "B-"}
_BATCHES_PER_BLOCK = 16


class TransformersModel(Tagger):
    """A loaded token classifier and its tokenizer."""

    def __init__(self, settings: TransformersTagger, threads: int) -> None:
        self.name = f"transformers:{settings.model}"
        self._batch_size, self._minimum_score = settings.batch_size, settings.minimum_score
        set_up_torch(threads)
        # The hub's client logs every failed request; the error says it once.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        import torch
        import transformers
        from transformers import AutoModelForTokenClassification, AutoTokenizer, TokenClassificationPipeline

        transformers.logging.disable_progress_bar()
        location = locate_model(settings.model)
        try:
            tokenizer = AutoTokenizer.from_pretrained(location)
            model = AutoModelForTokenClassification.from_pretrained(location, dtype=torch.float32)
        except (OSError, ValueError, KeyError) as error:
            raise unreachable(settings.model, error) from None
        if not tokenizer.is_fast:
            raise ModelError(
                f"model {settings.model!r}: its tokenizer gives no character offsets; use one that is fast"
            )
        model.config.id2label = {
            number: _BEGIN_OR_INSIDE.get(label[:2], label[:2]) + label[2:]
            for number, label in model.config.id2label.items()
        }
        self._labels = list(model.config.id2label.values())
        tokenizer.model_max_length = positions_of(model.config, tokenizer)
        self._pipeline: Any = TokenClassificationPipeline(
            model=model,
            tokenizer=tokenizer,
            aggregation_strategy="simple",
            stride=tokenizer.model_max_length // 4,
            device="cuda" if torch.cuda.is_available() else "cpu",
        )

    @property
    def entity_types(self) -> list[str]:
        """The model's labels without their ``B-`` and ``I-``, and without ``O``."""
        return sorted({label.removeprefix("B-").removeprefix("I-") for label in self._labels} - {_OUTSIDE})

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """The entities of each line."""
        for block in blocks_of_text(lines, self._batch_size * _BATCHES_PER_BLOCK):
            for line, entities in zip(block, self._pipeline(block, batch_size=self._batch_size), strict=True):
                yield (
                    line,
                    [
                        EntitySpan(found["start"], found["end"], found["entity_group"], float(found["score"]))
                        for found in entities
                        if found["score"] >= self._minimum_score
                    ],
                )
