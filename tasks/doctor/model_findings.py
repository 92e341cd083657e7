"""Which models of an experiment are there, in folders, packages and the hub's cache; none is ever fetched."""

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tasks.doctor.finding import Check, Finding
from tasks.doctor.size_units import bytes_text
from tasks.errors import ModelError
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
    for name in parameters.pretrained_fillers():
        yield NeededModel(f"fillers.{name}.model", "hub", parameters.fillers[name].model)
    downstream = parameters.language_model.causal_lm
    if parameters.language_model.kind == "causal_lm" and downstream:
        yield NeededModel("language_model.causal_lm.model", "hub", downstream.model)


def _taggers(key: str, settings: Any) -> Iterator[NeededModel]:
    if settings.kind == "combination":
        for number, part in enumerate(settings.parts):
            yield from _taggers(f"{key}.parts.{number}", part)
    elif settings.kind == "entity_tagger":
        tagger = settings.tagger
        kind = {"transformers": "hub", "crf": "crf"}.get(tagger.kind, "spacy")
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
