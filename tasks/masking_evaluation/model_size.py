"""How large what a technique loads is on disk: list file, model folder or package, in bytes."""

import importlib.util
from pathlib import Path
from typing import Any


def model_size(chosen_files: list[str], settings: Any) -> int | None:
    """Bytes of the files of a technique; ``None`` where it needs none of its own or they cannot be found.

    ``chosen_files`` are the files that the options name (lists, word counts), ``settings`` one of
    ``tasks.masking.settings.TechniqueSettings``. What several parts of a combination share is counted once.
    """
    places = [place for place in {*map(Path, chosen_files), *_places(settings)} if place.exists()]
    return sum(map(_bytes_of, places)) if places else None


def _places(settings: Any) -> set[Path]:
    match settings.kind:
        case "allow_list":
            from tasks.masking.lists.allow_list import SHIPPED_LIST

            return {Path(settings.path) if settings.path else SHIPPED_LIST}
        case "entity_tagger":
            place = _place_of_model(settings.tagger.kind, settings.tagger.model)
            return {place} if place else set()
        case "combination":
            return {place for part in settings.parts for place in _places(part)}
    return set()


def _place_of_model(kind: str, model: str) -> Path | None:
    if Path(model).exists():
        return Path(model)
    if kind in ("spacy", "presidio"):
        specification = importlib.util.find_spec(model) if model.isidentifier() else None
        places = specification.submodule_search_locations if specification else None
        return Path(places[0]) if places else None
    if kind == "transformers":
        return _place_of_hub_model(model)
    return None


def _place_of_hub_model(model: str) -> Path | None:
    """The folder of a package's model, or of a hub model in the local cache, where loading has just put it."""
    from tasks.model_source import locate_model

    located = locate_model(model)
    if Path(located).exists():
        return Path(located)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(located, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _bytes_of(place: Path) -> int:
    if place.is_file():
        return place.stat().st_size
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
