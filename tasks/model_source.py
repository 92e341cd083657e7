"""Source of a model: a folder, a file inside an installed pip package, or a hub name; and the check of a folder's
files, which names a missing file before the library raises a less clear error."""

import importlib.util
import json
from pathlib import Path

from tasks.errors import ModelError

PACKAGE_PREFIX = "package:"
_HUB_TIMEOUT_SECONDS = 10
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_INDEX = ".index.json"
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tekken.json")
_TOKENIZER_ENDINGS = (".model", ".tiktoken")
"""``spiece.model``, ``tokenizer.model``, ``sentencepiece.bpe.model`` and others."""


def locate_model(model: str) -> str:
    """The argument of ``from_pretrained`` for a model setting.

    ``package:NAME/FOLDER`` becomes the folder inside the installed package ``NAME``; an existing folder is unchanged;
    any other text is a hub name. Raises ``ModelError`` if a package or its folder is missing, or for a path that does
    not exist. If the hub cannot be reached, only its local cache is used from then on.
    """
    if model.startswith(PACKAGE_PREFIX):
        return str(_inside_package(model))
    if Path(model).is_dir():
        return model
    if is_path(model):
        raise ModelError(f"model folder {model!r} does not exist; give a folder, a hub name or package:NAME/FOLDER")
    _go_offline_without_hub()
    return model


def is_path(model: str) -> bool:
    """Whether a model's name can only be a local folder."""
    return model.startswith((".", "/", "~", PACKAGE_PREFIX)) or model.count("/") > 1


def _go_offline_without_hub() -> None:
    """Ask the hub once: its library would repeat every request six times, with a log line for each, for a minute."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.HF_HUB_OFFLINE:
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_TIMEOUT_SECONDS)
    except Exception:
        # For any reason (no network, no name, a proxy): a cached model can still be loaded.
        constants.HF_HUB_OFFLINE = True


def _inside_package(model: str) -> Path:
    name, _, inside = model.removeprefix(PACKAGE_PREFIX).partition("/")
    try:
        specification = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        specification = None
    if specification is None or not specification.submodule_search_locations:
        raise ModelError(f"model {model!r}: the package {name!r} is not installed; 'make install' installs the models")
    folder = Path(specification.submodule_search_locations[0]) / inside
    if not folder.exists():
        raise ModelError(f"model {model!r}: the package {name!r} holds no {inside!r}")
    return folder


def check_model_folder(source: str, name: str) -> None:
    """Raise ``ModelError`` if ``source`` is a folder without configuration, weights or tokenizer.

    ``name`` is the user's name of the model. A source that is no folder (a hub name) is not checked.
    """
    folder = Path(source)
    if not folder.is_dir():
        return
    missing = []
    if not (folder / "config.json").exists():
        missing.append("config.json")
    missing += _missing_weights(folder)
    if not any(file.name in _TOKENIZERS or file.suffix in _TOKENIZER_ENDINGS for file in folder.iterdir()):
        missing.append("a tokenizer (tokenizer.json)")
    elif not (folder / "tokenizer.json").exists() and (folder / "vocab.json").exists():
        # A vocabulary of byte pairs is of no use without its merges.
        missing += [file for file in ("merges.txt",) if not (folder / file).exists()]
    if missing:
        raise ModelError(f"model folder {name!r} lacks {', '.join(missing)}; copy or fetch the whole model")


def _missing_weights(folder: Path) -> list[str]:
    """The missing weight files; the index of a model in several files names them."""
    if any((folder / file).exists() for file in _WEIGHTS):
        return []
    for file in _WEIGHTS:
        index = folder / f"{file}{_INDEX}"
        if index.exists():
            try:
                parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ModelError(f"{str(index)!r} is no index of weight files; fetch the whole model again") from None
            return sorted(part for part in parts if not (folder / part).exists())
    return ["weights (model.safetensors)"]


def unreachable(model: str, error: Exception) -> ModelError:
    """The error for a model that could be loaded neither from a folder nor from the hub, with the remedy."""
    reason = type(error).__name__
    if Path(model).is_dir():
        files = ", ".join(sorted(file.name for file in Path(model).iterdir())) or "nothing"
        return ModelError(f"model folder {model!r} cannot be loaded ({reason}: {_first_line(error)}); it holds {files}")
    return ModelError(
        f"model {model!r} is neither a folder nor reachable on the hub ({reason}); correct the name, or fetch it where "
        f"there is a network with 'hf download {model} --local-dir FOLDER' and give that folder"
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else "no reason given"
