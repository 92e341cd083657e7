"""A Hugging Face token classifier as tagger, such as BERT-NER (``dslim/bert-base-NER``, the paper's).

Long lines are seen in overlapping windows of the model's positions; every token is judged once, in the window where it
has most context on both sides. Neighbouring tokens of one type are one entity, a ``B-`` tag begins a new one, and the
score is the mean of the tokens': the spans are those of transformers' own pipeline with
``aggregation_strategy="simple"``, in float32, but for tokens whose two best labels differ by rounding alone.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tasks.batches import batches_that_fit
from tasks.errors import ModelError
from tasks.masking.settings import TransformersTagger
from tasks.masking.taggers.tagger import EntitySpan, Tagger, blocks_of_text, positions_of
from tasks.model_source import locate_model, unreachable
from tasks.torch_setup import set_up_torch

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer

_Token = tuple[int, int, int, float]
"""First character, one past the last, number of the label, probability."""
_OUTSIDE = "O"
_BATCHES_PER_BLOCK = 16
_TOKENS_FOR_SPEED, _TOKENS_FOR_SPEED_ON_CUDA = 96, 8192
"""Tokens of a batch from which on a larger one is hardly faster per token, but more padding is slower."""


class TransformersModel(Tagger):
    """A loaded token classifier and its tokenizer."""

    def __init__(self, settings: TransformersTagger, threads: int) -> None:
        self.name = f"transformers:{settings.model}"
        self._batch_size, self._minimum_score = settings.batch_size, settings.minimum_score
        set_up_torch(threads)
        # The hub's client announces every attempt to reach it; what it comes to is said once, in the error.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        import torch
        import transformers
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        from tasks.packed_linear import pack_linear_layers

        transformers.logging.disable_progress_bar()

        location = locate_model(settings.model)
        try:
            self._tokenizer: Tokenizer = AutoTokenizer.from_pretrained(location)
            model = AutoModelForTokenClassification.from_pretrained(location, dtype=torch.float32)
            self._model: PreTrainedModel = model.eval()
        except (OSError, ValueError, KeyError) as error:
            raise unreachable(settings.model, error) from None
        if not self._tokenizer.is_fast:
            raise ModelError(
                f"model {settings.model!r}: its tokenizer gives no character offsets; use one that is fast"
            )
        labels = [self._model.config.id2label[index] for index in range(self._model.config.num_labels)]
        self._types = [_type_of(label) for label in labels]
        self._begins = [label.startswith("B-") for label in labels]
        self._padding = self._tokenizer.pad_token_id or 0
        self._positions = positions_of(self._model.config, self._tokenizer)
        self._tokens_for_speed = _TOKENS_FOR_SPEED
        if torch.cuda.is_available():
            self._model.to("cuda")
            self._tokens_for_speed = _TOKENS_FOR_SPEED_ON_CUDA
        else:
            pack_linear_layers(self._model)

    @property
    def entity_types(self) -> list[str]:
        """The model's labels without their ``B-`` and ``I-``, and without ``O``."""
        return sorted(set(self._types) - {_OUTSIDE})

    def tag(self, lines: Iterable[str]) -> Iterator[tuple[str, list[EntitySpan]]]:
        """Entities of each line; windows of similar length are batched together."""
        for block in blocks_of_text(lines, self._batch_size * _BATCHES_PER_BLOCK):
            encoded = self._tokenizer(
                block,
                truncation=True,
                max_length=self._positions,
                stride=self._positions // 4,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
                return_special_tokens_mask=True,
            )
            predictions = self._predict(encoded["input_ids"], encoded.get("token_type_ids"))
            tokens: list[list[_Token]] = [[] for _ in block]
            for window, line in enumerate(encoded["overflow_to_sample_mapping"]):
                judged = [
                    (start, end, label, score)
                    for (start, end), special, label, score in zip(
                        encoded["offset_mapping"][window],
                        encoded["special_tokens_mask"][window],
                        *predictions[window],
                        strict=True,
                    )
                    if not special
                ]
                _join(tokens[line], judged)
            for line_text, line_tokens in zip(block, tokens, strict=True):
                yield line_text, self._group(line_tokens)

    def _predict(self, windows: list[list[int]], kinds: list[list[int]] | None) -> list[tuple[list[int], list[float]]]:
        """Label and probability of every token of every window, in the windows' order.

        Windows of similar length go together.
        """
        import torch

        order = sorted(range(len(windows)), key=lambda index: len(windows[index]))
        predictions: list[tuple[list[int], list[float]]] = [([], [])] * len(windows)
        for batch in self._batches(order, [len(window) for window in windows]):
            lengths = [len(windows[index]) for index in batch]
            longest = lengths[-1]
            inputs = {"input_ids": _padded([windows[index] for index in batch], longest, self._padding)}
            if kinds is not None:
                inputs["token_type_ids"] = _padded([kinds[index] for index in batch], longest, 0)
            if lengths[0] < longest:
                inputs["attention_mask"] = _padded([[1] * length for length in lengths], longest, 0)
            with torch.inference_mode():
                inputs = {name: value.to(self._model.device) for name, value in inputs.items()}
                probabilities = self._model(**inputs).logits.float().softmax(-1)  # (B, T, labels)
                scores, labels = probabilities.max(-1)
            for index, length, row_labels, row_scores in zip(
                batch, lengths, labels.tolist(), scores.tolist(), strict=True
            ):
                predictions[index] = (row_labels[:length], row_scores[:length])
        return predictions

    def _batches(self, order: list[int], lengths: list[int]) -> Iterator[list[int]]:
        """Windows in the order of their length, cut where a batch is large enough and longer ones would pad it."""

        def fits(batch: list[int], index: int) -> bool:
            longer = lengths[index] > lengths[batch[0]]
            enough = len(batch) * lengths[batch[0]] >= self._tokens_for_speed
            return len(batch) < self._batch_size and not (longer and enough)

        return batches_that_fit(order, fits)

    def _group(self, tokens: list[_Token]) -> list[EntitySpan]:
        """Tokens of one line to entities."""
        spans: list[EntitySpan] = []
        run: list[_Token] = []

        def close() -> None:
            score = sum(token[3] for token in run) / max(len(run), 1)
            # A run of tokens without characters, as some tokenizers put before a word, covers nothing.
            if run and score >= self._minimum_score and run[0][0] < run[-1][1]:
                spans.append(EntitySpan(run[0][0], run[-1][1], self._types[run[0][2]], score))
            run.clear()

        for token in tokens:
            kind = self._types[token[2]]
            if kind == _OUTSIDE:
                if run:
                    close()
                continue
            if run and (self._begins[token[2]] or kind != self._types[run[0][2]]):
                close()
            run.append(token)
        close()
        return spans


def _padded(rows: list[list[int]], longest: int, padding: int) -> "torch.Tensor":
    """Rows as one matrix ``(B, T)``, filled up behind their ends."""
    import torch

    return torch.tensor([row + [padding] * (longest - len(row)) for row in rows])


def _join(known: list[_Token], window: list[_Token]) -> None:
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
