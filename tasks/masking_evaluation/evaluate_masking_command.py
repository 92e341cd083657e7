"""Measure how well a technique masks: hold it against labelled text.

The gold file has JSON lines {"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}. Recall, precision
and F2 (to miss a private word is worse than to mask one too many) are over words, spans, entities and documents; a
span, entity or document counts as found only if every word of it is masked, whatever the class of the marker. Beside
them stand the recall of each label, scores where the class has to be right, the share of words masked where nothing
is private, speed, memory and the size of the model. Undefined is null. Every label of the gold is private unless
--label OLD=null says otherwise. A line is a document, unless lines have a key "document".

"token_in_scope" leaves out masked words of classes that the gold does not annotate at all: a gold set of names does
not say that a masked date is wrong. The headline "token" leaves out nothing.

The output holds numbers only. --errors writes the words themselves, for developers, to a private file.

examples:
  palimpsest evaluate-masking --technique allow_list --gold gold.jsonl
  palimpsest evaluate-masking --technique spacy --gold gold.jsonl --clean harmless.txt --json
  palimpsest evaluate-masking --technique presidio --gold mail.jsonl --label employee=PERSON --label role=null
"""

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from tasks.errors import ParameterError
from tasks.masking.technique_options import (
    TECHNIQUE_PATHS,
    TECHNIQUE_TEXTS,
    TECHNIQUES_HELP,
    add_technique_options,
    chosen_technique,
    technique_sections,
)
from tasks.records.cell import cell_of

if TYPE_CHECKING:
    from tasks.masking_evaluation.settings import MaskingEvaluationSettings

