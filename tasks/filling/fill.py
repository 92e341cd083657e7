"""Fill the markers of masked text with words.

The input has one sentence a line, with markers such as [MASK] or [PERSON]. The output has the same
lines, with one word in the place of each marker. All else stays, but articles agree with the next
word ("an apple"). A fill is meant as a substitute of the same kind, not as the masked word. A masked
word is replaced by a word in letters, never by a strong word or a slur.

With --sidecar (private), the report has the share of fills that are the masked word. For comparison
it has the share that guessing by frequency would restore.

Examples:
  palimpsest fill --input masked.txt --output filled.txt --method top_k
  palimpsest fill --input masked.txt --output filled.txt --filler bert-base-uncased --method top_k
  palimpsest fill --input masked.txt --output filled.txt --filler bert-base-uncased --method top_k --set k=5
"""

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tasks.command import Invocation, StageCommand, StageFiles
from tasks.filling.methods import METHODS_HELP, AnyMethod, settings_named
from tasks.filling.settings import SHIPPED_FILLER, FillingMethod
from tasks.options import READ, READ_MODEL, READ_STREAM, WRITE_STREAM
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.filling.opened_filler import OpenedFiller

SUMMARY = "fill the markers of masked text with a language model's words"
DEFAULT_WORK_FOLDER = ".palimpsest/fills"


class GenericFiles(StageFiles):
    """Generic text, which is public, for fills to learn from."""

    generic: Annotated[str | None, READ] = None
    """generic text new to the filler: folder of 'palimpsest corpora' (train.txt for prior=domain or counted, valid.txt
    for log_linear), or only its train.txt"""

    @property
    def generic_text(self) -> str | None:
        """The file for word frequencies."""
        return self._part("train.txt") if self.generic and os.path.isdir(self.generic) else self.generic

    @property
    def tuning_text(self) -> str | None:
        """The file for the filler's mean probabilities."""
        return self._part("valid.txt")

    def _part(self, name: str) -> str | None:
        path = os.path.join(self.generic or "", name)
        return path if self.generic and os.path.isfile(path) else None


class CorpusFiles(GenericFiles):
    """Filler and word counts of the fills of a corpus."""

    filler: Annotated[str | None, READ_MODEL] = None
    """filler, as for 'palimpsest fill'"""
    word_counts: Annotated[str | None, READ] = None
    """as for 'palimpsest fill'"""

    def opened(self, threads: int) -> "OpenedFiller":
        """The filler and the word counts, for several fills."""
        from tasks.filling.opened_filler import OpenedFiller

        return OpenedFiller(self.filler or SHIPPED_FILLER, threads, self.word_counts)


class FillFiles(GenericFiles):
    """Inputs and outputs of filling."""

    input: Annotated[str, READ_STREAM]
    """masked text, one sentence a line"""
    output: Annotated[str, WRITE_STREAM]
    """filled text"""
    filler: Annotated[str | None, READ_MODEL] = None
    """masked or causal language model, for methods that use one: hub name, folder, or package:NAME/FOLDER (default:
    MiniLM with the head that ships)"""
    allowed_words: Annotated[str | None, READ] = None
    """words that the technique never masks, one a line, as 'palimpsest mask' writes them; empty: no list"""
    word_counts: Annotated[str | None, READ] = None
    """word<TAB>count of generic text: frequencies and usual case of words (default, for frequency methods and the
    default filler: list of the package wordfreq)"""
    sidecar: Annotated[str | None, READ] = None
    """record of the masked words by 'palimpsest mask', private; the report then counts fills that are the masked
    word"""
    documents: Annotated[str | None, READ] = None
    """document names, one for each line, such as train.documents, or Parquet with a column document; read with
    consistent_within=document or counts.unit=document only"""

    def read_by(self, method: FillingMethod) -> "FillFiles":
        """The files that the method reads, since a graph gives all methods the same files. If the method uses a filler
        and none is given, the shipped filler is added."""
        read = {"documents": method.reads_documents, "generic": method.reads_tuning_text or method.has_domain_prior}
        given = self.model_copy(update={name: None for name, is_read in read.items() if not is_read})
        return given.model_copy(update={"filler": SHIPPED_FILLER}) if method.uses_filler and not self.filler else given


