"""Parameters of one run that differ from ``params.yaml``: ``palimpsest run --set filling.top_k.k=20``.

DVC and every stage read ``params.yaml``, so it has the changed values during the run. At its end the file is restored
byte for byte, with ``cells.yaml``, which follows from it. Meanwhile a copy of the originals is next to the logs. After
a killed run, the next one restores them first.

``checked_resources`` checks ``params.yaml`` and writes ``cells.yaml``, before the graph is read.
"""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flows.checkout.run_lock import STATE_FOLDER
from tasks.errors import ParameterError, StageError
from tasks.files.atomic_file import atomic_writer
from tasks.settings.overrides import SettingsLoader

if TYPE_CHECKING:
    from tasks.settings.resources import ResourceSettings

PARAMETERS = "params.yaml"
"""Name of the file; importing ``tasks.parameters.parameter_file`` would import the settings of every step."""
CELLS = "cells.yaml"
ORIGINAL = Path(STATE_FOLDER) / "params_before_overrides.json"
"""Texts of both files before the overrides, and of ``params.yaml`` with them."""


def overridden_text(parameter_file: Path, overrides: Mapping[str, Any]) -> str:
    """The text of the parameter file with the overrides; its comments and order are unchanged.

    Raises ``ParameterError`` with the key path if an override names no place in the file, or if the file with all
    overrides is invalid.
    """
    from ruamel.yaml import YAML

    from tasks.parameters.parameter_file import Parameters, read_parameters, section_of
    from tasks.settings.checks import check_settings

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
            path = ".".join(above[:depth])
            if isinstance(place.get(part), list):
                raise ParameterError(f"--set {key}: {path!r} is a list; give all of it: --set '{path}=[…]'")
            section_of(parameters, path, "--set")
            # A section with defaults only may be absent from the file.
            place[part] = place.get(part) or {}
            place = place[part]
        # Read as the editor reads, so that lists and mappings stay on one line.
        place[last] = editor.load(json.dumps(value, default=str))
    stream = io.StringIO()
    editor.dump(document, stream)
    where = "--set " + " ".join(f"{key}={value!r}" for key, value in overrides.items())
    check_settings(Parameters, yaml.load(stream.getvalue(), SettingsLoader), where)
    return stream.getvalue()


@contextmanager
def overridden(folder: Path, overrides: Mapping[str, Any]) -> Iterator[None]:
    """Apply the overrides to ``params.yaml`` inside the block. The caller holds the lock of runs."""
    put_back(folder)
    if not overrides:
        yield
        return
    changed = overridden_text(folder / PARAMETERS, overrides)
    before = {name: (folder / name).read_text("utf-8") for name in (PARAMETERS, CELLS) if (folder / name).exists()}
    with atomic_writer(folder / ORIGINAL, private=True) as stream:
        json.dump({"before": before, "changed": changed}, stream)
    try:
        _write(folder / PARAMETERS, changed)
        yield
    finally:
        put_back(folder)


def put_back(folder: Path) -> None:
    """Restore ``params.yaml`` from before the overrides, if a run had any.

    Call it only with the lock of runs. ``StageError`` if somebody has edited the file meanwhile: their work is not
    lost.
    """
    if not (folder / ORIGINAL).exists():
        return
    texts = json.loads((folder / ORIGINAL).read_text(encoding="utf-8"))
    before = texts["before"]
    if (folder / PARAMETERS).read_text(encoding="utf-8") not in (before[PARAMETERS], texts["changed"]):
        kept = folder / STATE_FOLDER / f"{PARAMETERS}.before_overrides"
        _write(kept, before[PARAMETERS])
        (folder / ORIGINAL).unlink()
        raise StageError(
            f"{PARAMETERS} was edited while a run with --set had changed it, and holds that run's overrides still; "
            f"its earlier text is in {str(kept.relative_to(folder))!r}. Correct it, then run this again"
        )
    for name, text in before.items():
        _write(folder / name, text)
    (folder / ORIGINAL).unlink()


def _write(path: Path, text: str) -> None:
    with atomic_writer(path) as stream:
        stream.write(text)


def checked_resources(root: Path) -> "ResourceSettings":
    """The section ``resources``, after updating ``cells.yaml`` from ``params.yaml``.

    ``ParameterError`` if ``params.yaml`` has any mistake.
    """
    from tasks.parameters.cells_file import write_cells
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    parameters = read_parameters(root / DEFAULT_PATH)
    write_cells(parameters, root)
    return parameters.resources
