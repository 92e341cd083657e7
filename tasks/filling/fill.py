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

import sys
from dataclasses import dataclass

from tasks.command import Invocation, StageCommand
from tasks.filling.fill_files import FillFiles
from tasks.filling.methods import METHODS_HELP, AnyMethod, settings_named
from tasks.filling.settings import FillingMethod
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "fill the markers of masked text with a language model's words"
DEFAULT_WORK_FOLDER = ".palimpsest/fills"


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
