"""Mask and fill any amount of text exactly as a cell of the finished run was made.

'palimpsest init' draws a sample of a large text. This command makes the rest of it, or next month's
text, in the same way: technique, filler, method, learned weights, counts and seed are those of the
run. Applied to the run's own sentences it gives the run's own bytes.

FILE is what 'palimpsest init' reads, cleaned in the same way: plain text, mail, JSON lines, CSV,
TSV, Parquet, or a folder of such. Sentences that occur again are left out.

The output is a private folder: text.txt is the result; raw.txt and sidecar.jsonl restore the
private text; report.json has numbers. Only 'palimpsest release CELL --applied FOLDER' makes of it
what may be shared. An interrupted call goes on where it was. The bytes do not depend on the number
of processes.

examples:
  palimpsest apply mail/crf/surrogate-1 --input mail.txt --output data/private/applied/mail
  palimpsest release mail/crf/surrogate-1 --applied data/private/applied/mail --name mail-2
"""

import hashlib
import json
import os
import shlex
import shutil
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tasks.options import READ, WRITE_FOLDER, Argument, Command, Options

if TYPE_CHECKING:
    from tasks.applied.recipe import MadeCell, Recipe
    from tasks.corpora.settings import CleaningSettings
    from tasks.corpora.sources.document import Source
    from tasks.settings.resources import ResourceSettings

SUMMARY = "mask and fill any amount of text as a cell of the finished run was made"
WORK_FOLDER = ".palimpsest/applied"
_DOCUMENTS, _READ, _DONE = "documents.txt", "read.json", "done.json"
_SUMS = ("words", "masked_words", "masked_lines")


class ApplyOptions(Options):
    """Options of the command: a cell, a text, and the folder of the result."""

    cell: Annotated[str, Argument(positional=True)]
    """cell of the finished run, as tables name it; that of a baseline gives the masked text"""
    input: Annotated[str, READ]
    """your text: a file or a folder"""
    output: Annotated[str, WRITE_FOLDER]
    """private folder for the result; best data/private/applied/CORPUS, which 'palimpsest forget' removes"""
    text_field: str | None = None
    """field or column with the text, if it has an unusual name"""
    document_field: str | None = None
    """field or column that names the document of each text"""
    processes: int | None = Field(default=None, ge=1)
    """processes at once (default: as many as cores and memory have room for; one on a GPU)"""


def run(options: ApplyOptions) -> None:
    """Read the text, mask and fill its parts, and put the folder in its place."""
    from tasks.applied.recipe import find_made
    from tasks.corpora.settings import CleaningSettings
    from tasks.corpora.sources.detection import detected
    from tasks.corpora.sources.text_files import files_left_out
    from tasks.files.work_folder import WorkFolder
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
    from tasks.privacy.applied_text import read_applied, state_of
    from tasks.records.stage_report import content_hash, read_report
    from tasks.results.report_index import REPORTS
    from tasks.settings.checks import check_settings
    from tasks.surroundings import surroundings

    sections = read_sections(DEFAULT_PATH, ["resources", "release"])
    resources = sections["resources"]
    made = find_made(options.cell)
    made.check()
    output = Path(options.output)
    if output.exists() and any(output.iterdir()):
        # Only an earlier result is replaced.
        read_applied(output)
    settings = detected(Path(options.input).expanduser(), options.text_field, options.document_field)
    corpus = read_report(Path(REPORTS) / "corpora" / f"{made.cell.dataset}.json")["parameters"]
    cleaning = check_settings(CleaningSettings, corpus.get("cleaning", {}), "cleaning")
    source = settings.open()
    inputs = {path: content_hash(path) for path in source.files}
    recipe = _recipe(made, resources, sections["release"])
    by = [state_of(made.reports), surroundings(resources.threads, uses_model=recipe.uses_model)]
    key = _hash([*by, settings.model_dump(mode="json"), cleaning.model_dump(mode="json"), inputs])
    folder = WorkFolder(resources.work_folder or WORK_FOLDER, output, key)
    try:
        read = _read(source, cleaning, folder.path, recipe, options.input)
        started = time.perf_counter()
        done = _applied(folder.path, recipe, read["lines"], made.cell.path, resources, options.processes, _hash(by))
        seconds = time.perf_counter() - started
        own = made.mask["measured"]
        report = {
            "cell": made.cell.path,
            "state": by[0],
            **read,
            "copies": recipe.copies,
            **{name: done[name] for name in _SUMS},
            "masked_fraction": done["masked_words"] / max(1, done["words"]),
            "sample_masked_fraction": own["masked_fraction"],
            "counted": _counted(made),
            "inputs": inputs,
        }
        _put(folder.path, output, report)
        folder.remove()
    finally:
        folder.close()
    left = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in read["left_out"].items() if count)
    print(
        f"{made.cell.path} applied to {read['lines']:,} lines, {read['sample_lines']:,} of them in the run's sample; "
        f"left out: {left or 'none'}\n"
        f"masked: {report['masked_fraction']:.1%} of the words, {own['masked_fraction'] or 0:.1%} in the sample; "
        f"{done['now'] / max(seconds, 1e-9):,.0f} lines/s"
    )
    if report["counted"]:
        print("Lines outside the sample were not counted: the noisy counts are the run's, and cost them no epsilon.")
    ignored = getattr(source, "ignored", [])
    for warning in [*read["warnings"], *([files_left_out(ignored)] if ignored else [])]:
        print(f"warning: {warning}")
    if made.filled:
        print(f"Next: palimpsest release {made.cell.path} --applied {output} --name {made.cell.dataset}-applied")


