"""Base of every section of ``params.yaml``: frozen, typed, unknown keys refused.

It also finds strategies of other packages by entry points: settings classes, each with its own ``kind``.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any, TypeVar, Union, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tasks.errors import ParameterError
from tasks.spelling import nearest


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, no unknown key, and every number finite."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _one_path(text: str) -> str:
    if not text.strip() or "\n" in text or "\0" in text:
        raise ValueError(f"a source is the path of a file or folder, not {text[:80]!r}")
    if ":" in text:
        raise ValueError(
            f"a source is a path without a colon, not {text!r}; fetch what is elsewhere into data/raw, and name that"
        )
    return text


SourcePath = Annotated[str, AfterValidator(_one_path)]
"""Path in a section of ``params.yaml`` on which ``dvc.yaml`` depends; DVC takes a colon for a URL or a remote."""


def refuse_out_of_order(settings: Settings, lower: str, upper: str) -> None:
    """Raise ``ValueError`` if the lower limit of a range, the field ``lower``, is above the upper one, ``upper``."""
    low, high = getattr(settings, lower), getattr(settings, upper)
    if low > high:
        raise ValueError(f"{lower} ({low!r}) is above {upper} ({high!r}); lower the one or raise the other")


AnySettings = TypeVar("AnySettings", bound=Settings)

_entry_points = cache(entry_points)  # each call reads the metadata of every installed package, and there are six groups


def kind_of(settings: type[Settings]) -> str:
    """The ``kind`` of a settings class in ``params.yaml``."""
    return str(get_args(settings.model_fields["kind"].annotation)[0])


@cache
def registered(group: str, own: Sequence[type[AnySettings]]) -> dict[str, type[AnySettings]]:
    """The settings classes of a group by kind: our own, and those of the entry-point group of that name.

    ``ParameterError`` if a package adds an existing kind.
    """
    found = {kind_of(settings): settings for settings in own}
    for point in _entry_points().select(group=group):
        settings = point.load()
        if found.setdefault(kind_of(settings), settings) is not settings:
            raise ParameterError(
                f"the entry point {point.value!r} ({group}) adds a kind {kind_of(settings)!r}, which is there already; "
                "its package has to name it otherwise"
            )
    return found


def any_of(group: str, own: Sequence[type[Settings]]) -> Any:  # noqa: ANN401 - a type itself
    """The type of settings of any of these kinds."""
    return Annotated[Union[tuple(registered(group, tuple(own)).values())], Field(discriminator="kind")]  # noqa: UP007


def method_named(methods: Mapping[str, object], section: str, name: str | None) -> dict[str, object]:
    """The settings for ``--method`` without a parameter file: one of these kinds.

    ``ParameterError`` with the nearest spelling if it is unknown.
    """
    if name in methods:
        return {"kind": name}
    raise ParameterError(
        f"--method {name!r} is not known{nearest(str(name), methods)}; allowed: {', '.join(methods)}, or with --params "
        f"a key of '{section}:'"
    )
