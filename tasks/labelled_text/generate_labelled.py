"""Make labelled text from templates, to train and test detectors of private words.

A template is text with slots:

  My name is {PERSON:1} and I live in {CITY}, {COUNTRY}.

The command fills the slots, and writes the labels at the same time. It fills in names of many
languages, places, organisations, dates, and numbers of cards, telephones and accounts. The output
is a train, a valid and a test file.

Templates come from three sources:

- Several hundred templates ship with palimpsest.
- A text file of your own has one template a line (setting templates).
- More templates are learned from labelled corpora (setting learn_from), and written to learned.txt.

No template is in more than one part. The test part has names and places that the training part
lacks.

Learned templates contain words of their corpus. All files are then readable by you alone (mode
0600).

Examples:
  palimpsest generate-labelled --output data/labelled --set sentences=20000
  palimpsest generate-labelled --output mine --set 'templates=[mine.txt]' \\
    --set 'learn_from=[{source: gold.jsonl, labels: {ort: CITY}}]'
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tasks.command import StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.options import Role
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.labelled_text.learning import LearnedTemplates

SUMMARY = "make labelled text from templates, to train and test detectors"
SHIPPED = Path(__file__).parent / "templates"


class GenerateLabelledFiles(StageFiles):
    """Output folder; templates and labelled files to learn from are settings."""

    output: Annotated[str, Role(writes=True, files=("train.jsonl", "valid.jsonl", "test.jsonl", "learned.txt"))]
    """folder for train.jsonl, valid.jsonl, test.jsonl, and for learned.txt with the learned templates, one a line"""


def generate_labelled(
    settings: LabelledTextSettings, files: GenerateLabelledFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Write the three files, and the learned templates.

    Raises ``ParameterError`` for a mapped label that no corpus has, ``CorpusError`` for bad lines of a labelled file.
    """
    from tasks.files.atomic_file import make_folder
    from tasks.labelled_text.generated_corpus import TemplateFile, write_generated
    from tasks.labelled_text.learning import learn_templates
    from tasks.labelled_text.slots import SLOT_LABELS
    from tasks.labelled_text.template import read_templates, write_templates

    paths = sorted(SHIPPED.glob("*.txt")) if settings.templates == "shipped" else list(map(Path, settings.templates))
    private = bool(settings.learn_from)
    learned = [learn_templates(source.source, source.labels) for source in settings.learn_from]
    _check_labels_used(settings, learned)
    sources = [TemplateFile(read_templates(path, SLOT_LABELS)) for path in paths]
    sources += [TemplateFile(found.templates, learned=True) for found in learned]
    folder = make_folder(files.output, private=private)
    if learned:
        by_text = {str(template): template for found in learned for template in found.templates}
        write_templates(folder / "learned.txt", by_text.values())
    tally = write_generated(folder, sources, settings, private=private)
    lines = tally.lines.total()
    report = Report(seed=settings.seed).measure(
        sentences=lines,
        sentences_by_part=dict(tally.lines),
        templates_by_part=tally.templates,
        spans_by_label=dict(sorted(tally.spans.items())),
        learned_templates=sum(len(found.templates) for found in learned),
    )
    if learned:
        report.warn(
            "Learned templates replace labelled values and addresses, names with @ and long numbers; any other "
            "word of the corpus stays in them, names that nobody labelled among them."
        )
    parts = ", ".join(f"{part} {count:,}" for part, count in tally.lines.items())
    print(
        f"{lines:,} sentences ({parts}) from {sum(tally.templates.values()):,} templates, "
        f"{sum(tally.spans.values()):,} labelled values",
        file=sys.stderr,
    )
    return report


def _files_of(settings: LabelledTextSettings) -> list[str]:
    """A user's own templates, and labelled files; the shipped templates are code."""
    own = [] if settings.templates == "shipped" else settings.templates
    return [*own, *(source.source for source in settings.learn_from)]


def _check_labels_used(settings: LabelledTextSettings, learned: "Sequence[LearnedTemplates]") -> None:
    """Raise ``ParameterError`` for a mapped label that no corpus has: misspelt, or of an outdated mapping."""
    from tasks.spelling import nearest

    found = sorted(set().union(*(corpus.labels for corpus in learned)))
    mapped = dict.fromkeys(label for source in settings.learn_from for label in source.labels)
    unused = [f"{label!r}{nearest(label, found)}" for label in mapped if label not in found]
    if unused:
        raise ParameterError(
            f"no corpus to learn from has the label {', '.join(unused)}; their labels are: {', '.join(found) or 'none'}"
        )


COMMAND = StageCommand(
    name="generate_labelled",
    stage=generate_labelled,
    settings=LabelledTextSettings,
    files=GenerateLabelledFiles,
    section="labelled_text",
    files_of_settings=_files_of,
)
