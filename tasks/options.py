"""Options of a command line from the fields of a class, and commands that are no stages.

The type of a field is that of the option, and its docstring is the help. A ``Role`` marks a path to read or write.
``tasks.command`` makes the commands of stages from the same classes.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo

from tasks.files.separate_paths import (
    STANDARD_NAMES,
    STANDARD_STREAM,
    Named,
    refuse_no_path,
    refuse_shared_paths,
    refuse_unwritable,
)
from tasks.settings.base import Settings
from tasks.settings.checks import check_settings


@dataclass(frozen=True)
class Argument:
    """Form of an option on the command line, as metadata of a field."""

    positional: bool = False
    """Whether it is given without the name of an option."""
    again: bool = False
    """Whether the option of a list takes one value and may be repeated, instead of several values."""
    metavar: str | None = None
    """Placeholder of the value in a help text."""


@dataclass(frozen=True)
class Role(Argument):
    """Use of a file or folder by a command."""

    writes: bool = False
    stream: bool = False
    """Whether ``-`` means standard input or output."""
    named: bool = False
    """Whether a name that is no path is also accepted, such as a model's on the hub."""
    files: tuple[str, ...] = ()
    """Files written into a folder, whose other files stay."""
    replaced: bool = False
    """Whether a folder is replaced as a whole."""


READ, READ_STREAM, READ_MODEL = Role(), Role(stream=True), Role(named=True)
WRITE, WRITE_STREAM, WRITE_FOLDER = Role(writes=True), Role(writes=True, stream=True), Role(writes=True, replaced=True)


class Options(Settings):
    """Options of a command: fields with the option's help as docstring; paths are ``Annotated`` with a ``Role``."""

    @classmethod
    def roles(cls) -> dict[str, Role]:
        """The role of each path."""
        found = {name: typed_as(info) for name, info in cls.model_fields.items()}
        return {name: role for name, role in found.items() if isinstance(role, Role)}

    def read(self) -> list[tuple[str, str]]:
        """The inputs: pairs of option and path."""
        return self._with(writes=False)

    def written(self) -> list[tuple[str, str]]:
        """The outputs, in the same form."""
        return self._with(writes=True)

    def refuse_paths(self, read: Sequence[Named] = (), written: Sequence[Named] = ()) -> None:
        """Raise ``ParameterError`` if an output is an input or another output, or cannot be written; leaves no files.

        ``read`` and ``written``: further inputs, and further files to write.
        """
        roles = self.roles()
        refuse_shared_paths(
            [*self.read(), *read],
            [*self.written(), *written],
            files=[name for role in roles.values() for name in role.files],
            replaced=any(role.replaced for role in roles.values()),
        )
        for name, role in roles.items():
            value = getattr(self, name)
            if role.writes and value:
                refuse_unwritable(option_of(name), value, is_folder=role.replaced or bool(role.files))
        for option, path in written:
            refuse_unwritable(option, path, is_folder=False)

    def _with(self, writes: bool) -> list[tuple[str, str]]:
        pairs = []
        for name, role in self.roles().items():
            value = getattr(self, name)
            if role.writes == writes and value and not (role.named and not os.path.exists(value)):
                pairs += [(option_of(name), path) for path in ([value] if isinstance(value, str) else value)]
        return pairs


AnyOptions = TypeVar("AnyOptions", bound=Options)


def typed_as(info: FieldInfo) -> Argument:
    """The form of a field's option."""
    return next((entry for entry in info.metadata if isinstance(entry, Argument)), Argument())


def option_of(name: str) -> str:
    """``--allowed-words`` for ``allowed_words``; a final underscore distinguishes a name from Python's own."""
    return f"--{name.rstrip('_').replace('_', '-')}"


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all errors of the command line are."""

    epilog_for: Callable[[Sequence[str]], str] | None = None
    """The end of the help by the words of a command line; without, ``epilog``."""
    words_for: Callable[[Sequence[str]], list[str]] | None = None
    """The words to parse by those of a command line; without, the same."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As in argparse, with the help's end for these words, and the words that replace them."""
        if self.words_for is not None and args is not None:
            args = self.words_for(args)
        if self.epilog_for is not None and args is not None:
            self.epilog = self.epilog_for(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"palimpsest: error: {message}; '{self.prog} --help' lists the options\n")