def whole_text(cell: str, dataset: str, corpus: Mapping[str, Any]) -> str:
    """The shell command that applies a cell to the whole text of a corpus. ``corpus``: settings of its reader."""
    output = f"data/private/applied/{dataset}"
    given = {"--text-field": corpus.get("text_field"), "--document-field": corpus.get("document_field")}
    fields = [word for option, name in given.items() if name not in (None, "text") for word in (option, str(name))]
    return shlex.join(["palimpsest", "apply", cell, "--input", corpus["source"], "--output", output, *fields])


def _hash(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _recipe(made: "MadeCell", resources: "ResourceSettings", release: Any) -> "Recipe":  # noqa: ANN401 - its settings
    from tasks.applied.recipe import recipe_of

    return recipe_of(made, resources, release)


def _counted(made: "MadeCell") -> dict[str, Any] | None:
    """The noisy counts of the run that the fill uses, if any."""
    found = made.filled.fill["measured"].get("counted_frequencies") if made.filled else None
    return {name: found[name] for name in ("counts", "epsilon", "unit")} if found else None


class _Seen:
    """Keys of sentences in a file, so that memory does not grow with the text; it counts those of the sample."""

    def __init__(self, database: sqlite3.Connection, sample: set[bytes]) -> None:
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")
        self._database, self._sample, self.of_sample = database, sample, 0

    def __contains__(self, key: object) -> bool:
        return self._database.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone() is not None

    def add(self, key: bytes) -> None:
        """Add a key."""
        self._database.execute("INSERT INTO seen VALUES (?)", (key,))
        self.of_sample += key in self._sample


def _read(source: "Source", cleaning: "CleaningSettings", work: Path, recipe: "Recipe", name: str) -> dict[str, Any]:
    """Write the clean sentences of a text to the work folder, once; return their numbers."""
    from tasks.corpora.division import DivisionTally, sentence_key, unique_sentences
    from tasks.corpora.languages import MUCH_FOREIGN, language_shares
    from tasks.corpora.text_lines import empty_text, line_writer, read_lines
    from tasks.corpora.words import folded_words
    from tasks.files.atomic_file import atomic_writer
    from tasks.privacy.earlier_releases import RAW

    file = work / _READ
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found
    sample = {sentence_key(line, folded_words(line)) for line in read_lines(recipe.own_raw)}
    tally, lines, numbers, number = DivisionTally(), 0, dict[object, int](), 0
    (work / "seen").unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(work / "seen", isolation_level=None)) as database,
        line_writer(work / RAW, private=True) as raw,
        line_writer(work / _DOCUMENTS, private=True) as documents,
    ):
        database.execute("BEGIN")
        seen = _Seen(database, sample)
        for index, (document, sentences) in enumerate(unique_sentences(source, cleaning, tally, "reading", seen), 1):
            if recipe.reads_documents:
                # As the corpus numbers them: those of one name have the number of the first.
                group = (document.part, index if document.name is None else document.name)
                number = numbers.setdefault(group, len(numbers) + 1)
            for sentence, _ in sentences:
                raw.write(sentence + "\n")
                lines += 1
                documents.write(f"{number}\n")
    (work / "seen").unlink()
    if not lines:
        raise empty_text(name)
    shares = language_shares(read_lines(work / RAW))
    foreign = shares.foreign(language_shares(read_lines(recipe.own_raw)).languages)
    warnings = tally.warnings
    if sum(foreign.values()) > MUCH_FOREIGN:
        said = ", ".join(f"{share:.0%} {language}" for language, share in foreign.items())
        warnings.append(f"the run's sample has none of {said}: private words may stay unmasked")
    found = {"lines": lines, "sample_lines": seen.of_sample, "left_out": dict(tally.left_out), "warnings": warnings}
    with atomic_writer(file, private=True) as stream:
        json.dump(found, stream)
    return found


