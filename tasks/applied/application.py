"""One application of a cell to a text, in a folder of unfinished work that survives a kill.

The text is read into that folder once. Its parts are masked and filled in any number of processes, and appended in
order. ``done.json`` has the sizes after each part: the next call cuts off what is beyond them, and goes on.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

from tasks.applied.processes import computed_in_processes
from tasks.applied.recipe import SUMS, MadeCell, Recipe, check_same, recipe_of
from tasks.applied.written_back import placed_files, placed_sentences, write_back
from tasks.corpora.division import DivisionTally, sentence_key, unique_sentences
from tasks.corpora.languages import MUCH_FOREIGN, language_shares
from tasks.corpora.settings import CleaningSettings
from tasks.corpora.sources.document import Source
from tasks.corpora.sources.text_files import FilesCorpus, files_left_out
from tasks.corpora.text_lines import empty_text, line_writer, read_lines
from tasks.corpora.text_places import TextPlaces
from tasks.corpora.words import folded_words
from tasks.errors import ParameterError
from tasks.files.atomic_file import PRIVATE_FOLDER_MODE, PRIVATE_MODE, atomic_folder, atomic_writer
from tasks.files.work_folder import WorkFolder
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.parts import PART_LINES
from tasks.privacy.applied_text import FILES, REPORT, STAGE, TEXT, WRITTEN_BACK, read_applied, state_of
from tasks.privacy.earlier_releases import RAW, SIDECAR
from tasks.records.stage_report import code_state, content_hash, read_report, write_json
from tasks.results.report_index import REPORTS
from tasks.settings.checks import check_settings
from tasks.settings.resources import ResourceSettings
from tasks.surroundings import has_gpu, surroundings

WORK_FOLDER = ".palimpsest/applied"
_DOCUMENTS, _READ, _DONE = "documents.txt", "read.json", "done.json"


@dataclass(frozen=True)
class Application:
    """A cell, a text and the folder for the result."""

    made: MadeCell
    recipe: Recipe
    reader: FilesCorpus
    cleaning: CleaningSettings
    output: Path
    resources: ResourceSettings
    writes_back: bool = False
    """Whether each text of the files is filled, in a copy of its file."""

    @classmethod
    def of(cls, made: MadeCell, reader: FilesCorpus, output: Path, *, write_back: bool = False) -> "Application":
        """With the settings of the run.

        Raises ``CorpusError`` if a file of the run has changed, or if something else is in the output.
        """
        made.check()
        if output.exists() and any(output.iterdir()):
            # Only an earlier result is replaced.
            read_applied(output)
        corpus = read_report(Path(REPORTS) / "corpora" / f"{made.cell.dataset}.json")["parameters"]
        cleaning = check_settings(CleaningSettings, corpus.get("cleaning", {}), "cleaning")
        sections = read_sections(DEFAULT_PATH, ["resources", "release"])
        recipe = recipe_of(made, sections["resources"], sections["release"])
        if write_back and recipe.copies > 1:
            raise ParameterError(
                f"--write-back: {made.cell.path!r} has {recipe.copies} fills of each text, and a file has room for "
                "one. Leave it out, or name a cell without copies"
            )
        return cls(made, recipe, reader, cleaning, output, sections["resources"], write_back)

    def carry_out(self, processes: int | None) -> dict[str, Any]:
        """Write the folder; return its report. ``processes``: ``None`` for as many as there is room for."""
        recipe, inputs = self.recipe, {path: content_hash(path) for path in self.reader.open().files}
        state = state_of(self.made.reports)
        by = [state, surroundings(self.resources.threads, uses_model=recipe.uses_model)]
        read_by = [self.reader.model_dump(mode="json"), self.cleaning.model_dump(mode="json"), inputs, self.writes_back]
        parent = self.resources.work_folder or WORK_FOLDER
        with WorkFolder(parent, self.output, _hash([*by, *read_by])) as folder:
            files = placed_files(self.reader) if self.writes_back else {}
            read, started = self._read(folder.path, files), time.perf_counter()
            before = _done(folder.path)["parts"]
            done = self._apply(folder.path, read["lines"], processes, folder.path.with_name(f"same-{_hash(by)}"))
            lines = min((done["parts"] - before) * PART_LINES, read["lines"] * recipe.copies)
            report = {
                "stage": STAGE,
                "cell": self.made.cell.path,
                "state": state,
                **read,
                "copies": recipe.copies,
                **{name: done[name] for name in SUMS},
                "masked_fraction": done["masked_words"] / max(1, done["words"]),
                "sample_masked_fraction": self.made.mask["measured"]["masked_fraction"],
                "counted": self.made.counted,
                "lines_per_second": round(lines / max(time.perf_counter() - started, 1e-9)),
                "written_back": {name: sorted(places.other_fields()) for name, places in files.items()},
                "inputs": inputs,
                "code": code_state(),
            }
            self._put(folder.path, report, files)
        return report

    def _sentences(
        self, files: Mapping[str, TextPlaces], source: Source, tally: DivisionTally, seen: "_Seen"
    ) -> Iterator[tuple[object, Iterable[str]]]:
        """The document and the sentences of each text: clean ones, each once, or all of files to write back."""
        if files:
            for group, sentences in placed_sentences(files, self.reader):
                for key in {sentence_key(one, folded_words(one)) for one in sentences}:
                    if key not in seen:
                        seen.add(key)
                yield group, sentences
            return
        found = unique_sentences(source, self.cleaning, tally, "reading", seen)
        for index, (document, cleaned) in enumerate(found):
            # As the corpus numbers them: those of one name have the number of the first.
            group = (index,) if document.name is None else (document.part, document.name)
            yield group, (sentence for sentence, _ in cleaned)

    def _read(self, work: Path, files: Mapping[str, TextPlaces]) -> dict[str, Any]:
        """Write the sentences of the text to the work folder, once; return their numbers."""
        if (work / _READ).exists():
            return dict(json.loads((work / _READ).read_text(encoding="utf-8")))
        own, source = self.recipe.own_raw, self.reader.open()
        tally, lines, numbers, number = DivisionTally(), 0, dict[object, int](), 0
        (work / "seen").unlink(missing_ok=True)
        with (
            closing(sqlite3.connect(work / "seen", isolation_level=None)) as database,
            line_writer(work / RAW, private=True) as raw,
            line_writer(work / _DOCUMENTS, private=True) as documents,
        ):
            seen = _Seen(database, {sentence_key(line, folded_words(line)) for line in read_lines(own)})
            for group, sentences in self._sentences(files, source, tally, seen):
                if self.recipe.documents:
                    number = numbers.setdefault(group, len(numbers) + 1)
                for sentence in sentences:
                    raw.write(f"{sentence}\n")
                    documents.write(f"{number}\n")
                    lines += 1
        (work / "seen").unlink()
        if not lines:
            raise empty_text(self.reader.source)
        shares = language_shares(read_lines(work / RAW))
        foreign = shares.foreign(language_shares(read_lines(own)).languages)
        warnings = [*tally.warnings, *([files_left_out(source.ignored)] if source.ignored else [])]
        if sum(foreign.values()) > MUCH_FOREIGN:
            said = ", ".join(f"{share:.0%} {language}" for language, share in foreign.items())
            warnings.append(f"the run's sample has none of {said}: private words may stay unmasked")
        read = {"lines": lines, "sample_lines": seen.of_sample, "left_out": dict(tally.left_out), "warnings": warnings}
        with atomic_writer(work / _READ, private=True) as stream:
            json.dump(read, stream)
        return read

    def _apply(self, work: Path, lines: int, processes: int | None, proof: Path) -> dict[str, int]:
        """Write text and sidecar from where an earlier call was; return the sums over all parts.

        Before the first time (no file ``proof``), the recipe must make the run's own first lines.
        """
        recipe, done, parts = self.recipe, _done(work), -(-lines // PART_LINES)
        own = None if proof.exists() else recipe.own_portion()
        portions = recipe.portions(work / RAW, work / _DOCUMENTS if recipe.documents else None, lines)
        given = chain([own[0]] if own else [], islice(portions, done["parts"], None))
        at_once = processes or (1 if recipe.uses_model and has_gpu() else self.resources.stages_at_once)
        at_once = max(1, min(at_once, parts * recipe.copies - done["parts"]))
        results = computed_in_processes(
            given, recipe.work, self.resources, processes=at_once, uses_model=recipe.uses_model
        )
        with (
            closing(results),
            _from(work / TEXT, done[TEXT]) as text,
            _from(work / SIDECAR, done[SIDECAR]) as sidecar,
            tqdm(desc="apply", unit=" lines", total=lines * recipe.copies, disable=None) as bar,
        ):
            if own:
                check_same(next(results).lines, own[1], self.made.cell.path)
                proof.touch(PRIVATE_MODE)
            for result in results:
                text.writelines(f"{line}\n".encode() for line in result.lines)
                if done["parts"] < parts:
                    sidecar.writelines(line.encode() for line in result.sidecar)
                    done |= {name: done[name] + result.counts[name] for name in SUMS}
                for name, stream in ((TEXT, text), (SIDECAR, sidecar)):
                    stream.flush()
                    os.fsync(stream.fileno())
                    done[name] = stream.tell()
                done["parts"] += 1
                with atomic_writer(work / _DONE, private=True) as written:
                    json.dump(done, written)
                bar.update(len(result.lines))
        return done

    def _put(self, work: Path, report: dict[str, Any], files: Mapping[str, TextPlaces]) -> None:
        """Copy the finished files to the output, complete or not at all, with the report."""
        with atomic_folder(self.output, private=True) as folder:
            for name in FILES:
                shutil.copyfile(work / name, folder / name)
            write_back(files, folder / WRITTEN_BACK, work / TEXT)
            names = (*FILES, *(f"{WRITTEN_BACK}/{name}" for name in files))
            write_json(folder / REPORT, report | {"outputs": {name: content_hash(folder / name) for name in names}})
            for file in folder.rglob("*"):
                file.chmod(PRIVATE_FOLDER_MODE if file.is_dir() else PRIVATE_MODE)


class _Seen:
    """Keys of sentences in a file, so that memory does not grow with the text; it counts those of the sample."""

    def __init__(self, database: sqlite3.Connection, sample: set[bytes]) -> None:
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")
        # One transaction, never committed: the file is of no use to another call.
        database.execute("BEGIN")
        self._database, self._sample, self.of_sample = database, sample, 0

    def __contains__(self, key: object) -> bool:
        return self._database.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone() is not None

    def add(self, key: bytes) -> None:
        """Add a key."""
        self._database.execute("INSERT INTO seen VALUES (?)", (key,))
        self.of_sample += key in self._sample


def _hash(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _done(work: Path) -> dict[str, int]:
    """The number of finished parts, the sizes of the files, and sums."""
    if (work / _DONE).exists():
        return dict(json.loads((work / _DONE).read_text(encoding="utf-8")))
    return dict.fromkeys(("parts", TEXT, SIDECAR, *SUMS), 0)


def _from(path: Path, size: int) -> IO[bytes]:
    """A private file to write to after its first bytes; later ones of a killed call are cut off."""
    stream = open(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE), "r+b")  # noqa: SIM115 - the caller closes it
    stream.truncate(size)
    stream.seek(size)
    return stream
