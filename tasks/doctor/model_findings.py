"""Which models of an experiment are there, in folders, packages and the hub's cache, and how large they are; none is
fetched or loaded.
"""

import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tasks.doctor.finding import Check, Finding, bytes_text
from tasks.errors import ModelError
from tasks.language_model.settings import LanguageModelSettings
from tasks.masking.combination import Combination
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.settings import TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.model_source import PACKAGE_PREFIX, locate_model
from tasks.parameters.parameter_file import Parameters

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.gguf", "*.crfsuite")
_GATED = ("meta-llama/",)
_OWN_MODELS = "models/hub"
_GRAPH_FOLDERS = ("models/taggers/",)


@dataclass(frozen=True, slots=True)
class NeededModel:
    """A model that the parameters name."""

    key: str
    """The key path that names it."""
    kind: str
    """``hub`` (a hub name, folder or package folder), ``spacy`` or ``crf``."""
    model: str


def needed_models(parameters: Parameters) -> list[NeededModel]:
    """Models of what is compared, each once, in the order in which the graph needs them."""
    found: dict[tuple[str, str], NeededModel] = {}
    for needed in _all_models(parameters):
        found.setdefault((needed.kind, needed.model), needed)
    return list(found.values())


def _all_models(parameters: Parameters) -> Iterator[NeededModel]:
    compare = parameters.compare
    for name in dict.fromkeys([*compare.techniques, *compare.detectors]):
        yield from _taggers(f"masking.{name}", parameters.masking[name])
    for name in compare.taggers:
        settings = parameters.taggers[name]
        if settings.kind == "spacy" and settings.base:
            yield NeededModel(f"taggers.{name}.base", "spacy", settings.base)
        elif settings.kind == "word_classifier":
            yield NeededModel(f"taggers.{name}.base", "hub", settings.base)
    for name in parameters.pretrained_fillers():
        yield NeededModel(f"fillers.{name}.model", "hub", parameters.fillers[name].model)
    downstream = parameters.language_model.causal_lm
    if parameters.language_model.kind == "causal_lm" and downstream:
        yield NeededModel("language_model.causal_lm.model", "hub", downstream.model)


def _taggers(key: str, settings: TechniqueSettings) -> Iterator[NeededModel]:
    if isinstance(settings, Combination | EveryTagger):
        for number, part in enumerate(settings.parts):
            yield from _taggers(f"{key}.parts.{number}", part)
    elif isinstance(settings, EntityTagger):
        tagger = settings.tagger
        kind = {"transformers": "hub", "crf": "trained", "word_classifier": "trained"}.get(tagger.kind, "spacy")
        yield NeededModel(f"{key}.tagger.model", kind, tagger.model)


def model_checks(parameters: Parameters, root: Path) -> list[Check]:
    """One check for each model that is needed."""
    return [Check(needed.key, partial(_finding, needed, root)) for needed in needed_models(parameters)]


def _finding(needed: NeededModel, root: Path) -> Finding:
    model = needed.model
    if needed.kind != "hub" and model.startswith(_GRAPH_FOLDERS):
        return Finding("model", needed.key, "made later", f"{model}: a stage of the graph trains it")
    if needed.kind == "spacy":
        if (model.isidentifier() and importlib.util.find_spec(model) is not None) or (root / model).is_dir():
            return Finding("model", needed.key, "there", f"{model}: installed")
        remedy = f"'make install' installs the default one; for another: pip install {model}, or name a folder"
        return Finding("model", needed.key, "missing", f"spaCy pipeline {model!r} is not installed", remedy)
    folder = model_folder(model, root)
    if folder is not None:
        size = sum(file.stat().st_size for pattern in _WEIGHTS for file in folder.glob(pattern))
        if size:
            return Finding("model", needed.key, "there", f"{model}: {bytes_text(size)}")
        return Finding(
            "model", needed.key, "missing", f"{model}: the folder holds no weights", "fetch it again, or name another"
        )
    if model.startswith(PACKAGE_PREFIX):
        return Finding("model", needed.key, "missing", f"{model} is not installed", "run 'make install'")
    gated = "accept its licence on the hub and 'hf auth login', then " if model.startswith(_GATED) else ""
    local = f"{_OWN_MODELS}/{model.rsplit('/', 1)[-1]}"
    remedy = (
        f"where there is a network: {gated}'hf download {model}'; or 'hf download {model} --local-dir {local}' and "
        f"set {needed.key}: {local}"
    )
    return Finding("model", needed.key, "missing", f"{model} is in no folder and not in the hub's cache", remedy)


def model_folder(model: str, root: Path) -> Path | None:
    """Where the files of a model are on this machine, or ``None``; asks no network."""
    if model.startswith(PACKAGE_PREFIX):
        try:
            return Path(locate_model(model))
        except ModelError:
            return None
    if (root / model).is_dir():
        return root / model
    for snapshot in sorted((hub_cache() / f"models--{model.replace('/', '--')}" / "snapshots").glob("*")):
        if (snapshot / "config.json").exists():
            return snapshot
    return None


def hub_cache() -> Path:
    """The folder in which Hugging Face's library keeps what it has fetched."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


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