SUMMARY = "measure how well a technique masks, against labelled text"
READS = ("gold", "clean", *TECHNIQUE_PATHS)
WRITES = ("errors",)
STREAMS = ("gold", "clean", *TECHNIQUE_TEXTS, *WRITES)
SECTION = "masking_evaluation"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest evaluate-masking``."""
    parser.epilog = TECHNIQUES_HELP
    parser.add_argument(
        "--gold", metavar="FILE", action="append", help="labelled file; again for further files, which are pooled"
    )
    parser.add_argument(
        "--gold-set",
        metavar="NAME",
        help="with --params: a key of 'masking_evaluation.gold_sets'; with --gold, labels alone come from it",
    )
    parser.add_argument(
        "--label",
        metavar="OLD=CLASS",
        action="append",
        default=[],
        help="class of a label of the gold, such as employee=PERSON; OLD=null: such words are not private",
    )
    parser.add_argument(
        "--split", metavar="NAME", help="which split of a corpus the gold is (default: end of its name)"
    )
    parser.add_argument("--clean", metavar="FILE", help="text that holds nothing private: how much of it is masked?")
    add_technique_options(parser)
    parser.add_argument("--bootstrap-samples", type=int, metavar="N", help="resamples of documents (default: 1000)")
    parser.add_argument("--confidence", type=float, metavar="P", help="level of the intervals (default: 0.95)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the resampling (default: 1)")
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON on standard output")
    parser.add_argument("--report", metavar="FILE", help="report file to write (JSON), numbers only")
    parser.add_argument(
        "--errors", metavar="FILE", help="write missed and over-masked words in context; as private as the gold itself"
    )


def sections(arguments: argparse.Namespace) -> list[str]:
    """The gold set, how sure its numbers are, and the section that the technique is described by."""
    if not arguments.params:
        return []
    gold_set = [f"{SECTION}.gold_sets.{arguments.gold_set}"] if arguments.gold_set else []
    numbers = [f"{SECTION}.{key}" for key in ("bootstrap_samples", "confidence", "seed")]
    return [*gold_set, *numbers, *technique_sections(arguments)]


def run(arguments: argparse.Namespace) -> None:
    """Mask the gold, judge it, and say what came out."""
    settings = _settings(arguments)
    paths, own_labels = _gold(arguments, settings)
    chosen = chosen_technique(arguments)
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.masking_evaluation.error_file import write_errors
    from tasks.masking_evaluation.evaluation import (
        MaskingTime,
        judge_files,
        over_masking_of_clean_text,
        read_gold,
        scores,
    )
    from tasks.masking_evaluation.label_classes import label_mapping
    from tasks.masking_evaluation.model_size import model_size
    from tasks.records.stage_report import peak_memory_bytes, recorded_stage
    from tasks.settings.checks import as_plain

    where = f"{SECTION}.gold_sets.{arguments.gold_set}.labels" if arguments.gold_set else "--label"
    mapping = label_mapping(own_labels, where)
    if arguments.errors:
        read = [*(("gold", path) for path in paths), *(("list", file) for file in chosen.files)]
        refuse_shared_paths(read, [("--errors", arguments.errors)])
    files = [read_gold(path, arguments.split) for path in paths]
    with recorded_stage(
        "evaluate_masking",
        arguments.report,
        # --seed is that of the resampling, and no cell's.
        cell={**cell_of(arguments).as_dict(), "seed": None},
        parameters={
            "technique": as_plain(chosen.settings),
            "bootstrap_samples": settings.bootstrap_samples,
            "confidence": settings.confidence,
            "labels": own_labels,
        },
        seed=settings.seed,
        inputs=[*paths, *([arguments.clean] if arguments.clean else []), *chosen.files],
    ) as report:
        clock = time.perf_counter()
        technique = chosen.load()
        load_seconds = time.perf_counter() - clock
        masking_time = MaskingTime()
        judged = judge_files(technique, files, mapping, masking_time)
        clean = over_masking_of_clean_text(technique, arguments.clean, masking_time) if arguments.clean else None
        peak = peak_memory_bytes()
        if arguments.errors:
            write_errors(arguments.errors, files, judged)
        measured: dict[str, Any] = {
            "technique": arguments.technique,
            "gold_set": arguments.gold_set or "+".join(file.name for file in files),
            **scores(files, judged, mapping, settings),
            "clean_text": clean,
            **masking_time.measured(),
            "load_seconds": round(load_seconds, 3),
            "peak_memory_bytes": peak,
            "model_bytes": model_size(chosen.files, chosen.settings),
            "threads": chosen.threads,
            "in_force": technique.in_force(),
        }
        report.measure(**measured)
        for warning in _warnings(measured):
            report.warn(warning)
            print(f"palimpsest: warning: {warning}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    elif arguments.report:
        print(_summary(measured), file=sys.stderr)
    else:
        from tasks.masking_evaluation.evaluation_table import evaluation_table

        print(evaluation_table(measured))


def _settings(arguments: argparse.Namespace) -> "MaskingEvaluationSettings":
    """Settings of the parameter file, or the defaults; options go before them."""
    from tasks.masking_evaluation.settings import MaskingEvaluationSettings
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings

    values = as_plain(read_sections(arguments.params, [SECTION])[SECTION]) if arguments.params else {}
    for name in ("bootstrap_samples", "confidence", "seed"):
        if getattr(arguments, name) is not None:
            values[name] = getattr(arguments, name)
    settings: MaskingEvaluationSettings = check_settings(MaskingEvaluationSettings, values, "evaluation options")
    return settings


def _gold(
    arguments: argparse.Namespace, settings: "MaskingEvaluationSettings"
) -> tuple[list[str], dict[str, str | None]]:
    """The gold files, and what the user says of their labels."""
    from tasks.masking_evaluation.label_classes import labels_of_options
    from tasks.spelling import nearest

    own = labels_of_options(arguments.label)
    if not arguments.gold and not arguments.gold_set:
        raise ParameterError("no labelled file is given; use --gold FILE, or --params with --gold-set NAME")
    if arguments.gold and len(set(arguments.gold)) != len(arguments.gold):
        raise ParameterError(f"--gold: a file stands twice in {arguments.gold!r}; its words would count twice")
    if not arguments.gold_set:
        return arguments.gold, own
    if not arguments.params:
        raise ParameterError(f"--gold-set {arguments.gold_set!r} is a name in a parameter file; add --params FILE")
    gold_set = settings.gold_sets.get(arguments.gold_set)
    if gold_set is None:
        names = sorted(settings.gold_sets)
        raise ParameterError(
            f"--gold-set {arguments.gold_set!r} is no key of '{SECTION}.gold_sets' in {arguments.params}"
            f"{nearest(arguments.gold_set, names)}; there are: {', '.join(names) or 'none'}"
        )
    return arguments.gold or [gold_set.source], {**(gold_set.labels or {}), **own}


def _warnings(measured: dict[str, Any]) -> list[str]:
    """What a reader of the numbers must know."""
    warnings = []
    if measured["unmapped_labels"]:
        counts = ", ".join(f"{label!r} ({count:,} spans)" for label, count in measured["unmapped_labels"].items())
        warnings.append(
            f"labels without a class: {counts}; they count as private, but not in 'typed' and the scope; "
            "--label OLD=CLASS gives them one"
        )
    if measured["labels_not_in_gold"]:
        names = ", ".join(map(repr, measured["labels_not_in_gold"]))
        warnings.append(f"no span of the gold has the label {names}, for which a class is given")
    if measured["ignored_spans"]:
        warnings.append(f"{sum(measured['ignored_spans'].values()):,} gold spans are ignored as not private")
    return warnings


def _summary(measured: dict[str, Any]) -> str:
    token = measured["token"]
    numbers = ", ".join(
        f"{shown} " + ("undefined" if token[name] is None else f"{token[name]:.3f}")
        for name, shown in (("f2", "F2"), ("recall", "recall"), ("precision", "precision"))
    )
    return (
        f"{measured['technique']} on {measured['gold_set']}: token {numbers}; "
        f"{measured['private_words']:,} of {measured['words']:,} words private"
    )
