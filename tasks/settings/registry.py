"""Strategies that other packages add: settings classes, each with a ``kind`` of its own, found by entry points."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any, TypeVar, Union, get_args

from pydantic import Field

from tasks.errors import ParameterError
from tasks.settings.base import Settings

AnySettings = TypeVar("AnySettings", bound=Settings)


def kind_of(settings: type[Settings]) -> str:
    """The ``kind`` by which ``params.yaml`` names a settings class."""
    return str(get_args(settings.model_fields["kind"].annotation)[0])


@cache
def registered(group: str, own: Sequence[type[AnySettings]]) -> dict[str, type[AnySettings]]:
    """The settings classes of a sort by their kind: our own, and those of the entry-point group of that name.

    ``ParameterError`` where a package adds a kind that is there already.
    """
    found = {kind_of(settings): settings for settings in own}
    for point in entry_points(group=group):
        settings = point.load()
        if found.setdefault(kind_of(settings), settings) is not settings:
            raise ParameterError(
                f"the entry point {point.value!r} ({group}) adds a kind {kind_of(settings)!r}, which is there already; "
                "its package has to name it otherwise"
            )
    return found


def any_of(group: str, own: Sequence[type[Settings]]) -> Any:
    """The type of settings that are of any of these kinds."""
    return Annotated[Union[tuple(registered(group, tuple(own)).values())], Field(discriminator="kind")]  # noqa: UP007
