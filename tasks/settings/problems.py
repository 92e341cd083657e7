"""What is wrong with settings, in words for whoever wrote them."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from tasks.spelling import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def describe_problems(error: ValidationError, where: str | Path, kind: object) -> str:
    """All problems in one line: key path, bad value, what is allowed, the nearest spelling.

    ``where`` names the file or the options, ``kind`` is the type that the settings should have had.
    """
    problems = []
    for problem in error.errors(include_url=False):
        location = [str(part) for part in problem["loc"]]
        path = ".".join(_key_path(problem["loc"], kind))
        match problem["type"]:
            case "extra_forbidden":
                allowed = _allowed_keys(problem, kind)
                text = f"{path}: unknown key{nearest(location[-1], allowed)}"
                if allowed:
                    text += f"; allowed: {', '.join(sorted(allowed))}"
            case "missing":
                text = f"{path}: is missing"
            case "value_error":
                text = str(problem["ctx"]["error"]).replace("\n", "; ")
                text = f"{path}: {text}" if path else text
            case _:
                value = problem["input"]
                shown = f" (got {value!r})" if not isinstance(value, dict | list) else ""
                text = f"{path}: {problem['msg']}{shown}"
                if problem["type"] == "string_type" and isinstance(value, bool | int | float | date):
                    text += "; YAML reads it as something else than text (no, off and on as truth values): put quotes"
                expected = problem.get("ctx", {}).get("expected_tags") or problem.get("ctx", {}).get("expected")
                if isinstance(value, str) and isinstance(expected, str):
                    options = [option.strip(" '") for option in expected.replace(" or ", ",").split(",")]
                    text += nearest(value, options)
                elif isinstance(value, dict) and "expected_tags" in problem.get("ctx", {}):
                    tag = str(problem["ctx"].get("tag"))
                    options = [option.strip(" '") for option in problem["ctx"]["expected_tags"].split(",")]
                    text += nearest(tag, options)
        problems.append(text)
    count = f"{len(problems)} problems: " if len(problems) > 1 else ""
    return f"{where}: {count}" + "; ".join(problems)


def _key_path(location: Sequence[str | int], kind: object) -> list[str]:
    """The keys a reader sees: a location without the tags of discriminated unions that pydantic puts into it."""
    current: list[Any] = [kind]
    path = []
    for part in location:
        if not _tagged(current, part):
            path.append(str(part))
        current = _step(current, part)
    return path


def _allowed_keys(problem: "ErrorDetails", kind: object) -> list[str]:
    """The field names of the model that refused a key, found by walking the types along the location."""
    current: list[Any] = [kind]
    for part in problem["loc"][:-1]:
        current = _step(current, part)
    names = {name for candidate in unfolded(current) if is_model(candidate) for name in candidate.model_fields}
    return sorted(names)


def _step(kinds: list[Any], part: str | int) -> list[Any]:
    """The types under one part of a location: a field, a dictionary's value, a list's item or a union's tag."""
    following: list[Any] = _tagged(kinds, part)
    if following:
        return following
    for candidate in unfolded(kinds):
        if is_model(candidate):
            if part in candidate.model_fields:
                following.append(candidate.model_fields[str(part)].annotation)
        elif get_origin(candidate) is dict:
            following.append(get_args(candidate)[1])
        elif get_origin(candidate) is list:
            following.append(get_args(candidate)[0])
    return following


def is_model(candidate: object) -> bool:
    """Whether a type is a settings class."""
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)


def _tagged(kinds: list[Any], part: str | int) -> list[Any]:
    """Those models of a union whose tag this part of a location is; a field of that name does not count there."""
    models = [candidate for candidate in unfolded(kinds) if is_model(candidate) and "kind" in candidate.model_fields]
    tagged = [model for model in models if part in get_args(model.model_fields["kind"].annotation)]
    return tagged if len(models) > 1 else [model for model in tagged if part not in model.model_fields]


def unfolded(kinds: list[Any]) -> list[Any]:
    """The types inside ``Annotated`` and unions."""
    found: list[Any] = []
    for kind in kinds:
        if get_origin(kind) is Annotated:
            found += unfolded([get_args(kind)[0]])
        elif get_origin(kind) in (Union, UnionType):
            found += unfolded(list(get_args(kind)))
        else:
            found.append(kind)
    return found
