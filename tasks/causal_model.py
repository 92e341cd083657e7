"""A causal language model of Hugging Face: loading from any source, with clear errors.

The source is a hub name, a folder, a folder inside a pip package, or a file in GGUF in one of them. Fillers and
downstream models are loaded alike.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tasks.errors import ModelError
from tasks.language_model.settings import LoraAdaptation
from tasks.model_source import check_model_folder, locate_model, unreachable
from tasks.torch_setup import has_bfloat16

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

    Network: TypeAlias = PreTrainedModel | PeftModel
    """A model of transformers, with or without an update of peft."""

ADAPTER = "adapter_config.json"
_GGUF = ".gguf"
NO_NUMBERS = (
    "gives scores that are not numbers (NaN or infinity); its weights are damaged: fetch the model again, or train it "
    "with a lower learning rate"
)
"""Advice for a model whose scores are no numbers."""
_SAME = 1e-2
"""Tolerance of rounding (of bfloat16, too): scores of a causal model do not depend on later tokens."""


def load_causal_model(name: str, gguf_file: str | None = None, *, precision: str = "auto") -> tuple[Any, Any]:
    """Model and tokenizer; ``precision`` as in ``CausalLanguageModelFiller``.

    Raises ``ModelError`` if the model cannot be found or loaded, is of another kind, or if its weights are incomplete.
    """
    source = locate_model(name)
    _check_files(source, gguf_file, name)
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # Its messages (fresh weights, long sentences) are in our own errors and reports, or irrelevant here.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    options: dict[str, Any] = {"dtype": getattr(torch, computing_precision(precision))}
    if gguf_file:
        options |= {"gguf_file": gguf_file, "quantization_config": GgufConfig(gguf_file=gguf_file, dequantize=True)}
    try:
        with _reading_gguf(gguf_file is not None):
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
    if gguf_file:
        # Every weight is an ordinary one by now; marks of quantisation would prevent saving the model.
        for owner, name_of_it in ((model, "hf_quantizer"), (model.config, "quantization_config")):
            if hasattr(owner, name_of_it):
                delattr(owner, name_of_it)
    if torch.cuda.is_available():
        model.to("cuda")
    return model, tokenizer


@contextmanager
def plain_attention(model: "Network") -> Iterator[None]:
    """Use plain products for attention during training on a CPU; elsewhere attention is unchanged.

    PyTorch's fused attention is several times slower in the backward pass for short sentences: a step takes 1.2 to 1.4
    times as long with it.
    """
    if model.device.type != "cpu":
        yield
        return
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(usual)


def lower_on_processor(model: "Network") -> bool:
    """Whether training should multiply in bfloat16: float32 weights on a CPU that can."""
    import torch

    return bool(model.device.type == "cpu" and model.dtype == torch.float32 and has_bfloat16())


def computing_precision(precision: str) -> str:
    """The meaning of ``auto`` here: bfloat16 on a GPU, float32 on a CPU."""
    import torch

    return precision if precision != "auto" else ("bfloat16" if torch.cuda.is_available() else "float32")


def _check_files(source: str, gguf_file: str | None, name: str) -> None:
    """Raise an error that names a missing file of a model, before the library raises a less clear one."""
    import importlib.util

    if gguf_file and importlib.util.find_spec("gguf") is None:
        raise ModelError(f"model {name!r}: {gguf_file!r} needs the package 'gguf' ; 'make install' installs it")
    folder = Path(source)
    if not folder.is_dir():
        return
    if gguf_file:
        if not (folder / gguf_file).is_file():
            raise ModelError(f"model {name!r} holds no file {gguf_file!r}; correct gguf_file")
        return
    if not (folder / "config.json").exists():
        if found := gguf_file_in(folder):
            raise ModelError(
                f"model folder {name!r} has its weights in GGUF; unpack them with "
                f"'palimpsest train-filler --set gguf_file={found}' (gguf_file in params.yaml)"
            )
        if (folder / ADAPTER).exists():
            raise ModelError(
                f"model folder {name!r} lacks config.json (it is an adapter: run 'palimpsest train-filler'); copy or "
                "fetch the whole model"
            )
    check_model_folder(source, name)
    if not (folder / "tokenizer_config.json").exists():
        # Loading would succeed, perhaps by another class, and without its start and end of text.
        raise ModelError(f"model folder {name!r} lacks tokenizer_config.json; copy or fetch the whole model")


def save_adapter(model: "Network", folder: Path, base: str) -> None:
    """Write an update and only its own rows of the base; ``base``: the user's name of the base."""
    model.save_pretrained(str(folder), safe_serialization=True, save_embedding_layers=False)
    # peft would name the base by its local path, and add its template of a page.
    (folder / "README.md").unlink(missing_ok=True)
    document = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))
    text = json.dumps(document | {"base_model_name_or_path": base}, indent=2, sort_keys=True)
    (folder / ADAPTER).write_text(text + "\n", encoding="utf-8")


