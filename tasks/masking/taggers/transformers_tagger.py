"""A Hugging Face token classifier as tagger, such as BERT-NER (``dslim/bert-base-NER``, the paper's).

Long lines are seen in overlapping windows of the model's positions; every token is judged once, in the window where it
has most context on both sides. Neighbouring tokens of one type are one entity, a ``B-`` tag begins a new one.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from tasks.errors import ModelError
from tasks.masking.settings import TransformersTagger
from tasks.masking.taggers.tagger import EntitySpan, Tagger, blocks
from tasks.model_source import locate_model, unreachable
from tasks.torch_setup import set_up_torch

_OUTSIDE = "O"
_BATCHES_PER_BLOCK = 16
_MOST_POSITIONS = 512
_CHARACTERS_AT_ONCE = 20_000


class TransformersModel(Tagger):
    """A loaded token classifier and its tokenizer."""

    def __init__(self, settings: TransformersTagger, threads: int) -> None:
        self.name = f"transformers:{settings.model}"
        self._batch_size, self._minimum_score = settings.batch_size, settings.minimum_score
        set_up_torch(threads)
        # The hub's client announces every attempt to reach it; what it comes to is said once, in the error.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        location = locate_model(settings.model)
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(location)
            self._model: Any = AutoModelForTokenClassification.from_pretrained(location).eval()
        except (OSError, ValueError, KeyError) as error:
            raise unreachable(settings.model, error) from None
        if not self._tokenizer.is_fast:
            raise ModelError(
                f"model {settings.model!r}: its tokenizer gives no character offsets; use one that is fast"
            )
        self._labels: list[str] = [self._model.config.id2label[index] for index in range(self._model.config.num_labels)]
        self._positions = _positions(self._model.config, self._tokenizer)

    @property
    def entity_types(self) -> list[str]:
        """The model's labels without their ``B-`` and ``I-``, and without ``O``."""
        return sorted({_type_of(label) for label in self._labels if label != _OUTSIDE})

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Entities of each line; windows of similar length are batched together."""
        for block in _blocks_of_text(lines, self._batch_size * _BATCHES_PER_BLOCK):
            encoded = self._tokenizer(
                block,
                truncation=True,
                max_length=self._positions,
                stride=self._positions // 4,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                return_special_tokens_mask=True,
            )
            predictions = self._predict(encoded)
            tokens: list[list[tuple[int, int, int, float]]] = [[] for _ in block]
            for window, line in enumerate(encoded["overflow_to_sample_mapping"]):
                offsets = encoded["offset_mapping"][window]
                special = encoded["special_tokens_mask"][window]
                judged = [
                    (*offset, label, score)
                    for offset, is_special, (label, score) in zip(offsets, special, predictions[window], strict=True)
                    if not is_special
                ]
                _join(tokens[line], judged)
            for line_text, line_tokens in zip(block, tokens, strict=True):
                yield line_text, self._group(line_tokens)

    def _predict(self, encoded: Any) -> list[list[tuple[int, float]]]:
        """Label and probability of every token of every window, in the windows' order."""
        import torch

        windows = encoded["input_ids"]
        order = sorted(range(len(windows)), key=lambda index: len(windows[index]))
        predictions: list[list[tuple[int, float]]] = [[] for _ in windows]
        names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in encoded]
        for batch in blocks(order, self._batch_size):
            padded = self._tokenizer.pad(
                {name: [encoded[name][index] for index in batch] for name in names}, return_tensors="pt"
            )
            with torch.inference_mode():
                probabilities = self._model(**padded).logits.float().softmax(-1)  # (B, T, labels)
            scores, labels = probabilities.max(-1)
            for row, index in enumerate(batch):
                size = len(windows[index])
                predictions[index] = list(zip(labels[row, :size].tolist(), scores[row, :size].tolist(), strict=True))
        return predictions

    def _group(self, tokens: list[tuple[int, int, int, float]]) -> list[EntitySpan]:
        """Tokens of one line to entities; the score of an entity is the mean of its tokens'."""
        spans: list[EntitySpan] = []
        run: list[tuple[int, int, int, float]] = []

        def close() -> None:
            if run and sum(token[3] for token in run) / len(run) >= self._minimum_score:
                spans.append(EntitySpan(run[0][0], run[-1][1], _type_of(self._labels[run[0][2]])))
            run.clear()

        for token in tokens:
            label = self._labels[token[2]]
            if label == _OUTSIDE or token[0] == token[1]:
                close()
                continue
            if run and (label.startswith("B-") or _type_of(label) != _type_of(self._labels[run[0][2]])):
                close()
            run.append(token)
        close()
        return spans


def _join(known: list[tuple[int, int, int, float]], window: list[tuple[int, int, int, float]]) -> None:
    """Append a window to the tokens before it; of what both have, each half is taken from the nearer window."""
    if known and window:
        shared = sum(1 for token in window if token[0] <= known[-1][0])
        if shared:
            middle = window[shared // 2][0]
            while known and known[-1][0] >= middle:
                known.pop()
            window = [token for token in window if token[0] >= middle]
    known += window


def _type_of(label: str) -> str:
    return label[2:] if label[:2] in ("B-", "I-", "E-", "S-", "L-", "U-") else label


def _positions(config: Any, tokenizer: Any) -> int:
    """Tokens that a window may have, special ones included."""
    positions = min(tokenizer.model_max_length, getattr(config, "max_position_embeddings", None) or _MOST_POSITIONS)
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
        # These count positions from behind the padding index.
        positions = min(positions, config.max_position_embeddings - (config.pad_token_id or 0) - 1)
    return min(positions, _MOST_POSITIONS)


def _blocks_of_text(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Lists of at most ``most`` lines, shorter where lines are long, so that memory stays flat."""
    block: list[str] = []
    characters = 0
    for line in lines:
        block.append(line)
        characters += len(line)
        if len(block) == most or characters >= _CHARACTERS_AT_ONCE * 16:
            yield block
            block, characters = [], 0
    if block:
        yield block
