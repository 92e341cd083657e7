"""Settings from written values, with all errors in one line; and settings in the form of a report."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from tasks.errors import ParameterError
from tasks.spelling import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def check_settings(kind: Any, values: Mapping[str, Any], where: str | Path) -> Any:  # noqa: ANN401 - a union, too
    """Settings of this type. ``where`` names the file or the options.

    ``ParameterError`` with each problem: key path, bad value, allowed values, and the nearest spelling.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        return adapter.validate_python(dict(values))
    except ValidationError as error:
        problems = [_described(problem, kind) for problem in error.errors(include_url=False)]
        count = f"{len(problems)} problems: " if len(problems) > 1 else ""
        raise ParameterError(f"{where}: {count}" + "; ".join(problems)) from None


def _described(problem: "ErrorDetails", kind: object) -> str:
    keys, _ = _followed(problem["loc"], kind)
    path = ".".join(keys)
    value, context = problem["input"], problem.get("ctx", {})
    match problem["type"]:
        case "extra_forbidden":
            _, above = _followed(problem["loc"][:-1], kind)
            allowed = sorted({name for one in above if is_model(one) for name in one.model_fields})
            listed = f"; allowed: {', '.join(allowed)}" if allowed else ""
            return f"{path}: unknown key{nearest(keys[-1], allowed)}{listed}"
        case "missing":
            return f"{path}: is missing"
        case "value_error":
            text = str(context["error"]).replace("\n", "; ")
            return f"{path}: {text}" if path else text
    text = f"{path}: {problem['msg']}"
    if not isinstance(value, dict | list):
        text += f" (got {value!r})"
    if problem["type"] == "string_type" and isinstance(value, bool | int | float | date):
        text += "; YAML reads it as something else than text (no, off and on as truth values): put quotes"
    expected = re.findall(r"'([^']*)'", str(context.get("expected_tags") or context.get("expected")))
    return text + nearest(str(context.get("tag", value)), expected)


def _followed(location: Iterable[str | int], kind: object) -> tuple[list[str], list[Any]]:
    """The keys of a location, without pydantic's tags of unions, and the types at that place."""
    keys: list[str] = []
    types = unfolded([kind])
    for part in location:
        tagged = [
            one
            for one in types
            if is_model(one) and part in get_args(getattr(one.model_fields.get("kind"), "annotation", None))
        ]
        if tagged and (len(types) > 1 or part not in tagged[0].model_fields):
            types = tagged
            continue
        keys.append(str(part))
        models = [one for one in types if is_model(one) and part in one.model_fields]
        inside = [get_args(one)[-1] for one in types if get_origin(one) in (dict, list)]
        types = unfolded([*(one.model_fields[str(part)].annotation for one in models), *inside])
    return keys, types


def is_model(candidate: object) -> bool:
    """Whether a type is a settings class."""
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def unfolded(kinds: Sequence[object]) -> list[Any]:
    """The types inside ``Annotated`` and unions."""
    found: list[Any] = []
    for kind in kinds:
        inside = get_args(kind)
        if get_origin(kind) is Annotated:
            found += unfolded(inside[:1])
        else:
            found += unfolded(inside) if get_origin(kind) in (Union, UnionType) else [kind]
    return found


def as_plain(settings: object) -> Any:  # noqa: ANN401 - what JSON can hold
    """Settings as plain lists and dictionaries for a report."""
    if isinstance(settings, BaseModel):
        return settings.model_dump(mode="json")
    if isinstance(settings, Mapping):
        return {key: as_plain(value) for key, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [as_plain(value) for value in settings]
    return settings
