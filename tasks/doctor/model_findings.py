"""Checks of an experiment's models in folders, packages and the hub's cache; none is downloaded or loaded."""

import importlib.util
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tasks.doctor.finding import Check, Finding, bytes_text
from tasks.errors import ModelError
from tasks.masking.combination import Combination
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.settings import QuasiIdentifierTagger, TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.model_source import PACKAGE_PREFIX, locate_model
from tasks.parameters.parameter_file import Parameters

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.gguf", "*.crfsuite")
_GATED = ("meta-llama/",)
_GRAPH_FOLDER = "models/taggers/"


def model_checks(parameters: Parameters, root: Path) -> list[Check]:
    """One check for each compared model, in the order of the graph."""
    keys: dict[tuple[str, bool], str] = {}
    for key, model, is_pipeline in _models(parameters):
        keys.setdefault((model, is_pipeline), key)
    return [
        Check(key, partial(_finding, key, model, root, is_pipeline=pipeline)) for (model, pipeline), key in keys.items()
    ]


def _models(parameters: Parameters) -> Iterator[tuple[str, str, bool]]:
    """Key path and name of each model, and whether it is a pipeline of spaCy."""
    compare = parameters.compare
    for name in dict.fromkeys([*compare.techniques, *compare.detectors]):
        yield from _taggers(f"masking.{name}", parameters.masking[name])
    for name in compare.taggers:
        settings = parameters.taggers[name]
        if settings.kind == "spacy" and settings.base:
            yield f"taggers.{name}.base", settings.base, True
        elif settings.kind == "word_classifier":
            yield f"taggers.{name}.base", settings.base, False
    for name in parameters.pretrained_fillers():
        yield f"fillers.{name}.model", parameters.fillers[name].model, False
    downstream = parameters.language_model.causal_lm
    if parameters.language_model.kind == "causal_lm" and downstream:
        yield "language_model.causal_lm.model", downstream.model, False


def _taggers(key: str, settings: TechniqueSettings) -> Iterator[tuple[str, str, bool]]:
    if isinstance(settings, Combination | EveryTagger):
        for number, part in enumerate(settings.parts):
            yield from _taggers(f"{key}.parts.{number}", part)
    elif isinstance(settings, EntityTagger) and not isinstance(settings.tagger, QuasiIdentifierTagger):
        tagger = settings.tagger
        yield f"{key}.tagger.model", tagger.model, tagger.kind in ("spacy", "presidio")


def _finding(key: str, model: str, root: Path, *, is_pipeline: bool) -> Finding:
    if model.startswith(_GRAPH_FOLDER):
        return Finding("model", key, "made later", f"{model}: a stage of the graph trains it")
    return _pipeline(key, model, root) if is_pipeline else _model(key, model, root)


def _pipeline(key: str, model: str, root: Path) -> Finding:
    if (model.isidentifier() and importlib.util.find_spec(model) is not None) or (root / model).is_dir():
        return Finding("model", key, "there", f"{model}: installed")
    remedy = f"'make install' installs the default one; for another: pip install {model}, or name a folder"
    return Finding("model", key, "missing", f"spaCy pipeline {model!r} is not installed", remedy)


def _model(key: str, model: str, root: Path) -> Finding:
    folder = _folder_of(model, root)
    if folder is not None:
        size = sum(file.stat().st_size for pattern in _WEIGHTS for file in folder.glob(pattern))
        if size:
            return Finding("model", key, "there", f"{model}: {bytes_text(size)}")
        return Finding(
            "model", key, "missing", f"{model}: the folder holds no weights", "fetch it again, or name another"
        )
    if model.startswith(PACKAGE_PREFIX):
        return Finding("model", key, "missing", f"{model} is not installed", "run 'make install'")
    gated = "accept its licence on the hub and 'hf auth login', then " if model.startswith(_GATED) else ""
    local = f"models/hub/{model.rsplit('/', 1)[-1]}"
    remedy = (
        f"where there is a network: {gated}'hf download {model}'; or 'hf download {model} --local-dir {local}' and "
        f"set {key}: {local}"
    )
    return Finding("model", key, "missing", f"{model} is in no folder and not in the hub's cache", remedy)


def _folder_of(model: str, root: Path) -> Path | None:
    """The local folder of a model's files, or ``None``; uses no network."""
    if model.startswith(PACKAGE_PREFIX):
        try:
            return Path(locate_model(model))
        except ModelError:
            return None
    if (root / model).is_dir():
        return root / model
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    snapshots = sorted((cache / f"models--{model.replace('/', '--')}" / "snapshots").glob("*"))
    return next((snapshot for snapshot in snapshots if (snapshot / "config.json").exists()), None)
