"""A Hugging Face causal language model as a filler.

A filler is a hub name, a folder, a GGUF file, or an adapter with its base. Every architecture works that caches keys
and values; a test on a few pieces checks this (``check_reading``). All text is encoded as if a line end preceded it,
so a text has the same pieces at every position.
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tasks.causal_model import check_causal, load_causal_model, refuse_update_of_shared_weights
from tasks.errors import ModelError
from tasks.filling.causal_lm.read_texts import check_reading
from tasks.filling.fillers.filler_folder import CausalFillerRecord
from tasks.model_source import locate_model, unreachable

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from tasks.causal_model import Network

_MOST_POSITIONS = 2048
"""Maximum context: longer sentences are read through a window, even if a model has more positions."""
_BYTES_OF_LARGE_MODEL = 1 << 19
_ANCHOR = "\n"


class CausalLanguageModel:
    """A model with its tokenizer, ready to write."""

    def __init__(self, model: "Network", tokenizer: "Tokenizer", name: str, *, instruction: str | None = None) -> None:
        """``instruction``: the instruction of the prompts that the model was tuned on. Raises ``ModelError`` if the
        model is not causal, or if its scores differ between a text in parts and the whole text."""
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
        """Entry for padding. The attention mask hides it, so any entry is valid."""
        names = ("max_position_embeddings", "max_seq_len")
        positions = next(filter(None, (getattr(model.config, name, None) for name in names)), _MOST_POSITIONS)
        self.positions: int = min(positions, _MOST_POSITIONS)
        self.takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self.anchor: list[int] = self._plain([_ANCHOR])[0]
        self.seconds = 0.0
        """Seconds in the model so far."""
        check_reading(self)

    @classmethod
    def load(cls, name: str) -> "CausalLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``.

        Raises ``ModelError`` if it cannot be found or loaded, lacks files, or is not causal.
        """
        model, tokenizer, record = load_filler(name)
        return cls(model, tokenizer, name, instruction=record.instruction).prepared()

    def prepared(self) -> "CausalLanguageModel":
        """This object; on a CPU its linear layers are packed for fast float32 products."""
        from tasks.packed_linear import pack_linear_layers

        if self.model.device.type == "cpu":
            pack_linear_layers(self.model)
        return self

    @property
    def bytes_per_piece(self) -> int:
        """Bytes of the keys and values of one piece. A model with an unknown shape counts as a large one."""
        config = self.model.config
        heads = getattr(config, "num_attention_heads", None)
        cached_heads = getattr(config, "num_key_value_heads", None) or heads
        layers, width = getattr(config, "num_hidden_layers", None), getattr(config, "hidden_size", None)
        if not (heads and layers and width):
            return _BYTES_OF_LARGE_MODEL
        head = getattr(config, "head_dim", None) or width // heads
        return int(2 * layers * cached_heads * head * self.model.dtype.itemsize)

    @property
    def pieces_in_gpu(self) -> int:
        """Number of pieces whose keys and values take a quarter of the GPU's memory; 0 on a CPU. The model needs memory
        too, and copied rows need a second quarter."""
        if self.model.device.type != "cuda":
            return 0
        memory = torch.cuda.get_device_properties(self.model.device).total_memory
        return int(memory // 4 // self.bytes_per_piece)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text, inside a line or at its start. Strings that look like special tokens are ordinary
        text."""
        nonempty = [index for index, text in enumerate(texts) if text]
        encoded: list[list[int]] = [[] for _ in texts]
        cut = len(self.anchor)
        whole = self._plain([_ANCHOR + texts[index] for index in nonempty])
        for index, pieces in zip(nonempty, whole, strict=True):
            if pieces[:cut] == self.anchor:
                encoded[index] = pieces[cut:]
            else:
                # The tokenizer merged the line end with the text after it.
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
        """The text of pieces, without any clean-up of spaces."""
        text = self.tokenizer.decode(list(pieces), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def load_filler(name: str) -> tuple[Any, Any, CausalFillerRecord]:
    """Model, tokenizer and record of a filler. An adapter is merged into its base.

    Raises ``ModelError`` as ``load_causal_model`` and ``CausalFillerRecord.read``, and if the adapter changes a weight
    that two layers share.
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
    refuse_update_of_shared_weights(tuned, name)
    return tuned.merge_and_unload(), tokenizer, record
