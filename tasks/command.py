"""Commands of stages: options from typed fields, settings from ``params.yaml``.

A stage is a function ``stage(settings, files, cell, resources) -> Report``. Its ``StageCommand`` has the section of
``params.yaml`` with its settings, and the files that it reads and writes. These definitions are used by the command
line, the check that no output is an input, and the test that compares ``dvc.yaml`` with the code.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from textwrap import wrap
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from tasks.errors import ParameterError
from tasks.files.separate_paths import STANDARD_STREAM, without_empty_folders
from tasks.options import READ, WRITE_STREAM, Options, add_options, make_parser, option_of, options_from
from tasks.parameters.cell_options import OPTIONS, with_options_of_cell
from tasks.records.cell import Cell
from tasks.records.stage_report import Report, StageReport, recorded_stage
from tasks.settings.checks import as_plain, check_settings
from tasks.settings.overrides import of_kind, setting_lines, setting_names, with_overrides
from tasks.settings.resources import ResourceSettings
from tasks.settings.seeds import check_seed
from tasks.spelling import nearest
from tasks.threads import available_cores, is_first_process

_RESOURCES = "resources."
_DIMENSIONS = {"technique": "masking technique", "method": "method", "seed": "seed of every draw"}


# Functions with names: processes that train together get the command, and lambdas cannot be pickled.
def _kind_of(name: str | None) -> dict[str, object]:
    return {"kind": name} if name else {}


def _same_cell(files: object, name: str | None, cell: Cell) -> Cell:
    return cell


def _nothing_given(files: object) -> dict[str, object]:
    return {}


def _no_files(settings: object) -> list[str]:
    return []


class StageFiles(Options):
    """Paths of a stage: fields that are ``Annotated`` with a ``Role``, with the option's help as docstring.

    A field without a role is an option of another kind, such as the number of lines to show.
    """


AnySettings = TypeVar("AnySettings")
AnyFiles = TypeVar("AnyFiles", bound=StageFiles)
Stage = Callable[[AnySettings, AnyFiles, Cell, ResourceSettings], Report]


@dataclass(frozen=True)
class StageCommand(Generic[AnySettings, AnyFiles]):
    """A stage, with its data for the command line and the graph."""

    name: str
    """Name of the stage in its report: ``mask``."""
    stage: Stage[AnySettings, AnyFiles]
    settings: object
    """A ``Settings`` class, or a union of such by ``kind``."""
    files: type[AnyFiles]
    section: str | Mapping[str, str]
    """Key path of the settings in ``params.yaml``. It may contain a name: a dimension of the cell,
    ``masking.{technique}``, or the value of ``--name``, ``taggers.{name}``. For settings from several sections: the key
    path of each field; empty if that file has none of them."""
    parts: tuple[str, ...] = ()
    """Keys of a single section on which the stage depends, ``{kind}`` for the kind's own; empty: all keys. Keys of the
    section without a field in ``settings`` are left out."""
    cell: tuple[str, ...] = ()
    """Dimensions of the cell that are options of their own, since the work depends on them."""
    labels: tuple[str, ...] = ()
    """Dimensions in ``--cell``: they are in the report and change nothing else."""
    seed: int | None = 1
    """Seed of the cell without an option."""
    named_settings: Callable[[str | None], dict[str, object]] = _kind_of
    """Settings by the name in ``section``, without a parameter file; by default a name is that of a kind."""
    cell_of: Callable[[AnyFiles, str | None, Cell], Cell] = _same_cell
    """Cell by the files and the name, in addition to the options."""
    inputs_of: Callable[[AnySettings, AnyFiles], list[str]] | None = None
    """Inputs with these settings, named in the report, if they differ from the given files."""
    defaults: Callable[[AnyFiles], dict[str, object]] = _nothing_given
    """Settings defined by the files, without a parameter file."""
    files_of_settings: Callable[[AnySettings], list[str]] = _no_files
    """Files that the settings name; inputs like any other."""
    epilog: str = ""

    @property
    def named_by(self) -> str | None:
        """The dimension or option that names the section."""
        names = (name for path in self._paths.values() for _, name, _, _ in Formatter().parse(path))
        return next((name for name in names if name), None)

    @property
    def _paths(self) -> dict[str, str]:
        """Key paths by their field of the settings; the field is empty if they are the settings."""
        return {"": self.section} if isinstance(self.section, str) else dict(self.section)

    def parser(self, prog: str, description: str | None) -> argparse.ArgumentParser:
        """The parser of the options: files, dimensions of the cell, and the common ones of all stages."""
        parser = make_parser(prog, description, "\n".join(filter(None, [self.epilog, *setting_lines(self.settings)])))
        parser.epilog_for = lambda words: "\n".join(filter(None, [self.epilog, *self._asked_lines(prog, words)]))
        parser.words_for = self.with_cell
        add_options(parser, self.files)
        for name in self.cell:
            required = name == self.named_by
            parser.add_argument(
                f"--{name}",
                required=required,
                type=int if name == "seed" else str,
                default=self.seed if name == "seed" else None,
                help=_DIMENSIONS[name]
                + ("; with --params a name in that file" if required else "")
                + (f" (default: {self.seed})" if name == "seed" and self.seed is not None else ""),
            )
        common = parser.add_argument_group("common to all stages")
        common.add_argument("--params", metavar="FILE", help="read the settings from a params.yaml")
        if self.named_by and self.named_by not in self.cell:
            shown = next(_shown(path) for path in self._paths.values() if "{" in path)
            common.add_argument("--name", help=f"of the settings in that file, which are {shown} there")
        common.add_argument(
            "--set",
            metavar="KEY=VALUE",
            dest="overrides",
            action="append",
            default=[],
            help="one setting, by its key, or the last part of it,"
            + (" in params.yaml below " if self._paths else "")
            + ", ".join(map(_shown, self._paths.values()))
            + ", named at the end of this help, or below resources",
        )
        common.add_argument("--threads", type=int, help="threads (default: resources.threads, else one for each core)")
        common.add_argument(
            "--report", metavar="FILE", help="write what was measured, in numbers; '-': standard output"
        )
        uses = [f"labels of the report: {', '.join(self.labels)}"] if self.labels else []
        uses += ["name of a cell in cells.yaml, for its files and settings"] if self.name in OPTIONS else []
        if uses:
            common.add_argument("--cell", metavar="KEY=VALUE[,...]", default="", help="; or ".join(uses))
        return parser

    def with_cell(self, words: Sequence[str]) -> list[str]:
        """The words, with the options of the named cell."""
        return with_options_of_cell(self.name, self.cell, self.labels, words)

    def _asked_lines(self, prog: str, words: Sequence[str]) -> list[str]:
        """The help on settings for a command line: of the kind that it names, or the names of all kinds' settings."""
        kinds = setting_names(self.settings)
        chosen = next((kind for word in reversed(words) if (kind := word.removeprefix("kind=")) in kinds), None)
        if chosen or not kinds:
            return setting_lines(self.settings, chosen)
        width, lines = max(map(len, kinds)) + 4, ["", "settings (--set KEY=VALUE):"]
        for kind, keys in kinds.items():
            first = f"  {kind}".ljust(width)
            lines += wrap(", ".join(keys) or "none", 100, initial_indent=first, subsequent_indent=" " * width)
        kind = next(iter(kinds))
        one = f"{option_of(self.named_by)} {kind}" if self.named_by else f"--set kind={kind}"
        return [*lines, f"'{prog} {one} --help' explains those of {kind}."]

    def unused(self, files: AnyFiles) -> Sequence[str]:
        """Return, for several sections, the fields that are unused with these files."""
        return ()

    def parse(self, arguments: argparse.Namespace) -> "Invocation[AnySettings, AnyFiles]":
        """The call in the options; ``ParameterError`` if they, or the settings, are not allowed."""
        name = getattr(arguments, self.named_by) if self.named_by else None
        if arguments.params and self.named_by and not name:
            raise ParameterError(f"--params needs {option_of(self.named_by)}: which settings of {arguments.params!r}?")
        given = {dimension: getattr(arguments, dimension) for dimension in self.cell}
        cell = Cell(**given, **labels_of(getattr(arguments, "cell", ""), self.labels))
        check_seed(cell.seed)
        files = self.files_from(arguments)
        own = [text for text in arguments.overrides if not text.startswith(_RESOURCES)]
        unused = self.unused(files)
        for text in own:
            if text.partition(".")[0] in unused:
                raise ParameterError(f"--set: {text!r} has no use with the files that are given; leave it out")
        paths = {
            place: path.format_map({str(self.named_by): name})
            for place, path in self._paths.items()
            if place not in unused
        }
        read: dict[str, Any] = {}
        if arguments.params:
            from tasks.parameters.parameter_file import read_sections

            read = read_sections(arguments.params, ["resources", *paths.values()])
        settings = self._settings(paths, read, name, files, own)
        sections: list[str] = []
        if read:
            parts = [part.format(kind=getattr(settings, "kind", "")) for part in self.parts]
            sections = [f"{path}.{part}" for path in paths.values() for part in parts] or [*paths.values()]
        return Invocation(
            self,
            settings,
            files,
            self.cell_of(files, name, cell),
            self._resources(arguments, read.get("resources")),
            arguments.params,
            arguments.report,
            sections,
        )

    def files_from(self, arguments: argparse.Namespace) -> AnyFiles:
        """Return the files only; ``ParameterError`` for a stream that the stage cannot read or write."""
        return options_from(self.files, arguments, {"params": READ, "report": WRITE_STREAM})

    def _settings(
        self,
        paths: Mapping[str, str],
        read: Mapping[str, Any],
        name: str | None,
        files: AnyFiles,
        overrides: Sequence[str],
    ) -> AnySettings:
        """``paths``: key paths by the field that they fill, ``read``: the sections by key path; none without a file."""
        found: dict[str, Any] = {}
        where = "options"
        if read:
            where = ", ".join(paths.values())
            found = {place: _said(read[path], path) for place, path in paths.items()}
        elif self.named_by:
            place = next(place for place, path in self._paths.items() if "{" in path)
            found = {place: {**self.defaults(files), **self.named_settings(name)}}
        elif "" in paths:
            found = {"": self.defaults(files)}
        values: dict[str, Any] = dict(found.get("", found))
        if self.parts:
            values = of_kind(values, overrides, self.settings)
        checked: AnySettings = check_settings(self.settings, with_overrides(values, overrides, self.settings), where)
        return checked

    def _resources(self, arguments: argparse.Namespace, read: ResourceSettings | None) -> ResourceSettings:
        values = {"threads": available_cores()}
        if read:
            values = read.model_dump(exclude_unset=True)
        if arguments.threads is not None:
            if arguments.threads < 1:
                raise ParameterError(f"--threads {arguments.threads!r} is not allowed; give 1 or more")
            values["threads"] = arguments.threads
        of_resources = [text.removeprefix(_RESOURCES) for text in arguments.overrides if text.startswith(_RESOURCES)]
        checked: ResourceSettings = check_settings(ResourceSettings, with_overrides(values, of_resources), "resources")
        return checked

    def carry_out(self, invocation: "Invocation[AnySettings, AnyFiles]") -> Report:
        """Run the stage and write its report."""
        with invocation.recorded() as recorded:
            found = self.stage(invocation.settings, invocation.files, invocation.cell, invocation.resources)
            recorded.take(found)
        return found


