"""A causal language model on disk: ``settings.json``, and the weights or the update that adaptation made.

An unchanged model, or one with a low-rank update, names its base (hub, folder or pip package) instead of copying it. A
copy would be half a gigabyte for each condition of the small default model, and 14 for one of 7 billion parameters.
``settings.json`` has the hash of the base's files, or its commit on the hub, so another base is detected. A model that
is trained in full, or merged, has its own weights and tokenizer in the folder. ``from_pretrained`` of ``transformers``
loads it.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.causal_model import check_causal, gguf_file_in, load_causal_model, quiet_peft, save_adapter
from tasks.errors import ModelError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.language_model.causal_lm.joined import JoinedModels
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.pieces import WordPieces
from tasks.language_model.language_models import Precision
from tasks.language_model.model_folder import SETTINGS, check_file, check_replaceable, hash_of_file, read_settings
from tasks.language_model.settings import CausalLanguageModelSettings, Kind
from tasks.model_source import locate_model, unreachable

if TYPE_CHECKING:
    from tasks.causal_model import Network

KIND: Kind = "causal_lm"
FORMAT = 1
WHOLE = "model"
"""Kind of weights that were trained in full or merged."""
UPDATE = "update"
"""Folder of a low-rank update, as peft writes it."""
JOINED = "joined"
"""Prefix of the numbered folders of joined models, each with its own weights (``joined``)."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf", "config.json", "tokenizer*", "vocab*", "merges.txt", "*.model")


@dataclass(frozen=True, slots=True)
class CausalRecord:
    """The content of ``settings.json`` that describes the model."""

    model: str
    """Source of the base, as in ``CausalLanguageModelSettings``."""
    gguf_file: str | None
    precision: str
    base: str | None
    """Hash of the base's files, or its commit on the hub; ``None`` where the hub's cache has no commit."""
    tokenizer: str
    """Hash of the base's tokenizer, which the protocol of a perplexity names; markers do not change it."""
    tokenizer_size: int
    """Number of its tokens."""
    adapted: str | None = None
    """``UPDATE``, ``WHOLE``, ``JOINED``, or ``None`` for an unchanged model."""
    markers: list[str] = field(default_factory=list)
    """Markers that are tokens of the model."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each file of the folder except ``settings.json``."""
    weights: list[float] = field(default_factory=list)
    """Weights of joined models."""


def save_reference(folder: str | Path, settings: CausalLanguageModelSettings) -> CausalModel:
    """Write the folder of an unchanged model and return the model; it is loaded once as a check."""
    check_replaceable(folder)
    causal = _as_it_comes(settings.model, settings.gguf_file, settings.precision)
    assert causal.record is not None
    with atomic_folder(folder, private=True) as fresh:
        _finish(fresh, causal.record)
    return causal


def save_adapted(folder: str | Path, causal: CausalModel, *, full: bool, merged: bool = False) -> None:
    """Write the folder of an adapted model; an earlier one is unchanged until the new one is complete.

    ``full``: all weights were trained. ``merged``: merge an update into the weights, also in ``causal``. Joined models
    are written one by one.
    """
    earlier, network = causal.record, causal.network
    assert earlier is not None, "it was read from a folder or the hub"
    record = replace(earlier, markers=list(causal.pieces.markers), hashes={})
    with atomic_folder(folder, private=True) as fresh:
        if isinstance(network, JoinedModels):
            record = replace(record, adapted=JOINED, weights=list(network.weights))
            for number, model in enumerate(network.models):
                model.save_pretrained(fresh / f"{JOINED}_{number}")
                causal.pieces.save(fresh / f"{JOINED}_{number}")
        elif full or merged:
            record = replace(record, adapted=WHOLE)
            if not full:
                causal.network = network.merge_and_unload()
            causal.network.save_pretrained(fresh)
            causal.pieces.save(fresh)
        else:
            # The update includes the embeddings of markers; all other rows are the base's.
            record = replace(record, adapted=UPDATE)
            save_adapter(network, fresh / UPDATE, earlier.model)
        _finish(fresh, record)


def _finish(fresh: Path, record: CausalRecord) -> None:
    files = sorted(path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if path.is_file())
    record.hashes.update({name: hash_of_file(fresh / name) for name in files})
    document = {
        "format": FORMAT,
        "kind": KIND,
        **asdict(record),
        "files": sorted({SETTINGS, *(name.split("/")[0] for name in files)}),
    }
    (fresh / SETTINGS).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for path in fresh.rglob("*"):
        if path.is_dir():
            path.chmod(0o700)
        else:
            path.chmod(PRIVATE_MODE)


