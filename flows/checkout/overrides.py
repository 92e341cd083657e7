"""Parameters of one run that differ from ``params.yaml``: ``palimpsest run --set filling.top_k.k=20``.

DVC and every stage read ``params.yaml``, so the changed values stand there while the run works, and the file is put
back byte for byte when it ends, with ``cells.yaml``, which follows from it. A copy of the originals lies beside the
logs meanwhile: after a run that was killed, the next one puts them back first.

``params.yaml`` checked, and ``cells.yaml`` written as it asks, before the graph is read.

To check it means to import the settings of every step, which takes longer than DVC takes to find that nothing is to
be done. A run that has checked it leaves a fingerprint of both files, of ``dvc.yaml`` (whose steps ``resources``
names) and of the code; while none of them changes, the answer cannot, and a run with nothing to do need not ask again.
"""

import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import tasks
from flows.checkout.run_lock import STATE_FOLDER
from tasks.errors import ParameterError, StageError
from tasks.files.atomic_file import atomic_writer
from tasks.settings.overrides import SettingsLoader

if TYPE_CHECKING:
    from tasks.settings.resources import ResourceSettings

PARAMETERS = "params.yaml"
"""By its name, since the settings of every step come with ``tasks.parameters.parameter_file``."""
CELLS = "cells.yaml"
ORIGINAL = Path(STATE_FOLDER) / "params_before_overrides.json"
"""Text of ``params.yaml`` before the overrides, and with them."""


def overridden_text(parameter_file: Path, overrides: Mapping[str, Any]) -> str:
    """Text of the parameter file with the overrides; its comments and order stay.

    ``ParameterError`` with the key path where an override names no place in the file, or where the whole file with all
    of them is not allowed.
    """
    from pydantic import ValidationError
    from ruamel.yaml import YAML

    from tasks.parameters.parameter_file import Parameters, read_parameters, section_of
    from tasks.settings.problems import describe_problems

    parameters = read_parameters(parameter_file)
    editor = YAML()
    editor.representer.add_representer(
        type(None), lambda representer, _: representer.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    editor.width = 4096
    editor.preserve_quotes = True
    editor.indent(mapping=2, sequence=4, offset=2)
    document = editor.load(parameter_file.read_text(encoding="utf-8"))
    for key, value in overrides.items():
        *above, last = key.split(".")
        place = document
        for depth, part in enumerate(above, start=1):
            if isinstance(place.get(part), list):
                path_so_far = ".".join(above[:depth])
                raise ParameterError(
                    f"--set {key}: {path_so_far!r} is a list; give all of it: --set '{path_so_far}=[…]'"
                )
            if not isinstance(place.get(part), dict):
                # A section that has only its defaults need not stand in the file.
                section_of(parameters, ".".join(above[:depth]), "--set")
                place[part] = {}
            place = place[part]
        # Read as the editor reads, so that lists and mappings stay on one line.
        place[last] = editor.load(json.dumps(value, default=str))
    stream = io.StringIO()
    editor.dump(document, stream)
    try:
        Parameters.model_validate(yaml.load(stream.getvalue(), SettingsLoader))
    except ValidationError as error:
        where = "--set " + " ".join(f"{key}={value!r}" for key, value in overrides.items())
        raise ParameterError(describe_problems(error, where, Parameters)) from None
    return stream.getvalue()


@contextmanager
def overridden(folder: Path, overrides: Mapping[str, Any]) -> Iterator[None]:
    """Let ``params.yaml`` have the overrides inside the block. The caller holds the lock of runs."""
    put_back(folder)
    if not overrides:
        yield
        return
    path = folder / PARAMETERS
    changed = overridden_text(path, overrides)
    before = path.read_text(encoding="utf-8")
    with atomic_writer(folder / ORIGINAL, private=True) as stream:
        cells = (folder / CELLS).read_text(encoding="utf-8") if (folder / CELLS).exists() else None
        json.dump({"before": before, "changed": changed, "cells": cells}, stream)
    try:
        _write(path, changed)
        yield
    finally:
        put_back(folder)


def put_back(folder: Path) -> bool:
    """Put ``params.yaml`` back as it was before overrides; whether there was anything to put back.

    Only with the lock of runs. ``StageError`` where somebody has edited the file meanwhile: their work is not lost.
    """
    try:
        texts = json.loads((folder / ORIGINAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    path = folder / PARAMETERS
    present = path.read_text(encoding="utf-8")
    if present not in (texts["before"], texts["changed"]):
        kept = folder / STATE_FOLDER / f"{PARAMETERS}.before_overrides"
        _write(kept, texts["before"])
        (folder / ORIGINAL).unlink()
        raise StageError(
            f"{PARAMETERS} was edited while a run with --set had changed it, and holds that run's overrides still; "
            f"what it was before is in {str(kept.relative_to(folder))!r}. Put it right, then run this again"
        )
    if present != texts["before"]:
        _write(path, texts["before"])
    if texts.get("cells") is not None:
        _write(folder / CELLS, texts["cells"])
    (folder / ORIGINAL).unlink()
    return True


def _write(path: Path, text: str) -> None:
    with atomic_writer(path) as stream:
        stream.write(text)


FILE = Path(STATE_FOLDER) / "checked_parameters"


def checked_resources(root: Path) -> "ResourceSettings":
    """The section ``resources``, after ``cells.yaml`` was brought to what ``params.yaml`` asks for.

    ``ParameterError`` where ``params.yaml`` has a mistake anywhere.
    """
    from tasks.parameters.cells_file import write_cells
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    parameters = read_parameters(root / DEFAULT_PATH)
    write_cells(parameters, root)
    return parameters.resources


def known_to_be_valid(root: Path) -> bool:
    """Whether a run has checked just these files with just this code."""
    try:
        return (root / FILE).read_text(encoding="ascii") == _fingerprint(root)
    except (OSError, ValueError):
        return False


def remember_as_valid(root: Path) -> None:
    """Note that the files have been checked."""
    with atomic_writer(root / FILE) as stream:
        stream.write(_fingerprint(root))


def _fingerprint(root: Path) -> str:
    parts = [sys.version, *map(str, _code())]
    parts += [
        hashlib.sha256((root / name).read_bytes()).hexdigest() for name in ("params.yaml", "cells.yaml", "dvc.yaml")
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _code() -> list[tuple[str, int, int]]:
    """Every source file of the steps, with its time and size."""
    found = []
    for folder, _, names in os.walk(str(Path(tasks.__file__).parent)):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                state = os.stat(path)
                found.append((path, state.st_mtime_ns, state.st_size))
    return sorted(found)