def fill(
    settings: FillingMethod,
    files: FillFiles,
    cell: Cell,
    resources: ResourceSettings,
    *,
    release: ReleaseSettings | None = None,
) -> Report:
    """Write the filled text, and report the measurements (paper 3.2).

    ``release``: limits of releases of the corpus.

    Raises ``ParameterError`` if a required file is missing, and ``CorpusError`` if a file is not of the masked text.
    Raises ``ModelError`` if the filler cannot be used.
    """
    from tqdm import tqdm

    from tasks.filling.filled_corpus import fill_corpus
    from tasks.filling.opened_filler import OpenedFiller
    from tasks.filling.prepared_fill import Corpus, prepare_fill

    check_files(settings, files)
    files = files.read_by(settings)
    corpus = Corpus(files, cell, release or ReleaseSettings())
    prepared = prepare_fill(settings, corpus, OpenedFiller(files.filler, resources.threads, files.word_counts))
    learned = prepared.learned
    report = Report().measure(**learned.measured)
    # A bar on standard error; none if that is no terminal.
    with tqdm(desc="filling", unit=" fills", unit_scale=True, disable=None, file=sys.stderr) as bar:
        done = fill_corpus(prepared, corpus, resources, bar.update)
    report.measure(**done.measured(), **settings.measured(files))
    report.measure(languages=learned.languages.measured(done.counts) if learned.languages else None)
    if done.fills and done.counts.get("class_slots") == 0:
        report.warn("no marker has a class: classes=match changed nothing; give --sidecar, or mask by class")
    fallbacks = f"{done.fallbacks:,} fallbacks, such as words against the off-list rule"
    if not done.allowed_words:
        fallbacks = "no list of never-masked words, so any word may be written"
    print(
        f"filled {done.fills:,} places ({done.markers:,} markers) in {done.lines:,} lines with {len(done.words):,} "
        f"different words in {done.seconds:.1f} s; {fallbacks}",
        file=sys.stderr,
    )
    return report


def check_files(settings: FillingMethod, files: FillFiles) -> None:
    """Raise ``ParameterError`` if a required file is missing, or if one is given that the method cannot use."""
    from tasks.corpora.text_lines import refuse_stream
    from tasks.files.atomic_file import refuse_folder
    from tasks.model_source import is_path, locate_model

    # Check now, not after hours of filling.
    refuse_folder(files.output, of_lines=True)
    settings.check(files)
    if files.filler and is_path(files.filler):
        # Check before the libraries are loaded, which takes seconds.
        locate_model(files.filler)
    if settings.copies > 1:
        refuse_stream(files.input, f"copies={settings.copies} reads it {settings.copies} times")


@dataclass(frozen=True)
class FillCommand(StageCommand[FillingMethod, FillFiles]):
    """The command, which also reads the section ``release`` of the parameter file."""

    def carry_out(self, invocation: Invocation[FillingMethod, FillFiles]) -> Report:
        """Run the stage and write its report."""
        from tasks.parameters.parameter_file import read_sections

        params = invocation.params
        release = read_sections(params, ["release"])["release"] if params else None
        given = (invocation.settings, invocation.files, invocation.cell, invocation.resources)
        with invocation.recorded() as recorded:
            found = fill(*given, release=release)
            recorded.take(found)
        return found


def _inputs(settings: FillingMethod, files: FillFiles) -> list[str]:
    """The files that the method reads, and the base of a filler that is an adapter."""
    from tasks.filling.fillers.filler_folder import model_folders

    read = [path for _, path in files.read_by(settings).read() if path != files.filler]
    return [*read, *model_folders(files.filler)]


def _cell(files: FillFiles, _: str | None, cell: Cell) -> Cell:
    return Cell(cell.dataset, cell.technique, cell.method, cell.filler or files.filler, cell.seed)


COMMAND = FillCommand(
    name="fill",
    stage=fill,
    settings=AnyMethod,
    files=FillFiles,
    section="filling.{method}",
    cell=("method", "seed"),
    labels=("dataset", "technique", "filler"),
    named_settings=settings_named,
    cell_of=_cell,
    inputs_of=_inputs,
    epilog=METHODS_HELP,
)
