"""Check a recogniser's n-best lists, say what is in them, and put them where the graph expects them.

All bad lines are named at once, with the reason and without their text. The report says what any language model can
win here: how wrong the recogniser's own choice is, how wrong the best hypothesis of every list (oracle), and how many
lists begin with their best hypothesis already. The lists are private, as what was said is.

examples:
  palimpsest check-nbest --nbest lists.jsonl.gz
  palimpsest check-nbest --nbest lists.jsonl.gz --utterances 500 --output data/private/nbest/calls/test.jsonl.gz
"""

import argparse
import json
import sys

from tasks.errors import ParameterError
from tasks.records.cell import add_cell_options, cell_of
from tasks.speech.rescoring.settings import NbestSource

SUMMARY = "check n-best lists and say what can be won by choosing among them"
READS = ("nbest",)
WRITES = ("output",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--nbest", metavar="FILE", help="n-best lists: JSON lines, plain or compressed")
    parser.add_argument("--output", metavar="FILE", help="write the lists here, readable for the owner alone")
    parser.add_argument("--params", metavar="FILE", help="parameter file to take source and draw from: params.yaml")
    parser.add_argument("--section", metavar="KEYS", help="with --params: key path, such as speech.nbest.calls.test")
    parser.add_argument("--utterances", type=int, help="at most so many utterances, drawn by the seed (default: all)")
    parser.add_argument("--draw-seed", type=int, help="seed of the draw (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON on standard output")
    parser.add_argument("--report", metavar="FILE", help="report file to write (JSON, numbers only)")
    add_cell_options(parser, "dataset")


def sections(arguments: argparse.Namespace) -> list[str]:
    """The section that names the lists."""
    return [arguments.section] if arguments.params else []


def run(arguments: argparse.Namespace) -> None:
    """Check, draw, count and write."""
    settings = _settings(arguments)
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain
    from tasks.speech.rescoring.hypothesis_table import hypothesis_table
    from tasks.speech.rescoring.nbest_lists import drawn_lists, read_nbest, write_nbest

    with recorded_stage(
        "check_nbest",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={arguments.section or "nbest": as_plain(settings)},
        seed=settings.seed,
        inputs=[settings.source],
        outputs=[arguments.output] if arguments.output else [],
    ) as report:
        every = read_nbest(settings.source)
        lists = drawn_lists(every, settings.utterances, settings.seed)
        table = hypothesis_table(lists)
        words = int(table.reference_words.sum())
        measured = {
            "utterances_of_source": len(every),
            "utterances": len(lists),
            "empty_references": len(lists) - len(table),
            "empty_lists": sum(not nbest.hypotheses for nbest in lists),
            "words": words,
            "hypotheses": sum(len(nbest.hypotheses) for nbest in lists),
            "distinct_hypotheses": table.hypothesis_count,
            "wer": table.error_count({}) / words,
            "oracle_wer": table.oracle_error_count() / words,
            "best_first_share": table.best_first_share(),
        }
        if arguments.output:
            write_nbest(arguments.output, lists)
        report.measure(**measured)
        warnings = []
        if empty := measured["empty_lists"]:
            warnings.append(f"{empty} lists hold no hypothesis; the words of their references are deleted")
        if empty := measured["empty_references"]:
            warnings.append(f"{empty} references hold no word; their utterances are left out")
        for warning in warnings:
            report.warn(warning)
            print(f"warning: {warning}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
        return
    print(
        f"{measured['utterances']:,} of {measured['utterances_of_source']:,} lists, {measured['hypotheses']:,} "
        f"hypotheses, {words:,} words; word error rate {measured['wer']:.2%}, of the best hypotheses "
        f"{measured['oracle_wer']:.2%}, which {measured['best_first_share']:.1%} of the lists begin with",
        file=sys.stderr if arguments.report else sys.stdout,
    )


def _settings(arguments: argparse.Namespace) -> NbestSource:
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings

    values = {}
    if arguments.params:
        if not arguments.section:
            raise ParameterError("--params needs --section with a key path, such as speech.nbest.calls.test")
        found = read_sections(arguments.params, [arguments.section])[arguments.section]
        if not isinstance(found, NbestSource):
            raise ParameterError(f"--section {arguments.section!r} names no n-best lists; give speech.nbest.NAME.test")
        values = as_plain(found)
    given = {"source": arguments.nbest, "utterances": arguments.utterances, "seed": arguments.draw_seed}
    values |= {name: value for name, value in given.items() if value is not None}
    if "source" not in values:
        raise ParameterError("no n-best lists are given; use --nbest FILE, or --params with --section")
    return check_settings(NbestSource, values, "n-best options")