def make_parser(prog: str, description: str | None, epilog: str = "") -> OneLineParser:
    """The parser of a command, without options yet."""
    return OneLineParser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_options(parser: argparse.ArgumentParser, options: type[Options]) -> None:
    """Add the options of a class to a parser."""
    for name, info in options.model_fields.items():
        _add_option(parser, name, info)


def _add_option(parser: argparse.ArgumentParser, name: str, info: FieldInfo) -> None:
    typed, kind = typed_as(info), info.annotation
    text = " ".join((info.description or "").replace("``", "'").split()).replace("%", "%%")
    if isinstance(typed, Role) and typed.stream:
        text += "; '-': standard " + ("output" if typed.writes else "input")
    is_list, required = get_origin(kind) is list, info.is_required()
    default = None if required else info.get_default(call_default_factory=True)
    if typed.positional:
        several = ("+" if required else "*") if is_list else (None if required else "?")
        parser.add_argument(name, metavar=typed.metavar or name.upper(), nargs=several, default=default, help=text)
        return
    option = option_of(name)
    if kind is bool:
        parser.add_argument(option, dest=name, action="store_true", help=text)
        return
    if bool in get_args(kind):
        parser.add_argument(option, dest=name, action=argparse.BooleanOptionalAction, help=text)
        return
    metavar = typed.metavar or ("PATH" if isinstance(typed, Role) else None)
    if is_list and typed.again:
        text += "; may be given again"
        parser.add_argument(option, dest=name, action="append", metavar=metavar, default=default, help=text)
    elif is_list:
        parser.add_argument(
            option,
            dest=name,
            nargs="+",
            action="extend",
            metavar=metavar,
            required=required,
            default=default,
            help=text,
        )
    else:
        number = next((each for each in (int, float) if kind is each or each in get_args(kind)), str)
        text += f" (default: {default})" if default is not None else ""
        parser.add_argument(
            option, dest=name, type=number, metavar=metavar, required=required, default=default, help=text
        )


def options_from(
    options: type[AnyOptions], arguments: argparse.Namespace, others: Mapping[str, Role] | None = None
) -> AnyOptions:
    """The parsed options; ``ParameterError`` for a stream that cannot be read or written, with ``others``."""
    given = {name: getattr(arguments, name) for name in options.model_fields}
    for name, role in {**(others or {}), **options.roles()}.items():
        value = getattr(arguments, name)
        for path in [value] if isinstance(value, str) else value or []:
            refuse_no_path(option_of(name), path, is_stream=role.stream, is_read=not role.writes)
        if role.stream and name in given and value in STANDARD_NAMES:
            given[name] = STANDARD_STREAM
    checked: AnyOptions = check_settings(options, given, "options")
    return checked


@dataclass(frozen=True)
class Command(Generic[AnyOptions]):
    """A command that is no stage: its options and its function."""

    options: type[AnyOptions]
    carry_out: Callable[[AnyOptions], int | None]
    """Function of the command; returns the exit status; ``None`` is 0."""
    sections: Callable[[], Sequence[str]] = tuple
    """Key paths of ``params.yaml`` on which it depends, if it is a step of the graph."""

    def parser(self, prog: str, description: str | None) -> argparse.ArgumentParser:
        """The parser with the options."""
        parser = make_parser(prog, description)
        add_options(parser, self.options)
        return parser

    def parse(self, arguments: argparse.Namespace) -> "Call[AnyOptions]":
        """The call in the options."""
        return Call(self, options_from(self.options, arguments))


@dataclass(frozen=True)
class Call(Generic[AnyOptions]):
    """One call of a command."""

    command: Command[AnyOptions]
    options: AnyOptions

    @property
    def sections(self) -> Sequence[str]:
        """The key paths of ``params.yaml`` on which it depends."""
        return self.command.sections()

    def run(self) -> int | None:
        """Run it; ``ParameterError`` if an output is an input or another output."""
        self.options.refuse_paths()
        return self.command.carry_out(self.options)
