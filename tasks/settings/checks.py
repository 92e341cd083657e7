"""Settings from options, and settings as a report records them."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from tasks.errors import ParameterError
from tasks.settings.problems import describe_problems


def check_settings(kind: Any, values: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401 - a union, too
    """Build settings from command-line options; ``ParameterError`` names the option or key path."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        return adapter.validate_python(dict(values))
    except ValidationError as error:
        raise ParameterError(describe_problems(error, where, kind)) from None


def as_plain(settings: object) -> Any:  # noqa: ANN401 - what JSON can hold
    """Settings as the plain lists and dictionaries that a report records."""
    if isinstance(settings, BaseModel):
        return settings.model_dump(mode="json")
    if isinstance(settings, Mapping):
        return {key: as_plain(value) for key, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [as_plain(value) for value in settings]
    return settings
