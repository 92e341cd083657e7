"""A causal language model of Hugging Face's as a filler: loading it from wherever it is, and its pieces.

Any architecture that reads from left to right works: by hub name, folder, a file in GGUF, or an adapter with its base.
All text is encoded as if it stood behind a line end, so that a piece of text has the same pieces wherever it stands.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tasks.errors import ModelError
from tasks.filling.causal_lm.filler_folder import ADAPTER, CausalFillerRecord, gguf_file_in
from tasks.model_source import locate_model, unreachable

_MOST_POSITIONS = 2048
"""Longer sentences are seen through a window, also where a model has room for more."""
_ENOUGH_PIECES = {"cpu": 128, "cuda": 4096}
_ANCHOR = "\n"
_SAME = 1e-2
"""Scores of a causal model do not depend on what comes later, but for rounding (of bfloat16, too)."""


class CausalLanguageModel:
    """A model with its tokenizer, ready to write."""

    def __init__(self, model: Any, tokenizer: Any, name: str, *, instruction: str | None = None) -> None:
        """``instruction``: that of the prompts the model was tuned on. Raises ``ModelError`` where the model is not
        causal."""
        self.model: Any = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.instruction = instruction
        _check_causal(model, name)
        self.end: int | None = tokenizer.eos_token_id
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else self.end
        self.start: list[int] = [] if start is None else [start]
        padding = tokenizer.pad_token_id
        self.padding: int = padding if padding is not None else (self.end if self.end is not None else 0)
        """Stands where nothing is; never seen by the model, so any entry will do."""
        positions = getattr(model.config, "max_position_embeddings", None) or _MOST_POSITIONS
        self.positions: int = min(positions, _MOST_POSITIONS)
        self.enough_pieces: int = _ENOUGH_PIECES.get(self.model.device.type, _ENOUGH_PIECES["cuda"])
        """So many pieces at a time keep the device busy; a batch may end there rather than pad."""
        self.takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self.anchor: list[int] = self._plain([_ANCHOR])[0]

    @classmethod
    def load(cls, name: str) -> "CausalLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``.

        Raises ``ModelError`` where it cannot be found or loaded, lacks files, or is not causal.
        """
        folder = locate_model(name)
        record = CausalFillerRecord.read(folder) if Path(folder).is_dir() else CausalFillerRecord()
        if record.base is None:
            model, tokenizer = load_causal_model(name, precision=record.precision)
            return cls(model, tokenizer, name, instruction=record.instruction).prepared()
        model, tokenizer = load_causal_model(record.base, record.gguf_file, precision=record.precision)
        from peft import PeftModel

        try:
            tuned = PeftModel.from_pretrained(model, folder)
        except Exception as error:
            raise unreachable(name, error) from error
        merged = tuned.merge_and_unload() if record.precision != "4bit" else tuned.get_base_model()
        return cls(merged, tokenizer, name, instruction=record.instruction).prepared()

    def prepared(self) -> "CausalLanguageModel":
        """Itself, with the processor's fastest float32 products where there is no GPU."""
        from tasks.packed_linear import pack_linear_layers

        if self.model.device.type == "cpu":
            pack_linear_layers(self.model)
        return self

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


def load_causal_model(name: str, gguf_file: str | None = None, *, precision: str = "auto") -> tuple[Any, Any]:
    """Model and tokenizer; ``precision`` as in ``CausalLanguageModelFiller``.

    Raises ``ModelError`` where the model cannot be found or loaded, is of another kind, or where its weights are
    incomplete.
    """
    source = locate_model(name)
    _check_files(source, gguf_file, name)
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # Its messages (fresh weights, long sentences) are said by our own errors and reports, or are no news here.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    options: dict[str, Any] = _precision_options(precision, name)
    if gguf_file:
        options |= {"gguf_file": gguf_file, "quantization_config": GgufConfig(gguf_file=gguf_file, dequantize=True)}
    try:
        with _bars_on_terminals_only(gguf_file is not None):
            tokenizer = AutoTokenizer.from_pretrained(source, **({"gguf_file": gguf_file} if gguf_file else {}))
            loaded: Any = AutoModelForCausalLM.from_pretrained(source, output_loading_info=True, **options)
    except Exception as error:
        # Damaged files fail in as many ways as there are formats; the reason is in the message.
        if isinstance(error, ValueError) and "Unrecognized configuration class" in str(error):
            raise ModelError(
                f"model {name!r} is no causal language model but of another kind; "
                "take a causal one such as 'gpt2' or 'meta-llama/Llama-2-7b-hf'"
            ) from None
        raise unreachable(name, error) from error
    model, information = loaded
    missing = sorted(information["missing_keys"])
    if missing:
        raise ModelError(
            f"model {name!r} cannot write: {len(missing)} weights of its causal head or body are missing, such as "
            f"{missing[0]!r}; take a causal model such as 'gpt2' or 'meta-llama/Llama-2-7b-hf'"
        )
    import torch

    if gguf_file:
        # Every weight is an ordinary one by now; what says otherwise would keep the model from being saved.
        for owner, name_of_it in ((model, "hf_quantizer"), (model.config, "quantization_config")):
            if hasattr(owner, name_of_it):
                delattr(owner, name_of_it)
    if torch.cuda.is_available() and precision != "4bit":
        model.to("cuda")
    return model, tokenizer


