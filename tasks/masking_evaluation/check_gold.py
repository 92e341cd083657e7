"""Check a labelled file, count its labels, and write its lines to --output.

The setting source names the file. One error lists all bad lines, with number and reason, and
without text. The report has for each label the number of spans and the class of marker that it maps
to. It also lists labels without a class.

Examples:
  palimpsest check-gold --set source=mail-labelled.jsonl
  palimpsest check-gold --set source=data/raw/mail-labelled.jsonl --output data/private/gold/mail.jsonl
"""

import sys
from collections import Counter
from typing import Annotated, Any

from tasks.command import StageCommand, StageFiles
from tasks.masking_evaluation.label_classes import GoldSet
from tasks.options import WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "check a labelled file and count its labels"


class CheckGoldFiles(StageFiles):
    """Output file for a labelled file; its source is a setting."""

    output: Annotated[str | None, WRITE] = None
    """file for the checked lines, which only you can read"""


def check_gold(settings: GoldSet, files: CheckGoldFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Check and count; ``CorpusError`` names all bad lines."""
    from tasks.labelled_text.labelled_lines import LabelledLine, read_labelled, span_warnings, write_labelled
    from tasks.masking_evaluation.label_classes import label_mapping

    mapping = label_mapping(settings.labels, "labels")
    lines: list[LabelledLine] = list(read_labelled(settings.source))
    labels = Counter(span.label for line in lines for span in line.spans)
    if files.output:
        write_labelled(files.output, lines, private=True)
    measured: dict[str, Any] = {
        "lines": len(lines),
        "lines_with_spans": sum(bool(line.spans) for line in lines),
        "spans": sum(labels.values()),
        "spans_by_label": dict(sorted(labels.items())),
        "label_mapping": mapping.in_force(labels),
        "unmapped_labels": mapping.unmapped(labels),
    }
    report = Report(warnings=span_warnings(lines)).measure(**measured)
    if measured["unmapped_labels"]:
        report.warn(f"labels without a class: {', '.join(measured['unmapped_labels'])}")
    print(f"{settings.source}: {measured['lines']:,} lines, {measured['spans']:,} spans", file=sys.stderr)
    for label, count in measured["spans_by_label"].items():
        name = mapping.class_of(label) if mapping.is_private(label) else "not private"
        print(f"  {label:<24} {count:>8,}  {name or 'no class'}", file=sys.stderr)
    return report


COMMAND = StageCommand(
    name="check_gold",
    stage=check_gold,
    settings=GoldSet,
    files=CheckGoldFiles,
    section="masking_evaluation.gold_sets.{name}",
    named_settings=lambda name: {},
    files_of_settings=lambda settings: [settings.source],
)
