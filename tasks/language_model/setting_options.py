"""Settings as options of a command: ``--learning-rate`` for ``learning_rate``, with the setting's own help text."""

import argparse
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from tasks.settings.base import Settings

_Settings = TypeVar("_Settings", bound=Settings)


def _parser_of(annotation: Any) -> Callable[[str], Any]:
    """What turns an option's text into a value; the settings class checks it further. An option cannot be null."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation if annotation in (int, float) else str


def add_setting_options(
    parser: argparse.ArgumentParser, kind: type[Settings], title: str, leave_out: Iterable[str] = ()
) -> None:
    """Add one option for each field of ``kind``; an option that is not given leaves the setting as it is."""
    group = parser.add_argument_group(title, "each overrides the parameter file, or the default that stands behind it")
    for name, field in kind.model_fields.items():
        if name in leave_out:
            continue
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else None
        description = " ".join((field.description or "").replace("``", "").split()).replace("%", "%%")
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            type=_parser_of(field.annotation),
            choices=choices,
            default=None,
            help=f"{description} {_default_of(field)}".strip(),
        )


def add_setting_options_and_grids(
    parser: argparse.ArgumentParser, kind: type[Settings], title: str, grids: Iterable[str], metavar: str
) -> None:
    """The same where the fields ``grids`` are lists of numbers to be tried: each takes one or more."""
    grids = list(grids)
    add_setting_options(parser, kind, title, leave_out=grids)
    for name in grids:
        description = " ".join((kind.model_fields[name].description or "").split())
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, nargs="+", metavar=metavar, help=description)


def _default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "(no default)"
    return f"(default: {'null' if field.default is None else field.default})"


def overridden(arguments: argparse.Namespace, kind: type[Settings], base: Settings | None = None) -> dict[str, Any]:
    """Values for ``kind``: those of ``base`` with the options that were given put over them."""
    values = {} if base is None else base.model_dump()
    for name in kind.model_fields:
        given = getattr(arguments, name, None)
        if given is not None:
            values[name] = given
    return values


def settings_of(arguments: argparse.Namespace, section: str, kind: type[_Settings], title: str) -> _Settings:
    """The settings of a command: its options, over ``section`` of the file ``--params``, over the defaults.

    Raises ``ParameterError``, with ``title`` for where, where a value is not allowed.
    """
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import check_settings

    base = read_sections(arguments.params, [section])[section] if arguments.params else None
    return check_settings(kind, overridden(arguments, kind, base), title)
