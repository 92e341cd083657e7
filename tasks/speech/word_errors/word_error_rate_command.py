"""Measure how many words a recogniser gets wrong: the word error rate, with its confidence interval.

References and hypotheses are found by utterance id. References stand in a manifest or in n-best lists, hypotheses in
JSON lines {"utterance_id", "text"} or in n-best lists, where the highest score counts; both are normalised as the
language model's text is. Given the sidecars of the references, the words that each technique masks are told apart.
The files with texts are private. docs/word_error_rate.md says what is counted.

examples:
  palimpsest word-error-rate --references test/manifest.jsonl --hypotheses found.jsonl
  palimpsest word-error-rate --references lists.jsonl.gz --hypotheses lists.jsonl.gz --errors errors.txt --json
  palimpsest reference-text --references test/manifest.jsonl --output test.txt
  palimpsest mask --technique entity_tagger --input test.txt --output masked.txt --sidecar entities.jsonl
  palimpsest word-error-rate --references test/manifest.jsonl --hypotheses found.jsonl --masked names=entities.jsonl
"""

import argparse
import json
import sys

from tasks.errors import ParameterError
from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.records.cell import add_cell_options, cell_of
from tasks.speech.word_errors.settings import WordErrorSettings

SUMMARY = "measure how many words a recogniser gets wrong"
READS = ("references", "hypotheses", "masked", "sidecars")
WRITES = ("errors", "counts")
SECTION = "speech.word_errors"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--references", metavar="FILE", required=True, help="manifest or n-best lists: what was said")
    parser.add_argument(
        "--hypotheses", metavar="FILE", required=True, help="JSON lines with text, or n-best lists: what was recognised"
    )
    add_error_options(parser)
    add_interval_options(parser)


def add_error_options(parser: argparse.ArgumentParser) -> None:
    """What may be told apart, and written: the errors beside the rates, the numbers."""
    parser.add_argument(
        "--masked",
        metavar="TECHNIQUE=SIDECAR",
        action="append",
        default=[],
        help="tell apart the words that a technique masks, by its sidecar of the references; may be given again",
    )
    parser.add_argument(
        "--sidecars",
        metavar="FOLDER",
        help="the same for a folder with TECHNIQUE.jsonl or TECHNIQUE/sidecar.jsonl for each technique",
    )
    parser.add_argument("--errors", metavar="FILE", help="write the errors, aligned, to read by eye: private")
    parser.add_argument(
        "--counts", metavar="FILE", help="write the errors of each utterance: ids and numbers, to compare systems"
    )
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON on standard output")
    parser.add_argument("--report", metavar="FILE", help="report file to write (JSON, numbers only)")


def add_interval_options(parser: argparse.ArgumentParser) -> None:
    """How the intervals are computed, and the cell that the rates are of."""
    add_setting_options(parser, WordErrorSettings, "intervals", leave_out=["seed"])
    parser.add_argument("--bootstrap-seed", type=int, help="seed of the resampling (default: 1)")
    add_cell_options(parser, "dataset", "technique", "filler", "method", "seed")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def sidecars_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The sidecar of each technique; ``ParameterError`` where an option is not ``TECHNIQUE=SIDECAR``."""
    from tasks.language_model.evaluation.reference_text import sidecars_in

    sidecars = {name: str(path) for name, path in sidecars_in(arguments.sidecars).items()} if arguments.sidecars else {}
    for given in arguments.masked:
        technique, separator, path = given.partition("=")
        if not technique or not separator or not path or technique in sidecars:
            raise ParameterError(f"--masked {given!r} is not allowed; give TECHNIQUE=SIDECAR, each technique once")
        sidecars[technique] = path
    return sidecars


def word_error_settings(arguments: argparse.Namespace) -> WordErrorSettings:
    """The settings of the parameter file, with the options that were given put over them."""
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import check_settings

    base = read_sections(arguments.params, [SECTION])[SECTION] if arguments.params else None
    # --seed names the cell; the resampling has an option of its own.
    given = argparse.Namespace(**{**vars(arguments), "seed": arguments.bootstrap_seed})
    return check_settings(WordErrorSettings, overridden(given, WordErrorSettings, base), "word error options")


def run(arguments: argparse.Namespace) -> None:
    """Count the errors and say what came out."""
    settings = word_error_settings(arguments)
    sidecars = sidecars_of(arguments)
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain
    from tasks.speech.word_errors.error_counts_file import write_errors
    from tasks.speech.word_errors.error_listing import write_listing
    from tasks.speech.word_errors.masked_words import masked_places
    from tasks.speech.word_errors.measurement import measure_errors
    from tasks.speech.word_errors.references import read_hypotheses, read_references
    from tasks.speech.word_errors.word_errors import count_errors

    with recorded_stage(
        "word-error-rate",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={SECTION: as_plain(settings)},
        seed=settings.seed,
        inputs=[arguments.references, arguments.hypotheses, *sidecars.values()],
        outputs=[path for path in (arguments.errors, arguments.counts) if path],
    ) as report:
        references, hypotheses = read_references(arguments.references), read_hypotheses(arguments.hypotheses)
        masked = masked_places(references, sidecars, arguments.references)
        errors = count_errors(references, hypotheses, masked)
        measured = measure_errors(errors, settings)
        if arguments.errors:
            write_listing(arguments.errors, errors, references, hypotheses, masked)
        if arguments.counts:
            write_errors(arguments.counts, errors)
        report.measure(**measured)
        for warning in warnings_of(measured):
            report.warn(warning)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    else:
        print("\n".join(error_lines(measured)), file=sys.stderr if arguments.report else sys.stdout)
    for warning in warnings_of(measured):
        print(f"warning: {warning}", file=sys.stderr)


def warnings_of(measured: dict) -> list[str]:
    """What a reader of the rate must know."""
    warnings = []
    if missing := measured["missing_hypotheses"]:
        warnings.append(f"{missing} of {measured['utterances']} utterances have no hypothesis; their words are deleted")
    if empty := measured["empty_references"]:
        warnings.append(f"{empty} references hold no word after normalisation; their utterances are left out")
    return warnings


def error_lines(measured: dict) -> list[str]:
    """The rates for a person: one line, and one for each technique."""
    from tasks.speech.word_errors.measurement import shown_rate

    lines = [
        f"word error rate {shown_rate(measured)}: {measured['insertions']:,} insertions, {measured['deletions']:,} "
        f"deletions, {measured['substitutions']:,} substitutions in {measured['words']:,} words of "
        f"{measured['utterances']:,} utterances; characters {shown_rate(measured, 'character_error_rate')}"
    ]
    for technique, masked in measured["masked_words"].items():
        recall = "undefined" if masked["recall"] is None else f"{masked['recall']:.1%}"
        lines.append(
            f"  {technique}: {masked['words']:,} masked words ({masked['share']:.1%}), {recall} recognised, "
            f"word error rate {shown_rate(masked)}; the rest {shown_rate(masked, 'wer_rest')}"
        )
    return lines