@dataclass(frozen=True)
class Invocation(Generic[AnySettings, AnyFiles]):
    """One call of a stage, from the options."""

    command: StageCommand[AnySettings, AnyFiles]
    settings: AnySettings
    files: AnyFiles
    cell: Cell
    resources: ResourceSettings
    params: str | None = None
    report: str | None = None
    sections: Sequence[str] = ()
    """Key paths of ``params.yaml`` on which the stage depends."""

    def inputs(self) -> list[str]:
        """The inputs, with the files in the settings."""
        if self.command.inputs_of:
            return self.command.inputs_of(self.settings, self.files)
        return [*(path for _, path in self.files.read()), *self.command.files_of_settings(self.settings)]

    def run(self) -> Report:
        """Run the stage and write its report; ``ParameterError`` if an output is an input or another output."""
        named = [("setting", path) for path in self.command.files_of_settings(self.settings)]
        self.files.refuse_paths(
            [*named, *([("--params", self.params)] if self.params else [])],
            [("--report", self.report)] if self.report else [],
        )
        with without_empty_folders(path for _, path in self.files.written()):
            found = self.command.carry_out(self)
        if found.shown and self.report != STANDARD_STREAM:
            print(found.shown)
        for warning in found.warnings if is_first_process() else ():
            print(f"warning: {warning}", file=sys.stderr)
        return found

    @contextmanager
    def recorded(self) -> Iterator[StageReport]:
        """The report, written when the block ends well; of several processes only by the first."""
        with recorded_stage(
            self.command.name,
            self.report if is_first_process() else None,
            cell=self.cell.as_dict(),
            parameters=as_plain(self.settings),
            seed=self.cell.seed,
            inputs=self.inputs(),
            outputs=[path for _, path in self.files.written()],
            # All paths, so that the report does not depend on cells.yaml.
            options_of=self.command.with_cell,
        ) as recorded:
            yield recorded


