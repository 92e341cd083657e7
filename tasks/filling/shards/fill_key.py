"""One hash of everything that decides what a fill writes: two runs with the same key write the same bytes.

That is every option but those that are known to change no byte, the settings, the content of every file and folder that
an option or setting names, the code of the steps that take part, the versions of the libraries, and where the
arithmetic is done. Whatever is added to the command later is in the key without a change here.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tasks
from tasks.errors import ModelError
from tasks.masking.settings import TaggerSettings
from tasks.model_source import PACKAGE_PREFIX, locate_model
from tasks.records.stage_report import content_hash
from tasks.settings.checks import as_plain

_CHANGE_NOTHING = frozenset(
    "output report params threads devices resume work_folder dataset technique filler filler_name".split()
)
"""Options that change no byte, or are in the key in another form."""
_STEPS = ("corpora", "filling", "labelled_text", "masking")
"""Packages whose code and values a fill may use, besides what all steps share."""
_SHARED = ("files", "parameters")
"""Packages that all steps share, as they share the modules that are in no package."""
_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "peft", "faker", "regex")
_TAGGER_LIBRARIES = ("spacy", "thinc", "presidio-analyzer", "phonenumbers", "tldextract", "python-crfsuite")


def fill_key(
    arguments: argparse.Namespace,
    settings: Any,
    threads: int,
    inputs: Sequence[str],
    hashes: Mapping[str, str],
    counted: Mapping[str, Any] | None = None,
) -> str:
    """The key of a fill that reads ``inputs``; ``hashes`` are those of files and folders that are known already, by
    path; ``counted``: what the report says of noisy counts, with ids for key, words and what left before.
    """
    options = {name: value for name, value in vars(arguments).items() if name not in _CHANGE_NOTHING}
    paths = {*inputs, *_paths(options), *_paths(as_plain(settings))}
    document = {
        "options": options,
        "settings": as_plain(settings),
        "counted": counted,
        # The order of a sum changes its last digits.
        "threads": threads,
        "device": _device(threads) if arguments.filler else None,
        "filler": _model_state(arguments.filler, hashes),
        "tagger": _tagger_state(settings.class_check.tagger, hashes) if settings.classes == "match" else None,
        "content": {path: hashes.get(path) or content_hash(path) for path in sorted(paths)},
        "code": _code_hash(),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in (*_LIBRARIES, *_TAGGER_LIBRARIES)},
        },
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


def _paths(value: Any) -> Iterator[str]:
    """Files and folders that a value names. A bare word is one where there is something of that name: a model may lie
    in the folder that the command was started in, and content that decides nothing costs no more than a fresh start."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _paths(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _paths(inner)
    elif isinstance(value, str) and value.startswith(PACKAGE_PREFIX):
        yield locate_model(value)
    elif isinstance(value, str) and value and os.path.exists(value):
        yield value


def _model_state(filler: str | None, hashes: Mapping[str, str]) -> list[str | None]:
    """The content of a model's folder, or the commit of a model of the hub; those of an adapter's base besides."""
    if filler is None:
        return [None, None]
    from tasks.filling.causal_lm.filler_folder import base_of

    source = locate_model(filler)
    if Path(source).is_dir():
        state: list[str | None] = [filler, hashes.get(filler) or content_hash(source)]
        if base := base_of(filler):
            try:
                state += _model_state(base, hashes)
            except ModelError:
                # Loading the adapter says it better.
                state += [base, None]
        return state
    from huggingface_hub import hf_hub_download

    try:
        # In the hub's cache a file lies in a folder named by the commit.
        return [filler, Path(hf_hub_download(source, "config.json")).parent.name]
    except Exception:
        # Whatever the reason, loading the model says it better.
        return [filler, None]


def _tagger_state(tagger: TaggerSettings, hashes: Mapping[str, str]) -> list[str | None]:
    """What a tagger's name stands for where that is no folder or file, which ``_paths`` finds."""
    if tagger.kind == "transformers":
        return _model_state(tagger.model, hashes)
    if tagger.kind == "crf":
        return []
    installed = _version(tagger.model)
    return [installed, _package_hash(tagger.model) if installed else None]


def _package_hash(name: str) -> str | None:
    """The content of an installed package, such as a spaCy pipeline, but for what Python compiles of it."""
    try:
        specification = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        specification = None
    if specification is None or not specification.submodule_search_locations:
        return None
    root = Path(specification.submodule_search_locations[0])
    return _hash_of(root, sorted(file for file in root.rglob("*") if file.is_file() and file.suffix != ".pyc"))


def _device(threads: int) -> str:
    """Where the arithmetic is done."""
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def code_files() -> list[Path]:
    """The files whose content can change a fill: those of the steps it uses, and what all steps share."""
    root = Path(tasks.__file__).parent
    found = [*root.glob("*.py"), *(file for step in (*_SHARED, *_STEPS) for file in (root / step).rglob("*"))]
    return sorted(file for file in found if file.is_file() and file.suffix != ".pyc")


def _code_hash() -> str:
    return _hash_of(Path(tasks.__file__).parent, code_files())


def _hash_of(root: Path, files: Sequence[Path]) -> str:
    """One hash of the names, seen from a folder, and the contents of files in it."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return None
