"""Settings that a command line changes: ``--set KEY=VALUE``, with the keys of ``params.yaml``."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tasks.errors import ParameterError
from tasks.settings.base import Settings, kind_of
from tasks.settings.checks import is_model, unfolded
from tasks.spelling import nearest


class SettingsLoader(yaml.SafeLoader):
    """YAML as DVC reads it (1.2): ``5e-5`` is a number, and not a text as in PyYAML."""


SettingsLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def parse_overrides(texts: Iterable[str]) -> dict[str, Any]:
    """Values by key path of ``KEY.PATH=VALUE``; a value is YAML: ``20``, ``name``, ``[a, b]``, ``{k: 20}``.

    ``ParameterError`` if a text has another form, or a key path occurs twice.
    """
    overrides: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not all(key.split(".")):
            raise ParameterError(f"--set: {text!r} is not of the form KEY=VALUE, such as k=20")
        if key in overrides:
            raise ParameterError(f"--set: {key!r} occurs twice; give it once")
        try:
            overrides[key] = yaml.load(value, SettingsLoader)
        except yaml.YAMLError:
            raise ParameterError(f"--set: the value {value!r} of {key!r} is not YAML; put quotes around text") from None
    return overrides


def with_overrides(values: Mapping[str, Any], texts: Sequence[str], settings: object = None) -> dict[str, Any]:
    """Settings overridden by ``KEY=VALUE``, as by ``with_values``; the last value of a key counts."""
    return with_values(
        values, {key: value for text in texts for key, value in parse_overrides([text]).items()}, settings
    )


def with_values(values: Mapping[str, Any], given: Mapping[str, Any], settings: object) -> dict[str, Any]:
    """Settings with the given values by key, in their order; a dot goes one level down.

    A key of one level may be a setting of any level of the type ``settings`` (``full_key``). A new ``kind`` of a
    section replaces the whole section, since its keys were of another kind.
    """
    changed = dict(values)
    for key in sorted(given, key=lambda key: key.split(".")[-1] != "kind"):
        put_setting(changed, full_key(key, settings, changed).split("."), given[key])
    return changed


def full_key(key: str, settings: object, values: Mapping[str, Any]) -> str:
    """The key path of a setting that is named by its last key alone: ``epochs`` for ``adaptation.epochs``.

    The setting of the highest level counts. ``values`` give the kinds of sections. ``ParameterError`` if the name fits
    several settings of that level, or none and is nearly that of one.
    """
    known = list(_keys(settings, values))
    found = {path for name, path in known if name == key}
    level = min((path.count(".") for path in found), default=0)
    paths = sorted(path for path in found if path.count(".") == level)
    if len(paths) > 1:
        raise ParameterError(f"setting {key!r} fits {', '.join(paths)}; give one of these keys")
    if not paths and "." not in key and (near := nearest(key, {name for name, _ in known})):
        raise ParameterError(f"setting {key!r} is unknown{near}")
    return paths[0] if paths else key


def _keys(kind: object, values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Name and key path of each setting of all levels."""
    models = _models(kind)
    for model in [model for model in models if _kind(model) == values.get("kind")] or models:
        for name, info in model.model_fields.items():
            yield name, before + name
            if get_origin(info.annotation) is not list:
                below = values.get(name)
                yield from _keys(info.annotation, below if isinstance(below, Mapping) else {}, f"{before}{name}.")


def put_setting(values: dict[str, Any], path: Sequence[str], value: object) -> None:
    """Set one value at its key path."""
    head, *rest = path
    if not rest:
        if head == "kind" and values.get("kind") != value:
            values.clear()
        values[head] = value
        return
    below = dict(values.get(head) or {})
    put_setting(below, rest, value)
    values[head] = below


def of_kind(values: Mapping[str, Any], overrides: Sequence[str], settings: object) -> dict[str, Any]:
    """The values for which the settings have fields, of the kind in ``--set``, or else in the section."""
    said = [text.partition("=")[2] for text in overrides if text.startswith("kind=")]
    kind = said[-1] if said else values.get("kind")
    models = _models(settings)
    model = next((model for model in models if kind == kind_of(model)), None)
    return {"kind": kind} if model is None else {**_fields_of(values, model), "kind": kind}


def _fields_of(values: Mapping[str, Any], model: type[Settings]) -> dict[str, Any]:
    found = {}
    for name, info in model.model_fields.items():
        if name in values:
            below = _models(info.annotation)
            is_section = len(below) == 1 and isinstance(values[name], Mapping)
            found[name] = _fields_of(values[name], below[0]) if is_section else values[name]
    return found


def setting_lines(kind: object, chosen: str | None = None) -> list[str]:
    """The help on ``--set``: each key with its field's docstring and default, those of a ``chosen`` kind alone."""
    models, lines = [model for model in _models(kind) if chosen in (None, _kind(model))], []
    for model in models:
        lines += [f"  kind={_kind(model)}"] if len(models) > 1 else []
        lines += _lines_of(model, "")
    return ["", "settings (--set KEY=VALUE):", *lines] if lines else []


def setting_names(kind: object) -> dict[str, list[str]]:
    """The first keys of each kind of settings in a type; empty if it has one class."""
    names = {_kind(model): [name for name in model.model_fields if name != "kind"] for model in _models(kind)}
    return names if len(names) > 1 else {}


def _kind(model: type[Settings]) -> str:
    return kind_of(model) if "kind" in model.model_fields else ""


def _lines_of(model: type[Settings], prefix: str) -> list[str]:
    """The keys of a class: plain ones first, then nested ones, under the kind if there are several."""
    plain, nested = [], []
    for name, info in model.model_fields.items():
        below = _models(info.annotation) if get_origin(info.annotation) is not list else []
        for one in below:
            nested += [f"  {prefix}{name}.kind={_kind(one)}"] if len(below) > 1 else []
            nested += _lines_of(one, f"{prefix}{name}.")
        if name != "kind" and not below:
            plain += _explained(f"{prefix}{name}", info)
    return plain + nested


def _explained(key: str, info: FieldInfo) -> list[str]:
    """The help on one setting: its key, description and default, in lines of at most 110 columns."""
    text = " ".join((info.description or "").replace("``", "'").split())
    if not info.is_required():
        text += f" (default: {_shown(info.get_default(call_default_factory=True))})"
    return textwrap.wrap(text, 110, initial_indent=f"  {key}  ", subsequent_indent="      ") or [f"  {key}"]


def _shown(value: object) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _models(kind: object) -> list[type[Settings]]:
    """The settings classes in a type."""
    return [model for model in unfolded([kind]) if is_model(model)]
