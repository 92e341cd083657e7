"""Make labelled text from templates: train, valid and test files to train and test detectors with.

A template is text with slots, such as "My name is {PERSON:1} and I live in {CITY}, {COUNTRY}."; the slots are filled
with names of many languages, places, organisations, dates, numbers of cards, telephones and accounts, and the labels
are written at the same time. Some hundred templates come with palimpsest; your own are a text file with one template a
line, and more are learned from any labelled corpus. No template is in more than one part, and the test part has names
and places that the training part has not.

Learned templates hold the words of their corpus: then all files are written for you alone (mode 0600).

Examples:
  palimpsest generate-labelled --output data/labelled --sentences 20000 --seed 1
  palimpsest generate-labelled --output mine --templates mine.txt --learn-from gold.jsonl --label-map ort=CITY
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.labelled_text.learning import LearnedTemplates
    from tasks.labelled_text.settings import LabelledTextSettings

SUMMARY = "make labelled text from templates, to train and test detectors"
READS = ("templates", "learn_from")
WRITES = ("output", "write_templates")
STREAMS = ("templates", "learn_from", "write_templates")
FILES = ("train.jsonl", "valid.jsonl", "test.jsonl")
SECTION = "labelled_text"
SHIPPED = Path(__file__).parent / "templates"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest generate-labelled``."""
    parser.add_argument("--output", metavar="FOLDER", required=True, help="folder for train, valid and test .jsonl")
    parser.add_argument("--params", metavar="FILE", help=f"take the settings from the section {SECTION} of this file")
    parser.add_argument(
        "--templates",
        metavar="FILE",
        nargs="*",
        help="templates, one a line, instead of those that come with palimpsest; without a file: none",
    )
    parser.add_argument("--learn-from", metavar="FILE", nargs="+", help="labelled files to learn templates from too")
    parser.add_argument(
        "--label-map", metavar="LABEL=KIND", nargs="+", help="kind of slot for a label of the files of --learn-from"
    )
    parser.add_argument("--write-templates", metavar="FILE", help="write the learned templates, one a line")
    parser.add_argument("--sentences", metavar="N", type=int, help="lines of all parts together (default: 20000)")
    parser.add_argument("--seed", metavar="N", type=int, help="seed of what is drawn (default: 1)")
    parser.add_argument(
        "--unlabelled", metavar="LABEL", nargs="+", help="fill such values in without labelling them, e.g. USER_NAME"
    )
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Write the three files, the learned templates and the report."""
    from tasks.errors import ParameterError
    from tasks.files.atomic_file import make_folder
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.labelled_text.generated_corpus import TemplateFile, write_generated
    from tasks.labelled_text.learning import learn_templates
    from tasks.labelled_text.settings import LabelledTextSettings
    from tasks.labelled_text.slots import SLOT_KINDS
    from tasks.labelled_text.template import read_templates, write_templates
    from tasks.parameters.parameter_file import read_sections
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain, check_settings

    base = read_sections(arguments.params, [SECTION])[SECTION] if arguments.params else LabelledTextSettings()
    settings = check_settings(
        LabelledTextSettings, {**as_plain(base), **_given(arguments)}, "generate-labelled options"
    )
    if arguments.write_templates and not settings.learn_from:
        raise ParameterError("--write-templates writes learned templates; name a labelled file with --learn-from")
    if arguments.label_map and not arguments.learn_from:
        raise ParameterError("--label-map is for the files of --learn-from; name one, or set labels: in params.yaml")
    paths = sorted(SHIPPED.glob("*.txt")) if settings.templates == "shipped" else list(map(Path, settings.templates))
    private = bool(settings.learn_from)
    sources = [source.source for source in settings.learn_from]
    read = [*(("templates", str(path)) for path in paths), *(("learn_from", source) for source in sources)]
    written = [("--output", arguments.output), ("--write-templates", arguments.write_templates)]
    refuse_shared_paths(read, [(name, path) for name, path in written if path], files=FILES)
    with recorded_stage(
        "generate_labelled",
        arguments.report,
        parameters={SECTION: as_plain(settings)},
        seed=settings.seed,
        # The shipped templates are code; a user's own are inputs.
        inputs=[*([] if settings.templates == "shipped" else map(str, paths)), *sources],
        outputs=[arguments.output],
    ) as report:
        files = [TemplateFile(path.stem, read_templates(path, SLOT_KINDS)) for path in paths]
        learned = [learn_templates(source.source, source.labels) for source in settings.learn_from]
        _check_labels_used(settings, learned)
        files += [
            TemplateFile(Path(source).stem, found.templates, learned=True)
            for source, found in zip(sources, learned, strict=True)
        ]
        if arguments.write_templates:
            templates = dict.fromkeys(str(template) for found in learned for template in found.templates)
            by_text = {str(template): template for found in learned for template in found.templates}
            write_templates(arguments.write_templates, (by_text[text] for text in templates), private=True)
        folder = make_folder(arguments.output, private=private)
        tally = write_generated(folder, files, settings, private=private)
        lines, without = sum(tally.lines.values()), sum(tally.lines_without_span.values())
        report.measure(
            sentences=lines,
            sentences_by_part=tally.lines,
            templates_by_part=tally.templates,
            sentences_without_span=without,
            spans_by_label=dict(sorted(tally.spans.items())),
            lower_cased_share=tally.lower_cased / lines,
            lower_values_share=tally.lower_values / lines,
            upper_cased_share=tally.upper_cased / lines,
            joined_share=tally.joined / lines,
            repeated_sentences=tally.repeated,
            learned_templates=sum(len(found.templates) for found in learned),
            learned_lines=sum(found.lines for found in learned),
            learned_lines_repeated=sum(found.repeated for found in learned),
            learned_lines_left_out=sum(found.left_out for found in learned),
            overlapping_spans=sum(found.overlapping_spans for found in learned),
            unlabelled_values_replaced=sum(found.found_values for found in learned),
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


def _check_labels_used(settings: "LabelledTextSettings", learned: "Sequence[LearnedTemplates]") -> None:
    """``ParameterError`` for a mapped label that no corpus has: it is misspelt, or the mapping is out of date."""
    from tasks.errors import ParameterError
    from tasks.spelling import nearest

    found = sorted(set().union(*(corpus.labels for corpus in learned)))
    mapped = dict.fromkeys(label for source in settings.learn_from for label in source.labels)
    unused = [f"{label!r}{nearest(label, found)}" for label in mapped if label not in found]
    if unused:
        raise ParameterError(
            f"no corpus to learn from has the label {', '.join(unused)}; their labels are: {', '.join(found) or 'none'}"
        )


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that options set."""
    from tasks.errors import ParameterError

    labels: dict[str, str] = {}
    for pair in arguments.label_map or []:
        label, divider, kind = pair.rpartition("=")
        if not divider or not label or not kind:
            raise ParameterError(f"--label-map: {pair!r} is not LABEL=KIND, such as ort=CITY")
        labels[label] = kind
    given: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("sentences", "seed", "unlabelled", "templates")
        if getattr(arguments, name) is not None
    }
    if arguments.learn_from:
        given["learn_from"] = [{"source": source, "labels": labels} for source in arguments.learn_from]
    return given