def labels_of(text: str, known: Sequence[str]) -> dict[str, Any]:
    """``dataset=mail,seed=1`` as dimensions; ``ParameterError`` for another form or an unknown key."""
    found: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, sign, value = part.partition("=")
        is_number = value.isascii() and value.isdecimal()
        if not sign or not value or (key == "seed" and not is_number) or key in found:
            raise ParameterError(f"--cell {part!r} is not of the form KEY=VALUE, such as dataset=mail, each key once")
        if key not in known:
            allowed = ", ".join(known) or "none"
            raise ParameterError(f"--cell: no label {key!r}{nearest(key, known)}; allowed: {allowed}")
        found[key] = int(value) if key == "seed" else value
    return found


def _said(section: object, path: str) -> dict[str, Any]:
    """The values in a section of the parameter file, without its defaults."""
    if not isinstance(section, BaseModel):
        inside = ", ".join(map(str, section)) if isinstance(section, Mapping) else repr(section)
        raise ParameterError(f"{path!r} in the parameter file is no section of settings; it holds {inside}")
    return section.model_dump(mode="json", exclude_unset=True)


def _shown(path: str) -> str:
    """A key path for a help text: ``masking.TECHNIQUE``."""
    return re.sub(r"{(\w+)}", lambda found: found[1].upper(), path)
