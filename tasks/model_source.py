"""Where a model comes from: a folder, a file inside an installed pip package, or a hub name."""

import importlib.util
from pathlib import Path

from tasks.errors import ModelError

PACKAGE_PREFIX = "package:"
_HUB_TIMEOUT_SECONDS = 10


def locate_model(model: str) -> str:
    """Turn a model setting into what ``from_pretrained`` takes.

    ``package:NAME/FOLDER`` becomes the folder inside the installed package ``NAME``; an existing folder stays;
    anything else is taken for a hub name. Raises ``ModelError`` where a package or its folder is missing, or where
    a path is given that does not exist. Where the hub cannot be reached, only its local cache is asked from then on.
    """
    if model.startswith(PACKAGE_PREFIX):
        return str(_inside_package(model))
    if Path(model).is_dir():
        return model
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ModelError(f"model folder {model!r} does not exist; give a folder, a hub name or package:NAME/FOLDER")
    _go_offline_without_hub()
    return model


def _go_offline_without_hub() -> None:
    """Ask the hub once: its library would repeat every request six times, with a line of log for each, for a minute."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.HF_HUB_OFFLINE:
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_TIMEOUT_SECONDS)
    except Exception:
        # Whatever the reason (no network, no name, a proxy): what is in the cache can still be loaded.
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


def unreachable(model: str, error: Exception) -> ModelError:
    """The error for a model that could be loaded neither from a folder nor from the hub, with the remedy."""
    reason = type(error).__name__
    if Path(model).is_dir():
        files = ", ".join(sorted(file.name for file in Path(model).iterdir())) or "nothing"
        return ModelError(f"model folder {model!r} cannot be loaded ({reason}: {_first_line(error)}); it holds {files}")
    return ModelError(
        f"model {model!r} is neither a folder nor reachable on the hub ({reason}); mend the name, or fetch it where "
        f"there is a network with 'hf download {model} --local-dir FOLDER' and give that folder"
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else "no reason given"
