"""A causal language model of Hugging Face's as a filler: loading it from wherever it is, and its pieces.

By hub name, folder, a file in GGUF, or an adapter with its base. Any architecture works that keeps the keys and values
of what it has read; whether one does is tried on a few pieces (``columns``), and the others are refused. All text is
encoded as if it stood behind a line end, so that a piece of text has the same pieces wherever it stands.
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.causal_model import check_causal, load_causal_model, refuse_update_of_shared_weights
from tasks.errors import ModelError
from tasks.filling.causal_lm.columns import check_rows, columns_that_count
from tasks.filling.causal_lm.filler_folder import CausalFillerRecord
from tasks.model_source import locate_model, unreachable

_MOST_POSITIONS = 2048
"""Longer sentences are seen through a window, also where a model has room for more."""
_ENOUGH_PIECES = {"cpu": 128, "cuda": 4096}
_BYTES_OF_LARGE_MODEL = 1 << 19
_ANCHOR = "\n"


class CausalLanguageModel:
    """A model with its tokenizer, ready to write."""

    def __init__(self, model: Any, tokenizer: Any, name: str, *, instruction: str | None = None) -> None:
        """``instruction``: that of the prompts the model was tuned on. Raises ``ModelError`` where the model is not
        causal, or does not read a text in parts as it reads the whole."""
        self.model: Any = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.instruction = instruction
        check_causal(model, name)
        self.end: int | None = tokenizer.eos_token_id
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else self.end
        self.start: list[int] = [] if start is None else [start]
        padding = tokenizer.pad_token_id
        self.padding: int = padding if padding is not None else (self.end if self.end is not None else 0)
        """Stands where nothing is; never seen by the model, so any entry will do."""
        names = ("max_position_embeddings", "max_seq_len")
        positions = next(filter(None, (getattr(model.config, name, None) for name in names)), _MOST_POSITIONS)
        self.positions: int = min(positions, _MOST_POSITIONS)
        self.enough_pieces: int = _ENOUGH_PIECES.get(self.model.device.type, _ENOUGH_PIECES["cuda"])
        """So many pieces at a time keep the device busy; a batch may end there rather than pad."""
        self.takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self.anchor: list[int] = self._plain([_ANCHOR])[0]
        self.closed_from: int | None = columns_that_count(model.config, takes_positions=self.takes_positions)
        """Rows of so many columns or more are read without holes; ``None`` where holes never matter."""
        check_rows(self)

    @classmethod
    def load(cls, name: str) -> "CausalLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``.

        Raises ``ModelError`` where it cannot be found or loaded, lacks files, or is not causal.
        """
        model, tokenizer, record = load_filler(name)
        return cls(model, tokenizer, name, instruction=record.instruction).prepared()

    def prepared(self) -> "CausalLanguageModel":
        """Itself, with the processor's fastest float32 products where there is no GPU."""
        from tasks.packed_linear import pack_linear_layers

        if self.model.device.type == "cpu":
            pack_linear_layers(self.model)
        return self

    @property
    def bytes_per_piece(self) -> int:
        """Memory that the keys and values of one piece take; where a model does not say its shape, that of a large
        one."""
        config = self.model.config
        heads = getattr(config, "num_attention_heads", None)
        kept_heads = getattr(config, "num_key_value_heads", None) or heads
        layers, width = getattr(config, "num_hidden_layers", None), getattr(config, "hidden_size", None)
        if not (heads and layers and width):
            return _BYTES_OF_LARGE_MODEL
        head = getattr(config, "head_dim", None) or width // heads
        return int(2 * layers * kept_heads * head * self.model.dtype.itemsize)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text as it stands inside a line or at its start; strings that look like special tokens
        are ordinary text."""
        behind = [index for index, text in enumerate(texts) if text]
        encoded: list[list[int]] = [[] for _ in texts]
        cut = len(self.anchor)
        whole = self._plain([_ANCHOR + texts[index] for index in behind])
        for index, pieces in zip(behind, whole, strict=True):
            if pieces[:cut] == self.anchor:
                encoded[index] = pieces[cut:]
            else:
                # The tokenizer made one piece of the line end and what follows.
                encoded[index] = self._plain([texts[index]])[0]
        return encoded

    def _plain(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        pieces: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, return_attention_mask=False
        )["input_ids"]
        return pieces

    def decode(self, pieces: Sequence[int]) -> str:
        """The text of pieces, character by character as the model wrote it."""
        text: str = self.tokenizer.decode(pieces, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def load_filler(name: str) -> tuple[Any, Any, CausalFillerRecord]:
    """Model, tokenizer and record of a filler, an adapter added to its base (but for 4 bits, where it stays beside).

    Raises ``ModelError`` as ``load_causal_model`` and ``CausalFillerRecord.read``, and where the adapter changes a
    weight that two layers share.
    """
    folder = locate_model(name)
    record = CausalFillerRecord.read(folder) if Path(folder).is_dir() else CausalFillerRecord()
    if record.base is None:
        return *load_causal_model(name, precision=record.precision), record
    try:
        model, tokenizer = load_causal_model(record.base, record.gguf_file, precision=record.precision)
    except ModelError as error:
        raise ModelError(f"filler {name!r} is an adapter, and its base cannot be loaded: {error}") from error
    from peft import PeftModel

    try:
        tuned = PeftModel.from_pretrained(model, folder)
    except Exception as error:
        raise unreachable(name, error) from error
    if record.precision != "4bit":
        refuse_update_of_shared_weights(tuned, name)
    merged = tuned.merge_and_unload() if record.precision != "4bit" else tuned.get_base_model()
    return merged, tokenizer, record