def computing_precision(precision: str) -> str:
    """What ``auto`` means here: bfloat16 on a GPU, float32 on a processor."""
    import torch

    return precision if precision != "auto" else ("bfloat16" if torch.cuda.is_available() else "float32")


def _precision_options(precision: str, name: str) -> dict[str, Any]:
    import importlib.util

    import torch

    if precision != "4bit":
        return {"dtype": getattr(torch, computing_precision(precision))}
    if not torch.cuda.is_available():
        raise ModelError(
            f"model {name!r}: precision '4bit' needs a GPU, and there is none; use 'bfloat16' or 'float32'"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ModelError(
            f"model {name!r}: precision '4bit' needs the package 'bitsandbytes'; install it, or use 'bfloat16'"
        )
    from transformers import BitsAndBytesConfig

    return {
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        ),
        "device_map": {"": 0},
    }


def _check_files(source: str, gguf_file: str | None, name: str) -> None:
    """Say which file a model lacks, before the library says something less plain."""
    import importlib.util

    if gguf_file and importlib.util.find_spec("gguf") is None:
        raise ModelError(f"model {name!r}: {gguf_file!r} needs the package 'gguf' ; 'make install' installs it")
    folder = Path(source)
    if not folder.is_dir():
        return
    if gguf_file:
        if not (folder / gguf_file).is_file():
            raise ModelError(f"model {name!r} holds no file {gguf_file!r}; mend gguf_file")
        return
    if not (folder / "config.json").exists():
        if found := gguf_file_in(folder):
            raise ModelError(
                f"model folder {name!r} has its weights in GGUF; unpack them with "
                f"'palimpsest train-filler --gguf-file {found}' (gguf_file in params.yaml)"
            )
        adapter = " (it is an adapter: run 'palimpsest train-filler')" if (folder / ADAPTER).exists() else ""
        raise ModelError(f"model folder {name!r} lacks config.json{adapter}; copy or fetch the whole model")


def _check_causal(model: Any, name: str) -> None:
    """Hold that scores do not change with what comes later: a masked LM loads as a causal one without complaint."""
    import torch

    size = model.get_input_embeddings().weight.shape[0]
    pieces = torch.arange(1, 6).repeat(2, 1) % size  # (2, 5)
    pieces[1, 4] = (pieces[1, 4] + size // 2) % size
    with torch.inference_mode():
        scores = model(input_ids=pieces.to(model.device)).logits[:, :4].float()  # (2, 4, V)
    if not torch.isfinite(scores).all():
        raise ModelError(
            f"filler {name!r} gives scores that are not numbers (NaN or infinity); its weights are damaged"
        )
    if not torch.allclose(scores[0], scores[1], atol=_SAME * float(scores.abs().max()), rtol=0):
        raise ModelError(
            f"model {name!r} sees what comes later, so it is no causal language model (a masked one, for example); "
            "use kind 'masked_lm', or take a causal one such as 'gpt2'"
        )


@contextmanager
def _bars_on_terminals_only(active: bool) -> Iterator[None]:
    """The library draws a bar for every GGUF file it reads, terminal or not."""
    if not active:
        yield
        return
    from transformers import modeling_gguf_pytorch_utils as reading

    bar = reading.tqdm
    reading.tqdm = partial(bar, disable=None)
    try:
        yield
    finally:
        reading.tqdm = bar
