"""How many parameters models have, from their settings or files, without loading them."""

import json
from pathlib import Path

from tasks.doctor.model_findings import model_folder
from tasks.language_model.settings import LanguageModelSettings

_KNOWN = {
    "bert-base-uncased": 110_000_000,
    "bert-base-cased": 108_000_000,
    "bert-large-uncased": 335_000_000,
    "roberta-base": 125_000_000,
    "roberta-large": 355_000_000,
    "distilbert-base-uncased": 67_000_000,
    "dslim/bert-base-NER": 108_000_000,
    "meta-llama/Llama-2-7b-hf": 6_738_000_000,
    "meta-llama/Llama-2-13b-hf": 13_016_000_000,
}
_BYTES_PER_WEIGHT = 4
_BYTES_PER_PACKED_WEIGHT = 0.7


def transformer_parameters(settings: LanguageModelSettings) -> int:
    """Of the word-level Transformer: embeddings, positions, and 12 width² and 13 width a layer."""
    shape, width = settings.architecture, settings.architecture.width
    layer = 12 * width * width + 13 * width
    return (settings.vocabulary.size + shape.maximum_tokens) * width + shape.layers * layer + 2 * width


def hub_parameters(model: str, root: Path) -> int | None:
    """Of a model by hub name or folder: as published, or by the size of its weights; ``None`` if neither is known."""
    if model in _KNOWN:
        return _KNOWN[model]
    folder = model_folder(model, root)
    if folder is None:
        return None
    packed = sum(file.stat().st_size for file in folder.glob("*.gguf"))
    if packed:
        return round(packed / _BYTES_PER_PACKED_WEIGHT)
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    size = size or sum(file.stat().st_size for file in folder.glob("pytorch_model*.bin"))
    width = _BYTES_PER_WEIGHT
    try:
        described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if str(described.get("dtype") or described.get("torch_dtype")) in ("float16", "bfloat16"):
            width = 2
    except (OSError, ValueError):
        pass
    return round(size / width) or None