def check_causal(model: "Network", name: str) -> None:
    """Check that scores do not depend on later tokens: a masked LM loads as a causal one without an error."""
    import torch

    embeddings: Any = model.get_input_embeddings()
    size = embeddings.weight.shape[0]
    pieces = torch.arange(1, 6).repeat(2, 1) % size  # (2, 5)
    pieces[1, 4] = (pieces[1, 4] + size // 2) % size
    with torch.inference_mode():
        scores = model(input_ids=pieces.to(model.device), use_cache=False).logits[:, :4].float()  # (2, 4, V)
    if not torch.isfinite(scores).all():
        raise ModelError(f"model {name!r} {NO_NUMBERS}")
    if not torch.allclose(scores[0], scores[1], atol=_SAME * float(scores.abs().max()), rtol=0):
        raise ModelError(
            f"model {name!r} sees what comes later, so it is no causal language model (a masked one, for example); "
            "use kind 'masked_lm', or take a causal one such as 'gpt2'"
        )


def with_update(model: "Network", name: str, settings: LoraAdaptation, *, tokens: Sequence[int] = ()) -> "PeftModel":
    """A peft model: this one, called ``name``, with a fresh LoRA update; the embeddings of ``tokens`` are
    trained too.

    Raises ``ModelError`` if peft cannot place the update, or if it would apply to a weight that two layers share.
    """
    from peft import LoraConfig, get_peft_model

    configuration = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]
        lora_dropout=settings.dropout,
        target_modules=settings.target_modules or "all-linear",
        trainable_token_indices=list(tokens) or None,
        task_type="CAUSAL_LM",
    )
    try:
        with quiet_peft():
            tuned = get_peft_model(model, configuration)
    except ValueError as error:
        raise ModelError(
            f"model {name!r}: peft cannot place the update ({' '.join(str(error).split())[:200]}); "
            "name the layers in target_modules"
        ) from None
    refuse_update_of_shared_weights(tuned, name)
    return tuned


@contextmanager
def quiet_peft() -> Iterator[None]:
    """Suppress irrelevant warnings: peft asks a model for a name that the next transformers will lack, and its warning
    on tied weights says less than our error does."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*tie_word_embeddings.*")
        yield


def refuse_update_of_shared_weights(tuned: "PeftModel", name: str) -> None:
    """Raise ``ModelError`` if a low-rank update applies to a weight that another layer has too.

    That is the head of most small models, whose weight is that of the embeddings. Separate from the weights the update
    changes only the head; merged into them it changes the embeddings as well, and the model is not the tuned one.
    ``tuned`` is peft's model, ``name`` that of the base.
    """
    from peft.tuners.lora import LoraLayer

    weights = [
        getattr(module, "weight", None) for module in tuned.modules() if "weight" in getattr(module, "_parameters", {})
    ]
    for place, layer in tuned.named_modules():
        if isinstance(layer, LoraLayer):
            updated = getattr(layer.get_base_layer(), "weight", None)
            if sum(weight is updated for weight in weights) > 1:
                raise ModelError(
                    f"model {name!r}: layer {place.rpartition('.')[2]!r} has its weight in common with another layer "
                    "(tied embeddings), so an update of it alone cannot be added to the weights; leave it out of "
                    "target_modules"
                )


def gguf_file_in(folder: Path) -> str | None:
    """The name of a GGUF file in a folder that has no other weights described, or ``None``."""
    if (folder / "config.json").exists():
        return None
    return next((file.name for file in sorted(folder.iterdir()) if file.name.endswith(_GGUF)), None)


@contextmanager
def _reading_gguf(active: bool) -> Iterator[None]:
    """Speed up the reading of GGUF. The library reads a file three times, lists all weights again for every part of the
    model, and draws bars without a terminal too. Without that SmolLM2 loads in a third of the time."""
    if not active:
        yield
        return
    import gguf
    from transformers import modeling_gguf_pytorch_utils as reading

    once = lru_cache(maxsize=1)
    better = [
        (reading, "tqdm", partial(reading.tqdm, disable=None)),
        (gguf, "GGUFReader", once(gguf.GGUFReader)),
        (gguf, "get_tensor_name_map", once(gguf.get_tensor_name_map)),
    ]
    usual = [(module, name, getattr(module, name)) for module, name, _ in better]
    for module, name, value in better:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in usual:
            setattr(module, name, value)