def load(model: str | Path, gguf_file: str | None = None, *, precision: str = "auto") -> CausalModel:
    """Read a model folder of palimpsest, or an unchanged model by folder, hub name or ``package:NAME/FOLDER``.

    A low-rank update is merged into the weights. ``gguf_file`` and ``precision`` apply to an unchanged model; the only
    GGUF file of a folder is found by itself. Raises ``ModelError`` where the model cannot be found, where a folder is
    damaged or of another format, or where its base has changed.
    """
    folder = Path(model)
    if not (folder / SETTINGS).is_file():
        return _as_it_comes(str(model), gguf_file, precision)
    record = read_record(folder)
    for name, expected in record.hashes.items():
        check_file(folder / name, expected)
    if record.adapted in (WHOLE, JOINED):
        names = ["."] if record.adapted == WHOLE else [f"{JOINED}_{n}" for n in range(len(record.weights))]
        loaded = [load_causal_model(str(folder / name), precision=record.precision) for name in names]
        trained, tokenizer = loaded[0]
        if record.adapted == JOINED:
            parts = zip(loaded, record.weights, strict=True)
            trained = JoinedModels([(model, weight, 0.0) for (model, _), weight in parts])
        pieces = WordPieces(tokenizer, str(folder))
        pieces.hash, pieces.size = record.tokenizer, record.tokenizer_size
        pieces.add_markers(record.markers)
        return CausalModel(trained, pieces, str(folder), record)
    causal = _load_base(record.model, record.gguf_file, record.precision)
    causal.record = record
    base = _base_hash(record.model, record.gguf_file, causal.network)
    if base != record.base:
        raise ModelError(
            f"model folder {str(folder)!r} was made from model {record.model!r} with the hash {str(record.base)[:12]}, "
            f"and here it has {str(base)[:12]}; install that version, or make the model again"
        )
    add_markers(causal, record.markers)
    if record.adapted == UPDATE:
        from peft import PeftModel

        try:
            with quiet_peft():
                tuned = PeftModel.from_pretrained(causal.network, str(folder / UPDATE))
            causal.network = tuned.merge_and_unload()
        except Exception as error:
            raise unreachable(str(folder / UPDATE), error) from error
    return causal


def read_record(folder: Path) -> CausalRecord:
    """Read ``settings.json``; raises ``ModelError`` where it describes no causal model."""
    names = [part.name for part in fields(CausalRecord)]
    document = read_settings(folder, KIND, FORMAT, [name for name in names if name != "weights"])
    return CausalRecord(**{name: document[name] for name in names if name in document})


def add_markers(causal: CausalModel, markers: list[str]) -> None:
    """Add markers as tokens of the model; each starts with the mean embedding."""
    if not markers:
        return
    import torch

    causal.pieces.add_markers(markers)
    ids = list(causal.pieces.markers.values())
    rows = causal.network.get_input_embeddings().weight.shape[0]
    tables = [causal.network.get_input_embeddings(), causal.network.get_output_embeddings()]
    means = [None if table is None else table.weight.detach().mean(0) for table in tables]
    if max(ids) >= rows:
        causal.network.resize_token_embeddings(max(ids) + 1, mean_resizing=False)
    tables = [causal.network.get_input_embeddings(), causal.network.get_output_embeddings()]
    with torch.no_grad():
        for table, mean in zip(tables, means, strict=True):
            if table is not None:
                table.weight[ids] = mean


def load_for_scoring(model: str | Path, precision: Precision = "auto") -> CausalModel:
    """Load a model to score with, of a folder or unchanged; the files of an unchanged one are not hashed."""
    name = str(model)
    is_folder = (Path(name) / SETTINGS).is_file()
    return (load(name) if is_folder else _load_base(name, _gguf_file_of(name), precision)).packed(precision)


def _as_it_comes(model: str, gguf_file: str | None, precision: str) -> CausalModel:
    gguf_file = gguf_file or _gguf_file_of(model)
    causal = _load_base(model, gguf_file, precision)
    base = _base_hash(model, gguf_file, causal.network)
    causal.record = CausalRecord(model, gguf_file, precision, base, causal.pieces.hash, causal.pieces.size)
    return causal


def _gguf_file_of(model: str) -> str | None:
    """The only GGUF file of a folder."""
    source = Path(locate_model(model))
    return gguf_file_in(source) if source.is_dir() else None


def _load_base(model: str, gguf_file: str | None, precision: str) -> CausalModel:
    loaded, tokenizer = load_causal_model(model, gguf_file, precision=precision)
    check_causal(loaded, model)
    return CausalModel(loaded, WordPieces(tokenizer, model), model)


def _base_hash(model: str, gguf_file: str | None, loaded: "Network") -> str | None:
    """A hash over the files of a local base, or the commit of one from the hub."""
    source = Path(locate_model(model))
    if not source.is_dir():
        commit = getattr(loaded.config, "_commit_hash", None)
        return None if commit is None else str(commit)
    if gguf_file:
        return hash_of_file(source / gguf_file)
    digest = hashlib.sha256()
    for path in sorted({path for pattern in _WEIGHTS for path in source.glob(pattern) if path.is_file()}):
        digest.update(f"{path.name}\0{hash_of_file(path)}\n".encode())
    return digest.hexdigest()
