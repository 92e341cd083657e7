"""A masked language model of Hugging Face's as a filler: loading, encoding, and scores at the markers alone.

Any architecture with a masked-LM head works. Sentences that are longer than the model's positions are seen through a
window round the marker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError
from tasks.model_source import locate_model, unreachable

if TYPE_CHECKING:
    import torch

_LONGEST_WINDOW = 512
_WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model")


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces that the model sees, special ones included, and the position of the marker that is filled."""

    pieces: list[int]
    position: int


class MaskedLanguageModel:
    """A model with its tokenizer, ready to score fills."""

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        """Raises ``ModelError`` where the tokenizer has no mask token."""
        if tokenizer.mask_token is None or tokenizer.mask_token_id is None:
            raise ModelError(
                f"filler {name!r} has no mask token, so it is no masked language model; "
                "take one such as 'bert-base-uncased' or 'roberta-base'"
            )
        self.name = name
        self.model = model.eval()
        self._cut: torch.nn.Module | None = None
        self.tokenizer = tokenizer
        self.mask_entry: int = tokenizer.mask_token_id
        self._padding: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.mask_entry
        self._prefix, self._suffix = _special_frame(tokenizer)
        self.longest_window = _positions(model, tokenizer)
        self._room = self.longest_window - len(self._prefix) - len(self._suffix)
        if self._room < 1:
            raise ModelError(f"filler {name!r} has {self.longest_window} positions, too few for one marker")
        # Longer first: one special string may hold another.
        self._special_strings = sorted(
            {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}, key=len, reverse=True
        )

    @classmethod
    def load(cls, name: str) -> "MaskedLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``, in float32.

        Raises ``ModelError`` where it cannot be found, is no masked LM, lacks its head or files, or has no mask token.
        """
        model, tokenizer, missing = load_masked_model(name)
        if missing:
            raise ModelError(
                f"model {name!r} has no masked-LM head ({len(missing)} weights are missing, such as {missing[0]!r}); "
                "train one with 'palimpsest train-filler --train-head' and give its output folder"
            )
        return cls(model, tokenizer, name).prepared()

    def prepared(self) -> "MaskedLanguageModel":
        """Itself, on the GPU where there is one and with the processor's fastest float32 products where not."""
        import torch

        from tasks.filling.marker_scores import earliest_cut
        from tasks.packed_linear import pack_linear_layers

        if torch.cuda.is_available():
            self.model.to("cuda")
        else:
            pack_linear_layers(self.model)
        self._cut = earliest_cut(self.model)
        return self

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """Pieces of each sentence, without special ones at the ends; a sentence is its ``n + 1`` texts round ``n``
        slots.

        Strings in a user's text that the tokenizer would take for special tokens are broken up by a space; only what
        the model sees is changed, not the text. Raises ``ModelError`` where the tokenizer splits its mask token.
        """
        if not sentences:
            return []
        views = [self.tokenizer.mask_token.join(map(self._defused, texts)) for texts in sentences]
        encoded: list[list[int]] = self.tokenizer(views, add_special_tokens=False, return_attention_mask=False)[
            "input_ids"
        ]
        for pieces, texts in zip(encoded, sentences, strict=True):
            if pieces.count(self.mask_entry) != len(texts) - 1:
                raise ModelError(
                    f"filler {self.name!r}: the tokenizer does not keep its mask token "
                    f"{self.tokenizer.mask_token!r} in one piece"
                )
        return encoded

    def window(self, pieces: Sequence[int], position: int) -> Window:
        """The model's input for the marker at ``position``; of a long sentence as much as fits, the marker amid it."""
        start = min(max(0, position - self._room // 2), max(0, len(pieces) - self._room))
        inside = pieces[start : start + self._room]
        return Window([*self._prefix, *inside, *self._suffix], len(self._prefix) + position - start)

    def logits(self, windows: Sequence[Window]) -> "torch.Tensor":
        """Scores ``(B, V)`` of all vocabulary entries at the marker of each window.

        Raises ``ModelError`` where they are not numbers.
        """
        import torch

        from tasks.filling.marker_scores import scores_at

        longest = max(len(window.pieces) for window in windows)
        pieces = torch.tensor([w.pieces + [self._padding] * (longest - len(w.pieces)) for w in windows])  # (B, T)
        lengths = torch.tensor([len(window.pieces) for window in windows])  # (B,)
        attention = (torch.arange(longest) < lengths[:, None]).long()  # (B, T)
        positions = torch.tensor([window.position for window in windows])  # (B,)
        device = self.model.device
        with torch.inference_mode():
            logits = scores_at(
                self.model,
                pieces.to(device),
                attention.to(device) if int(lengths.min()) < longest else None,
                torch.arange(len(windows), device=device),
                positions.to(device),
                cut=self._cut,
            )
        logits = logits.float().cpu()
        # One number that is none makes the sum none.
        if not torch.isfinite(logits.sum()):
            raise ModelError(
                f"filler {self.name!r} gives scores that are not numbers (NaN or infinity); its weights are damaged"
            )
        return logits

    def _defused(self, text: str) -> str:
        for special in self._special_strings:
            if special in text:
                text = text.replace(special, f"{special[0]} {special[1:]}")
        return text


def load_masked_model(name: str) -> tuple[Any, Any, list[str]]:
    """Model, tokenizer and the names of the weights that the source does not hold (a body without head lacks those).

    Raises ``ModelError`` as ``MaskedLanguageModel.load`` does.
    """
    source = locate_model(name)
    _check_folder(source, name)
    import torch
    import transformers
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    # Its messages (fresh weights, long sentences) are said by our own errors and reports, or are no news here.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model, information = AutoModelForMaskedLM.from_pretrained(source, output_loading_info=True, dtype=torch.float32)
    except Exception as error:
        # Damaged files fail in as many ways as there are formats; the reason is in the message.
        if isinstance(error, ValueError) and "Unrecognized configuration class" in str(error):
            raise ModelError(
                f"model {name!r} is no masked language model but of another kind (a causal one, for example); "
                "take a masked one such as 'bert-base-uncased' or 'roberta-base'"
            ) from None
        raise unreachable(name, error) from error
    if not hasattr(model, "base_model") or model.base_model is model:
        raise ModelError(
            f"model {name!r} ({type(model).__name__}) has no body apart from its head; take another masked LM"
        )
    return model, tokenizer, sorted(information["missing_keys"])


def _check_folder(source: str, name: str) -> None:
    """Say which file a model folder lacks, before the library says something less plain."""
    folder = Path(source)
    if not folder.is_dir():
        return
    missing = []
    if not (folder / "config.json").exists():
        missing.append("config.json")
    if not any((folder / file).exists() for file in _WEIGHT_FILES):
        missing.append("weights (model.safetensors)")
    if not any((folder / file).exists() for file in _TOKENIZER_FILES):
        missing.append("a tokenizer (tokenizer.json)")
    if missing:
        raise ModelError(f"model folder {name!r} lacks {', '.join(missing)}; copy or fetch the whole model")


def _special_frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special pieces that the tokenizer puts before and behind a sentence."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    framed = tokenizer("a")["input_ids"]
    for start in range(len(framed) - len(bare) + 1):
        if framed[start : start + len(bare)] == bare:
            return framed[:start], framed[start + len(bare) :]
    return [], []


def _positions(model: Any, tokenizer: Any) -> int:
    """How many pieces the model takes at once; at most 512, enough context for one word."""
    limits = [_LONGEST_WINDOW, tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions:
        embeddings = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
        # RoBERTa and its kin count positions from the padding entry on.
        padding = getattr(embeddings, "padding_idx", None)
        limits.append(positions - (padding + 1 if padding is not None else 0))
    return min(limits)