def _applied(
    work: Path,
    recipe: "Recipe",
    lines: int,
    cell: str,
    resources: "ResourceSettings",
    processes: int | None,
    made_by: str,
) -> dict[str, int]:
    """Write text and sidecar in the work folder from where an earlier call was; return the sums over all parts.

    Unless it was done before by this code (``made_by``), the recipe must first make the run's own first lines.
    """
    from itertools import chain, islice

    from tqdm import tqdm

    from tasks.applied.processes import computed_in_processes
    from tasks.applied.recipe import check_same
    from tasks.files.atomic_file import atomic_writer
    from tasks.parts import PART_LINES
    from tasks.privacy.applied_text import TEXT
    from tasks.privacy.earlier_releases import RAW, SIDECAR
    from tasks.surroundings import has_gpu

    proof, file = work.with_name(f"same-{made_by[:32]}"), work / _DONE
    done = {"parts": 0, TEXT: 0, SIDECAR: 0, **dict.fromkeys(_SUMS, 0)}
    if file.exists():
        done = json.loads(file.read_text(encoding="utf-8"))
    first = done["parts"]
    parts = -(-lines // PART_LINES)
    portions = recipe.portions(work / RAW, work / _DOCUMENTS if recipe.reads_documents else None, lines)
    own = None if proof.exists() else recipe.own_portion()
    given = chain([own[0]] if own else [], islice(portions, first, None))
    at_once = processes or (1 if recipe.uses_model and has_gpu() else resources.stages_at_once)
    at_once = max(1, min(at_once, parts * recipe.copies - first))
    results = computed_in_processes(given, recipe.work, resources, processes=at_once, uses_model=recipe.uses_model)
    done["now"] = 0
    with (
        _from(work / TEXT, done[TEXT]) as text,
        _from(work / SIDECAR, done[SIDECAR]) as sidecar,
        tqdm(desc="apply", unit=" lines", total=lines * recipe.copies, disable=None) as bar,
    ):
        if own:
            check_same(next(results).lines, own[1], cell)
            proof.touch(0o600)
        for result in results:
            text.writelines(f"{line}\n".encode() for line in result.lines)
            if done["parts"] < parts:
                sidecar.writelines(line.encode() for line in result.sidecar)
                for name in _SUMS:
                    done[name] += result.counts[name]
            for name, stream in ((TEXT, text), (SIDECAR, sidecar)):
                stream.flush()
                os.fsync(stream.fileno())
                done[name] = stream.tell()
            done["parts"] += 1
            done["now"] += len(result.lines)
            with atomic_writer(file, private=True) as written:
                json.dump(done, written)
            bar.update(len(result.lines))
    return done


def _from(path: Path, size: int) -> IO[bytes]:
    """A private file to write to after its first bytes; later ones of a killed call are cut off."""
    stream = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")  # noqa: SIM115 - the caller closes it
    stream.truncate(size)
    stream.seek(size)
    return stream


def _put(work: Path, output: Path, report: dict[str, Any]) -> None:
    """Copy the finished files to the output, complete or not at all, with the report."""
    from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
    from tasks.privacy.applied_text import FILES, REPORT, STAGE
    from tasks.records.stage_report import code_state, content_hash, write_json

    with atomic_folder(output, private=True) as folder:
        for name in FILES:
            shutil.copyfile(work / name, folder / name)
            (folder / name).chmod(PRIVATE_MODE)
        outputs = {name: content_hash(folder / name) for name in FILES}
        write_json(folder / REPORT, {"stage": STAGE, **report, "outputs": outputs, "code": code_state()})
        (folder / REPORT).chmod(PRIVATE_MODE)


COMMAND = Command(ApplyOptions, run)
