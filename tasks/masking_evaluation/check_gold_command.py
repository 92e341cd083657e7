"""Check a labelled file, count its labels, and put it where the graph expects it.

All bad lines are named at once, with their numbers and the reason, and no text. The report says how many spans each
label has, which class of marker it stands for, and which labels no mapping knows.

Examples:
  palimpsest check-gold --gold mail-labelled.jsonl
  palimpsest check-gold --gold data/raw/mail-labelled.jsonl --output data/private/gold/mail.jsonl
"""

import argparse
import sys
from collections import Counter
from typing import Any

from tasks.errors import ParameterError

SUMMARY = "check a labelled file and count its labels"
READS = ("gold",)
WRITES = ("output",)
STREAMS = (*READS, *WRITES)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest check-gold``."""
    parser.add_argument("--gold", metavar="FILE", help="labelled file: JSON lines with 'text' and 'spans'")
    parser.add_argument("--output", metavar="FILE", help="write the lines here, readable for the owner alone")
    parser.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    parser.add_argument("--gold-set", metavar="NAME", help="with --params: a key of 'masking_evaluation.gold_sets'")
    parser.add_argument("--report", metavar="FILE", help="report file to write (JSON), numbers only")


def sections(arguments: argparse.Namespace) -> list[str]:
    """The section of the gold set."""
    return [f"masking_evaluation.gold_sets.{arguments.gold_set}"] if arguments.params else []


def run(arguments: argparse.Namespace) -> None:
    """Check and count."""
    from tasks.labelled_text.labelled_lines import LabelledLine, read_labelled, write_labelled
    from tasks.masking_evaluation.label_classes import label_mapping
    from tasks.parameters.parameter_file import read_sections
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    source, own, parameters = arguments.gold, None, {}
    where = "labels"
    if arguments.params:
        if not arguments.gold_set:
            raise ParameterError("--params needs --gold-set with a key of 'masking_evaluation.gold_sets'")
        (section,) = sections(arguments)
        gold_set = read_sections(arguments.params, [section])[section]
        source, own, parameters = source or gold_set.source, gold_set.labels, as_plain(gold_set)
        where = f"{section}.labels"
    if not source:
        raise ParameterError("no labelled file is given; use --gold FILE, or --params with --gold-set")
    mapping = label_mapping(own, where)
    with recorded_stage(
        "check_gold",
        arguments.report,
        cell={},
        parameters=parameters,
        inputs=[source],
        outputs=[arguments.output] if arguments.output else [],
    ) as report:
        lines: list[LabelledLine] = list(read_labelled(source))
        labels = Counter(span.label for line in lines for span in line.spans)
        if arguments.output:
            write_labelled(arguments.output, lines, private=True)
        measured: dict[str, Any] = {
            "lines": len(lines),
            "lines_with_spans": sum(bool(line.spans) for line in lines),
            "spans": sum(labels.values()),
            "spans_by_label": dict(sorted(labels.items())),
            "label_mapping": mapping.in_force(labels),
            "unmapped_labels": mapping.unmapped(labels),
        }
        report.measure(**measured)
        if measured["unmapped_labels"]:
            report.warn(f"labels without a class: {', '.join(measured['unmapped_labels'])}")
    print(f"{source}: {measured['lines']:,} lines, {measured['spans']:,} spans", file=sys.stderr)
    for label, count in measured["spans_by_label"].items():
        name = mapping.class_of(label) if mapping.is_private(label) else "not private"
        print(f"  {label:<24} {count:>8,}  {name or 'no class'}", file=sys.stderr)
