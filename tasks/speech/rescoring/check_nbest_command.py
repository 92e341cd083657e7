"""Check n-best lists of a recogniser, and measure how much a language model can improve them.

The lists are JSON lines, or as ESPnet, Kaldi, NeMo and others write them. If lines are bad, one message names them,
without their text. The report has word error rates of the recogniser's own choice and of the best
hypothesis of every list (oracle). It also has the share of the lists that begin with their best one.
With --output, the checked lists are written to a file, as private as the spoken words.

examples:
  palimpsest check-nbest --set source=lists.jsonl.gz
  palimpsest check-nbest --params params.yaml --name speech.nbest.calls.test --output test.jsonl.gz
"""

from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.options import WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.nbest_lists import drawn_lists, read_nbest, write_nbest
from tasks.speech.rescoring.settings import NbestSource
from tasks.speech.rescoring.tuning import hypothesis_table

SUMMARY = "check n-best lists, and measure how much a language model can improve them"


class NbestFiles(StageFiles):
    """The output file; the source of the lists is a setting."""

    output: Annotated[str | None, WRITE] = None
    """file for the lists, readable by you alone"""


def check_nbest(settings: NbestSource, files: NbestFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Check, draw, count and write."""
    every = read_nbest(settings.source)
    lists = drawn_lists(every, settings.utterances, settings.seed)
    table = hypothesis_table(lists)
    facts, wer = table.facts(), table.wer({})
    if files.output:
        write_nbest(files.output, lists)
    shown = (
        f"{len(lists):,} of {len(every):,} lists, {facts['hypotheses']:,} hypotheses, {table.words:,} words; word "
        f"error rate {wer:.2%}, of the best hypotheses {facts['oracle_wer']:.2%}, which "
        f"{facts['best_first_share']:.1%} of the lists begin with"
    )
    report = Report(seed=settings.seed, shown=shown).measure(utterances=len(lists), words=table.words, wer=wer, **facts)
    if empty := facts["empty_lists"]:
        report.warn(f"{empty} lists hold no hypothesis; the words of their references are deleted")
    return report


COMMAND = StageCommand(
    "check_nbest", check_nbest, NbestSource, NbestFiles, "{name}", labels=("dataset",),
    files_of_settings=lambda settings: [settings.source],
)  # fmt: skip
